"""Every number of the report on somebody's table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.dummy import DummyClassifier, DummyRegressor

from onegrad.compute.backend import Array
from onegrad.tabular.estimators.directions import columns_found
from onegrad.tabular.learning.curve import LearningCurve, curve_from
from onegrad.tabular.learning.measure import Score, Splits, fit_all, measure, score_of, splits_of
from onegrad.tabular.models import NAMES, ONE_STEP, named_model
from onegrad.tabular.reading.cautions import heavy_tails, label_tail
from onegrad.tabular.reading.parts import at_most, in_time, only_classes
from onegrad.tabular.reading.table import Table

CONSTANT, CUT = "best constant", "one-step, inputs cut (clip=5)"
_MOST_ROWS, _QUICK_ROWS = 5000, 1000  # rows that are analysed, with --quick the second number
_UNEQUAL = 1.5  # classes count as unequal if the largest has this many times its fair share


@dataclass(frozen=True)
class Compared:
    """A model's score on every split; CPU seconds of a fit."""

    values: Array
    seconds: float


class Difference(NamedTuple):
    """Of two models' scores over the same splits: its mean, and the half-width that holds 95 %."""

    mean: float
    half: float


@dataclass(frozen=True)
class Analysis:
    """What the page shows.

    models : the best constant, and the others, best first
    chosen : the model of the curve
    found : columns of what our step found, with coefficients and errors; empty where none was taken
    tails : columns with heavy tails; rows in the tail of the label and their share of its variance
    """

    table: Table
    score: Score
    models: Mapping[str, Compared]
    splits: Splits
    chosen: str
    curve: LearningCurve
    found: tuple[tuple[str, float, float], ...]
    tails: tuple[str, ...]
    label_tail: tuple[int, float]
    quick: bool

    @property
    def best(self) -> str:
        return next(name for name in self.models if name != CONSTANT)

    def lead(self, name: str, over: str) -> Difference:
        """The splits share most of their rows, so the variance follows Nadeau and Bengio,
        s²(1/splits + held-out/fitted), and the quantile Student's."""
        left = self.models[name].values - self.models[over].values
        ratio = len(self.splits.tests[0]) / len(self.splits.ordered[0])
        error = math.sqrt(left.var(ddof=1) * (1 / len(left) + ratio))
        return Difference(float(left.mean()), float(stdtrit(len(left) - 1, 0.975)) * error)


def unequal(table: Table) -> bool:
    """Whether one class is so large that plain accuracy says little."""
    if table.task == "regression":
        return False
    counts = np.unique(table.y, return_counts=True)[1]
    return bool(counts.max() / counts.sum() > min(_UNEQUAL / len(counts), 0.9))


def analyse(
    table: Table,
    estimator: str | None = None,
    classes: Sequence[str] | None = None,
    time_column: str | None = None,
    say: Callable[[str], None] = print,
    quick: bool = False,
) -> Analysis:
    """Models beside each other on the same splits, then the learning curve of the best, or of
    `estimator`, which ends in these fits.

    classes : only rows of these, if given
    time_column : rows are put in its order, and later ones are judged by fits to earlier ones
    Under a minute of CPU for 5000 rows of 30 columns.
    """
    part = at_most(
        in_time(only_classes(table, classes), time_column), _QUICK_ROWS if quick else _MOST_ROWS
    )
    balanced = unequal(part)
    scoring = "balanced_accuracy" if balanced else None
    built = {
        name: named_model(name, part.task, balanced=balanced, columns=part.x.shape[1])
        for name in dict.fromkeys([*NAMES, estimator or ONE_STEP])
    }
    tails = tuple(part.names[i] for i in heavy_tails(part.x))
    if tails:
        cut = named_model(ONE_STEP, part.task, balanced=balanced)
        built[CUT] = cut.set_params(**{f"{cut.steps[-1][0]}__clip": 5.0})
    score = score_of(built[ONE_STEP], scoring)
    constant: Any = DummyRegressor() if part.task == "regression" else DummyClassifier()
    splits = _all_splits(part, time_column is not None)
    fits, models = {}, {}
    for name, model in [*built.items(), (CONSTANT, constant)]:
        say(f"fitting {name}, {len(splits.tests)} splits")
        fits[name] = fit_all(model, (part.x, part.y), splits.largest, splits, [score])
        values = np.array([score.of(errors[0]) for errors, _, _ in fits[name]])
        models[name] = Compared(values, float(np.mean([seconds for *_, seconds in fits[name]])))
    order = sorted(models, key=lambda name: (name == CONSTANT, -models[name].values.mean()))
    models = {name: models[name] for name in order}
    chosen = estimator or order[0]
    subsets = measure(built[chosen], (part.x, part.y), [score], splits, say, fits[chosen])
    curve = curve_from(part.total, chosen, score, subsets, splits.kind)
    found = [(part.names[i], mean, error) for i, mean, error in
             columns_found(built[ONE_STEP], part.x, part.y)]  # fmt: skip
    own_tail = label_tail(part.y) if part.task == "regression" else (0, 0.0)
    return Analysis(
        part, score, models, splits, chosen, curve, tuple(found), tails, own_tail, quick
    )


def _all_splits(table: Table, in_time: bool) -> Splits:
    """Two times five folds, or ten blocks of later rows."""
    classes = table.task == "classification"
    if in_time:
        from sklearn.model_selection import TimeSeriesSplit

        blocks = TimeSeriesSplit(10, test_size=max(1, len(table.y) // 40))
        return splits_of(table.x, table.y, classes, blocks, None, 0)
    one, two = (splits_of(table.x, table.y, classes, None, None, seed) for seed in (0, 1))
    return Splits(one.ordered + two.ordered, one.tests + two.tests, one.kind)
