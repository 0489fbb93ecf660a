"""`learning_curve`: what more rows would buy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.errors import SpecError, verb
from onegrad.tabular.learning.curve_point import FARTHEST, CurvePoint
from onegrad.tabular.learning.forecast import BackTest, Forecast, back_test, drift
from onegrad.tabular.learning.subsets import CLIP, Plan, Say, Subset, Targets, inputs_of, measure
from onegrad.tabular.reading.table import Raw, cleaned, column_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 500


@dataclass(frozen=True)
class LearningCurve:
    """Errors measured on subsets of a table, and predicted for up to 16 times as many rows.

    rows : of the table; fitted to are those of `subsets`, a fifth is held out
    subsets : measured, smallest first
    backtests : forecasts from a half and a quarter of the fitted rows, beside what was measured
    """

    rows: int
    task: str
    width: int
    subsets: tuple[Subset, ...] = field(repr=False)
    backtests: tuple[BackTest, ...]

    @cached_property
    def forecast(self) -> Forecast:
        return Forecast(self.subsets)

    @property
    def fitted(self) -> int:
        """Rows of the largest subset."""
        return self.subsets[-1].rows

    @property
    def backtest(self) -> BackTest | None:
        """The farthest: from a quarter of the fitted rows."""
        return self.backtests[-1] if self.backtests else None

    def at(self, rows: int) -> CurvePoint:
        """What to expect of the same estimator with so many rows."""
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 10:
            raise SpecError.of("rows", rows, "must be a whole number ≥ 10")
        rows = int(rows)
        error = self.forecast.error(rows)
        spread = self.forecast.spread(rows, self._own)
        low, high = error * math.exp(-2 * spread), error * math.exp(2 * spread)
        accuracy, least, most = (1 - self._wrong(e) for e in (error, high, low))
        smallest, farthest = self.subsets[0].rows, FARTHEST * self.fitted
        return CurvePoint(
            rows, error, low, high, self.forecast.theory(rows), self.forecast.power_law(rows),
            accuracy, least, most, smallest <= rows <= farthest,
        )  # fmt: skip

    @property
    def _own(self) -> list[float]:
        return [one.drift for one in self.backtests]

    def change(self, times: float) -> tuple[float, float, float]:
        """Error with `times` as many rows as the table has, over that with those; two standard
        deviations to either side. What is not known of the level cancels."""
        rows = round(times * self.rows)
        ratio = self.forecast.error(rows) / self.forecast.error(self.rows)
        spread = math.exp(2 * drift(self.rows, rows, self._own))
        return ratio, ratio / spread, ratio * spread

    def _wrong(self, error: float) -> float:
        """Share of wrong classes that goes with a relative error: a power of it through the last
        measured pair, fitted to all pairs and drawn towards proportionality."""
        errors = np.log([one.mean for one in self.subsets])
        wrong = np.array([one.wrong.mean() for one in self.subsets])
        if not np.isfinite(wrong).all():
            return float("nan")
        if wrong[-1] == 0:
            return 0.0
        x = errors - errors[-1]
        y = np.log(np.maximum(wrong, 1e-4) / wrong[-1])
        power = float(np.clip((x @ y + 0.05) / (x @ x + 0.05), 0.3, 3.0))
        return float(min(wrong[-1] * math.exp(power * (math.log(error) - errors[-1])), 1.0))

    def ahead(self) -> list[CurvePoint]:
        """At 1, 2, 4, 8 and 16 times the rows of the table, as far as the bars are checked."""
        return [self.at(self.rows * 2**j) for j in range(5) if self.rows * 2**j <= 16 * self.fitted]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Measured errors, the forecast with its bar, raw theory and power law."""
        from onegrad.tabular.learning.curve_picture import draw_curve

        sizes = np.geomspace(self.subsets[0].rows, FARTHEST * self.fitted, 40).round().astype(int)
        return draw_curve(self.rows, self.subsets, [self.at(int(size)) for size in sizes], ax)

    def __repr__(self) -> str:
        lines = [f"LearningCurve of {self.rows:,} rows ({self.task}), {self.width} neurons"]
        lines.append(f"{'rows':>9}  {'relative error':<24}{'accuracy':<10}")
        for one in self.subsets:
            right = "" if self.task == "regression" else f"{1 - one.wrong.mean():.1%}"
            shown = f"{one.mean:.3f} ± {one.standard_error:.3f} measured"
            lines.append(f"{one.rows:>9,}  {shown:<24}{right:<10}".rstrip())
        for point in self.ahead():
            right = "" if self.task == "regression" else f"{point.accuracy:.1%}"
            shown = f"{point.error:.3f}, {point.low:.3f} to {point.high:.3f}"
            lines.append(f"{point.rows:>9,}  {shown:<24}{right:<10}".rstrip())
        if self.backtest is not None:
            lines.append(
                f"back-test: from {self.backtest.from_rows:,} rows {self.backtest.predicted:.3f} "
                f"was predicted for {self.backtest.rows:,}; measured {self.backtest.measured:.3f}"
            )
        return "\n".join(lines)


@verb
def learning_curve(
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    width: int = WIDTH,
    repeats: int = 3,
    seed: int = 0,
    clip: float | None = CLIP,
) -> LearningCurve:
    """How the error of a one-step network falls with the number of rows, and would go on falling.

    X : N × n numbers (array, sparse matrix), or a data frame, whose categories and gaps are dealt
        with like in `onegrad analyze`
    y : N numbers or classes; task : "regression" or "classification", seen by itself otherwise
    width : neurons, the same at every number of rows
    repeats : splits into held-out rows and subsets; seed : of them and of the weights
    clip : robust standard deviations at which inputs are cut, None for as they are

    Inputs are standardised; rate and ridge are chosen anew at every number of rows, in the
    measurement by leave-one-out and in the prediction by the theory (docs/learning-curves.md).
    Cost: repeats · 4 rates · O(N·width² + width³).
    """
    for key, value, least in (("width", width, 2), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SpecError.of(key, value, f"must be a whole number ≥ {least}")
    real = isinstance(clip, int | float | np.number) and not isinstance(clip, bool)
    if clip is not None and not (real and 0 < clip < math.inf):
        raise SpecError.of("clip", clip, "must be a number > 0, or None", "Leave it out")
    if hasattr(X, "columns"):
        columns = {str(name): column_of(list(X[name])) for name in X.columns}
        label = "y" if "y" not in columns else "the labels"
        table = cleaned(Raw(columns | {label: column_of(list(np.asarray(y)))}, label), task)
        X, y, task = table.x, table.y, table.task
    targets = Targets.of(y, task)
    x = inputs_of(X, len(targets.columns))
    return curve_of(x, targets, Plan(int(width), int(repeats), seed, clip))


def curve_of(
    x: np.ndarray, targets: Targets, plan: Plan, say: Say = lambda text, share: None
) -> LearningCurve:
    """The same of inputs that are checked; say : told what is being done, and the share done."""
    subsets = measure(x, targets, plan, say)
    tests = tuple(test for apart in (1, 2) if (test := back_test(subsets, apart)) is not None)
    return LearningCurve(len(x), targets.task, plan.width, subsets, tests)
