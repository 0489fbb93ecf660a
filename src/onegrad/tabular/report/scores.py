"""Models side by side on rows that were held out, with the simplest ones among them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onegrad.results.estimates import Estimate
from onegrad.tabular.estimators import OneStepClassifier, OneStepRegressor
from onegrad.tabular.learning.subsets import CLIP
from onegrad.tabular.reading.table import Table

STEP, NO_STEP = "one gradient step", "random features (no step)"
CUT, UNCUT = "one step, inputs cut", "one step, inputs not cut"
LOGARITHM = "one step, logarithm of the label"
CONSTANT, TREES = "best constant", "boosted trees (HistGradientBoosting)"
_MOST_ROWS = 5000
_TREE_COLUMNS = 200  # that boosted trees look at in every split: more would take minutes
_UNEQUAL = 1.5  # times its fair share that the largest class has from where classes are unequal


@dataclass(frozen=True)
class Score:
    """Of one model on each split: accuracy (balanced where classes are unequal) or R²; seconds."""

    values: tuple[float, ...]
    seconds: float

    @property
    def estimate(self) -> Estimate:
        return Estimate.of(self.values)


@dataclass(frozen=True)
class Tails:
    """Numbers of the columns with heavy tails; rows in that of the label, and their share of its
    variance."""

    inputs: tuple[int, ...] = ()
    label: int = 0
    share: float = 0.0


def unequal(table: Table) -> bool:
    """Whether one class is so large that plain accuracy says little."""
    if table.task == "regression":
        return False
    _, counts = np.unique(table.y, return_counts=True)
    return bool(counts.max() / counts.sum() > min(_UNEQUAL / len(counts), 0.9))


def measure_name(table: Table) -> str:
    if table.task == "regression":
        return "R²"
    return "balanced accuracy" if unequal(table) else "accuracy"


def compare(
    table: Table, width: int, tails: Tails, splits: int, say: Callable[[str, float], None]
) -> tuple[dict[str, Score], float | None]:
    """Every model on the same splits, a fifth of the rows held out; and where inputs are cut.

    With tails in the inputs the network is tried with inputs as they are, too; if that is better on
    every split it is the network of the report, and cutting (None) is dropped. With a tail in
    labels > 0 their logarithm is tried.
    No scores where every split has a single class.
    """
    splits_of = [one for split in range(splits) if (one := _split(table, split)) is not None]

    def fitted(name: str, models: Callable[[int], Any], share: float) -> Score:
        say(f"fitting {name}, {len(splits_of)} splits", share)
        parts = [_judge(table, models(split), rows) for split, rows in enumerate(splits_of)]
        values, seconds = zip(*parts, strict=True)
        return Score(values, float(np.mean(seconds)))

    if not splits_of:
        return {}, CLIP
    clip: float | None = CLIP
    step = fitted(STEP, lambda seed: _network(table, width, CLIP, seed), 0.0)
    found, other = {STEP: step}, UNCUT
    if tails.inputs:
        plain = fitted(UNCUT, lambda seed: _network(table, width, None, seed), 0.2)
        if all(b > a for a, b in zip(step.values, plain.values, strict=True)):
            clip, other, found[STEP], plain = None, CUT, plain, step
    found[NO_STEP] = fitted(NO_STEP, lambda seed: _network(table, width, clip, seed, 0.0), 0.4)
    if tails.inputs:
        found[other] = plain
    if tails.label and table.y.min() > 0:
        found[LOGARITHM] = fitted(
            LOGARITHM, lambda seed: _of_logarithm(_network(table, width, clip, seed)), 0.45
        )
    names = list(_baselines(table, 0))
    for place, name in enumerate(names):
        share = 0.5 + 0.5 * place / len(names)
        found[name] = fitted(name, partial(_baseline, table, name), share)
    return found, clip


def _split(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows to fit and to judge; None if all rows of the other classes are held out."""
    order = np.random.default_rng(seed).permutation(len(table.y))[:_MOST_ROWS]
    test, train = np.split(order, [len(order) // 5])
    if table.task == "classification" and len(np.unique(table.y[train])) < 2:
        return None
    return train, test


def _judge(table: Table, model: Any, rows: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    """Score on the held-out rows, and CPU seconds."""
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    train, test = rows
    start = time.process_time()
    pipeline = make_pipeline(StandardScaler(), model)
    with warnings.catch_warnings(), threadpool_limits(1):  # threads that wait cost CPU
        warnings.simplefilter("ignore")  # a baseline that has not quite converged counts
        pipeline.fit(table.x[train], table.y[train])
        if unequal(table):
            value = balanced_accuracy_score(table.y[test], pipeline.predict(table.x[test]))
        else:
            value = pipeline.score(table.x[test], table.y[test])
    return float(value), time.process_time() - start


def _weight(table: Table) -> Any:
    return "balanced" if unequal(table) else None


def _network(table: Table, width: int, clip: float | None, seed: int, rate: Any = "auto") -> Any:
    if table.task == "regression":
        return OneStepRegressor(width, rate=rate, clip=clip, random_state=seed)
    return OneStepClassifier(
        width, rate=rate, clip=clip, class_weight=_weight(table), random_state=seed
    )


def _of_logarithm(model: Any) -> Any:
    from sklearn.compose import TransformedTargetRegressor

    return TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)


def _baseline(table: Table, name: str, seed: int) -> Any:
    return _baselines(table, seed)[name]


def _baselines(table: Table, seed: int) -> dict[str, Any]:
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV

    part = min(1.0, _TREE_COLUMNS / table.x.shape[1])  # of the columns, drawn for every split
    if table.task == "regression":
        return {
            CONSTANT: DummyRegressor(),
            "linear ridge regression": RidgeCV(np.geomspace(1e-3, 1e4, 15)),
            TREES: HistGradientBoostingRegressor(max_features=part, random_state=seed),
        }
    weight = _weight(table)
    return {
        CONSTANT: DummyClassifier(),
        "logistic regression": LogisticRegression(max_iter=300, class_weight=weight),
        TREES: HistGradientBoostingClassifier(
            max_iter=50 if len(table.classes) > 5 else 100,
            max_features=part,
            class_weight=weight,
            random_state=seed,
        ),
    }
