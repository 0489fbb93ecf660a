"""Models by name, with settings that suit most tables: what a report puts beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from onegrad.errors import SpecError, did_you_mean

WIDTH = 500  # neurons of our own models
ONE_STEP = "one-step"
NAMES = (ONE_STEP, "hist-gradient-boosting", "random-forest", "linear")
_TREE_COLUMNS = 200  # columns that boosted trees examine in each split: more would take minutes


def named_model(
    estimator: Any, task: str, seed: int = 0, balanced: bool = False, columns: int = 1
) -> Any:
    """The estimator of a name (ours for None); anything else as it is.

    balanced : every class counts the same; columns : of the table, of which boosted trees look at
        200 in every split
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if estimator is not None and not isinstance(estimator, str):
        return estimator
    name = estimator or ONE_STEP
    if name not in NAMES:
        raise SpecError.of(
            "estimator", name, f"must be {', '.join(NAMES)}, or an estimator of scikit-learn",
            did_you_mean(name, NAMES),
        )  # fmt: skip
    part = min(1.0, _TREE_COLUMNS / columns)
    build = _regressor if task == "regression" else _classifier
    return make_pipeline(
        StandardScaler(), build(name, seed, "balanced" if balanced else None, part)
    )


def _regressor(name: str, seed: int, weight: Any, part: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    from onegrad.tabular.estimators import OneStepRegressor

    return {
        ONE_STEP: lambda: OneStepRegressor(WIDTH, random_state=seed),
        "hist-gradient-boosting": lambda: HistGradientBoostingRegressor(
            max_features=part, random_state=seed
        ),
        # every split looks at all columns: 100 trees were half of the time of a report
        "random-forest": lambda: RandomForestRegressor(50, random_state=seed),
        "linear": lambda: RidgeCV(np.geomspace(1e-3, 1e4, 15)),
    }[name]()


def _classifier(name: str, seed: int, weight: Any, part: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    from onegrad.tabular.estimators import OneStepClassifier

    return {
        ONE_STEP: lambda: OneStepClassifier(WIDTH, class_weight=weight, random_state=seed),
        "hist-gradient-boosting": lambda: HistGradientBoostingClassifier(
            max_features=part, class_weight=weight, random_state=seed
        ),
        "random-forest": lambda: RandomForestClassifier(class_weight=weight, random_state=seed),
        "linear": lambda: LogisticRegression(max_iter=300, class_weight=weight),
    }[name]()
