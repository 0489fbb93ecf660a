"""`learning_curve`: what more rows would buy, for any estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from onegrad.errors import SpecError
from onegrad.tabular.learning.forecast import Curve, Forecast, Shape, curve_of, laws
from onegrad.tabular.learning.measure import Score, Subset, last_step, measure, score_of, splits_of
from onegrad.tabular.learning.more_rows import level_path, mean_path, tuned_error
from onegrad.tabular.models import named_model
from onegrad.tabular.reading.given import cleaned_inputs, plain_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FARTHEST = 16  # times the fitted rows; bars were checked up to 10 times
LAW, THEORY = "damped power law", "theory of random features"
_APART = (2, 4)  # ratios of the back-tests


@dataclass(frozen=True)
class CurvePoint:
    """The score to expect at a number of rows.

    low, high : hold 95 % of scores; inner: hold 68 %
    checked : whether bars were checked so far from the rows at hand (up to 16 times)
    """

    rows: int
    score: float
    low: float
    high: float
    inner: tuple[float, float]
    checked: bool

    def __repr__(self) -> str:
        text = f"{self.rows:,} rows: {self.score:.3g} ({self.low:.3g} to {self.high:.3g})"
        return text + ("" if self.checked else f"; beyond {FARTHEST} × the rows at hand, unchecked")


@dataclass(frozen=True)
class BackTest:
    """The error at the largest subset, predicted from a part of it by `method`.

    bar : half-width of its logarithm that holds 95 %, with the noise of what was measured
    """

    method: str
    from_rows: int
    predicted: float
    measured: float
    bar: float

    @property
    def miss(self) -> float:
        return math.log(self.predicted / self.measured)

    @property
    def failed(self) -> bool:
        return abs(self.miss) > self.bar


@dataclass(frozen=True)
class LearningCurve:
    """Scores measured on subsets of a table, and predicted for up to 16 times as many rows.

    rows : rows of the table; fits use those of `subsets`, because each split holds some out
    kind : how rows are held out: random, groups (whole ones) or time (later rows)
    """

    rows: int
    model: str
    score: Score
    subsets: tuple[Subset, ...] = field(repr=False)
    kind: str = "random"

    @cached_property
    def measured(self) -> Curve:
        return curve_of(self.subsets, self.score)

    @property
    def fitted(self) -> int:
        """Rows of the largest subset."""
        return self.subsets[-1].rows

    def _forecast(self, method: str, rows: float) -> Forecast:
        """By one method, from the subsets of at most so many rows."""
        family = self.score.family + ("+theory" if method == THEORY else "")
        last = [one for one in self.subsets if one.rows <= rows][-1]
        shape = theory_of(last) if method == THEORY else None
        return Forecast(laws()[family], self.measured.until(rows), shape)

    @property
    def methods(self) -> tuple[str, ...]:
        known = f"{self.score.family}+theory" in laws()
        return (THEORY, LAW) if known and self.subsets[-1].paths else (LAW,)

    @cached_property
    def backtests(self) -> tuple[BackTest, ...]:
        """Back-tests of every method: forecasts from 1/2 and 1/4 of the fitted rows."""
        parts = [self.fitted / apart * 1.01 for apart in _APART]
        parts = [part for part in parts if sum(one.rows <= part for one in self.subsets) > 1]
        return tuple(self._tried(method, part) for method in self.methods for part in parts)

    def _tried(self, method: str, part: float) -> BackTest:
        made = self._forecast(method, part)
        predicted, (_, half) = math.exp(made.log_error(self.fitted)), made.bars(self.fitted)
        seen, noise = float(self.measured.errors[-1]), float(self.measured.noise[-1])
        return BackTest(method, int(made.curve.known), predicted, seen, math.hypot(half, 2 * noise))

    def missed(self, method: str) -> float:
        """Root mean square of its back-tests' log(predicted/measured); NaN without any."""
        squares = [one.miss**2 for one in self.backtests if one.method == method]
        return math.sqrt(sum(squares) / len(squares)) if squares else math.nan

    @cached_property
    def method(self) -> str:
        """The method with the best back-tests; without back-tests the first of `methods`."""
        return min(self.methods, key=lambda name: (self.missed(name), self.methods.index(name)))

    @property
    def backtest(self) -> BackTest | None:
        """Largest back-test error of the chosen method, in units of its error bar."""
        own = [one for one in self.backtests if one.method == self.method]
        return max(own, key=lambda one: abs(one.miss) / one.bar, default=None)

    @cached_property
    def forecast(self) -> Forecast:
        """A back-test that failed widens its bars by as much as it missed its own."""
        made, test = self._forecast(self.method, self.fitted), self.backtest
        failed = test is not None and test.failed
        return replace(made, wider=abs(test.miss) / test.bar) if test and failed else made

    def at(self, rows: float) -> CurvePoint:
        """What to expect of the same estimator with so many rows."""
        number = float(rows) if isinstance(rows, int | float | np.number) else math.nan
        if isinstance(rows, bool) or not number >= 10 or number != round(number):
            raise SpecError.of("rows", rows, "must be a whole number ≥ 10")
        log, (inner, outer) = self.forecast.log_error(number), self.forecast.bars(number)
        low, least, score, most, high = (
            self.score.of(math.exp(log + step)) for step in (outer, inner, 0.0, -inner, -outer)
        )
        inside = self.subsets[0].rows <= number <= FARTHEST * self.fitted
        return CurvePoint(int(number), score, low, high, (least, most), inside)

    def change(self, times: float) -> tuple[float, float, float]:
        """Error with `times` as many rows as the table has, over that with those, and what holds
        95 % of it. What is not known of the level cancels."""
        return self.forecast.change(self.rows, times * self.rows)

    def ahead(self) -> list[CurvePoint]:
        """At 1, 2, 4 and 8 times the rows of the table, as far as bars were checked."""
        sizes = [self.rows * 2**j for j in range(4)]
        return [self.at(rows) for rows in sizes if rows <= FARTHEST * self.fitted]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Measured scores, and the forecast with its bars."""
        from onegrad.tabular.learning.curve_picture import draw_curve

        return draw_curve(self, ax)

    def __repr__(self) -> str:
        lines = [f"LearningCurve of {self.rows:,} rows: {self.model}, {self.score.name}"]
        for one, noise in zip(self.subsets, self.measured.noise, strict=True):
            error = one.errors[self.score.name].mean()
            lines.append(
                f"{one.rows:>9,}  {self.score.of(error):.3f} ± {noise * error:.3f} measured"
            )
        lines += [
            f"{p.rows:>9,}  {p.score:.3f} ({p.low:.3f} to {p.high:.3f})" for p in self.ahead()
        ]
        return "\n".join(lines)


def theory_of(subset: Subset) -> Shape:
    """Log of the squared error that the leave-one-out errors of these fits expect at other rows."""
    paths = [[level_path(*rate, subset.rows) for rate in split] for split in subset.paths]
    joined = mean_path(paths)
    return lambda rows: math.log(max(tuned_error(joined, round(rows)), 1e-12))


def learning_curve(
    X: Any,
    y: Any,
    estimator: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    seed: int = 0,
) -> LearningCurve:
    """How the score of an estimator grows with the number of rows, and would go on growing.

    X : N × n numbers (array, sparse matrix), or a data frame: a given estimator gets it as it is,
        else categories and gaps are dealt with as in `onegrad analyze`
    y : N numbers or classes
    estimator : any of scikit-learn, or a pipeline; or a name (`onegrad analyze --estimator`);
        OneStepRegressor or OneStepClassifier of 500 neurons behind a StandardScaler without one
    scoring : as scikit-learn has it, a name or a callable; accuracy or R² without one
    cv : folds (5 without one, shuffled), "time" for rows in the order of time, or a splitter
    groups : group of each row; rows of one group are held out together
    seed : seed of splits and subsets

    The largest subset is what a split fits; the others are halves of halves of it. From them the
    error (best score − score) is predicted by a power law that is damped as on a corpus of
    curves, and for our own estimators by theory; whatever did best in the back-test on
    the subsets is used (docs/learning-curves.md). Cost: two fits to all rows for every split.
    """
    if estimator is None or isinstance(estimator, str):
        X, labels, task = cleaned_inputs(X, y)
    else:
        X, labels = plain_inputs(X, y)
        task = "classification" if is_classifier(estimator) else "regression"
    if groups is not None and len(groups) != len(labels):
        raise SpecError.of("groups", len(groups), f"must be one for each of {len(labels)} labels")
    model = named_model(estimator, task, seed)
    name = estimator if isinstance(estimator, str) else type(last_step(model)).__name__
    classes = task == "classification"
    splits = splits_of(X, labels, classes, cv, groups, seed)
    score = score_of(model, scoring)
    subsets = measure(model, (X, labels), [score], splits)
    return curve_from(len(labels), name, score, subsets, splits.kind)


def curve_from(
    rows: int, model: str, score: Score, subsets: Sequence[Subset], kind: str
) -> LearningCurve:
    known = [one for one in subsets if np.isfinite(one.errors[score.name]).all()]
    if not known or known[-1] is not subsets[-1]:
        raise SpecError.of(
            "scoring", score.name, "cannot be computed on every split",
            "A class may be missing among the rows of a fit: fewer folds, or groups of more rows",
        )  # fmt: skip
    if math.isnan(score.best):  # a callable: infer its best value from its values
        values = -np.concatenate([one.errors[score.name] for one in known])
        score = replace(score, best=0.0 if values.max() <= 0 else 1.0)
        if values.max() > 1:
            raise SpecError.of(
                "scoring", score.name, "must be at most 1 (its best), or at most 0 like neg_…"
            )
        known = [
            replace(one, errors={score.name: one.errors[score.name] + score.best}) for one in known
        ]
    return LearningCurve(rows, model, score, tuple(known), kind)
