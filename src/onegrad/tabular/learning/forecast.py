"""From subsets to more rows: the theory anchored at what was measured, a power law, error bars.

Equation numbers are those of docs/learning-curves.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import least_squares

from onegrad.tabular.learning.more_rows import LevelPath, mean_path, tuned_error
from onegrad.tabular.learning.subsets import Subset

# benchmarks/learning_curves.py chose these on some tables and checked them on others.
AT_ANCHOR, PER_DOUBLING = 0.07, 0.04  # standard deviation of the logarithm of the error
_STEP_PRIOR, _STEP_NOISE = 0.1, 0.05  # of the coefficient of the step's own noise, of a residual
_THEORY = 0.1  # standard deviation of log(measured/theory) at the anchor beyond noise
_CONTRADICTED = 3.0  # standard deviations from where on this is not believed
_SIZES = 3  # the largest of which the anchor is made
_OWN = 20.0  # how many residuals of its own a table needs to count as much as the others


@dataclass(frozen=True)
class Forecast:
    """What the subsets say about more rows; the last one is the anchor."""

    subsets: tuple[Subset, ...]

    @property
    def anchor(self) -> Subset:
        return self.subsets[-1]

    @cached_property
    def _paths(self) -> list[LevelPath]:
        return mean_path(self.anchor.paths)

    def theory(self, rows: int) -> float:
        """As it comes, without a measured error: ridge and rate tuned at this number of rows."""
        return tuned_error(self._paths, rows)

    @cached_property
    def _step(self) -> float:
        """c of log(measured/theory) = a + c·N/m, the noise of the step's own rows (eq. (6))."""
        last = self.subsets[-_SIZES:]
        u = np.array([self.anchor.rows / one.rows for one in last])
        left = np.array([np.log(one.mean / self.theory(one.rows)) for one in last])
        noise = np.array([max(one.standard_error / one.mean, _STEP_NOISE) for one in last])
        weight = (_STEP_NOISE / noise) ** 2 / u
        share = weight / weight.sum()
        u, left = u - share @ u, left - share @ left
        shrink = (_STEP_NOISE / _STEP_PRIOR) ** 2
        return float((weight * u) @ left / ((weight * u) @ u + shrink))

    @cached_property
    def _level(self) -> tuple[float, float]:
        """w·log(measured/theory) at the anchor, and its standard deviation √w·noise (eq. (8))."""
        noise = self.anchor.standard_error / self.anchor.mean
        left = float(np.log(self.anchor.mean / self.theory(self.anchor.rows)))
        variance = _THEORY**2
        if abs(left) > _CONTRADICTED * math.hypot(_THEORY, noise):
            variance = left**2 - noise**2
        trust = variance / (variance + noise**2)
        return trust * left, math.sqrt(trust) * noise

    def error(self, rows: int) -> float:
        """The theory's shape through the error at the largest subset (eqs. (7), (8))."""
        step = self._step * (self.anchor.rows / rows - 1)
        return float(self.theory(rows) * np.exp(self._level[0] + step))

    @cached_property
    def _power(self) -> tuple[float, float, float]:
        """a, b, c of a + b·(m/N)^−c, least squares of logarithms."""
        sizes = np.array([one.rows for one in self.subsets]) / self.anchor.rows
        errors = np.array([one.mean for one in self.subsets])

        def left(p: np.ndarray) -> np.ndarray:
            return np.log((np.exp(p[0]) + np.exp(p[1]) * sizes ** -np.exp(p[2])) / errors)

        last = np.log(errors[-1])
        fits = [
            least_squares(left, [last - 1.2, last - 0.4, start],
                          bounds=([last - 12, last - 12, -4], [last + 2, last + 2, 1]))
            for start in (-1.5, -0.7, 0.0)
        ]  # fmt: skip
        best = np.exp(min(fits, key=lambda fit: fit.cost).x)
        return float(best[0]), float(best[1]), float(best[2])

    def power_law(self, rows: int) -> float:
        """Three parameters, fitted to all subsets."""
        low, size, exponent = self._power
        return float(low + size * (rows / self.anchor.rows) ** -exponent)

    def spread(self, rows: int, own: Sequence[float] = ()) -> float:
        """Standard deviation σ of the logarithm of the error at so many rows.

        own : drifts per doubling of forecasts that were tested on the same table
        """
        return math.hypot(AT_ANCHOR, self._level[1], drift(self.anchor.rows, rows, own))


def drift(start: int, rows: int, own: Sequence[float] = ()) -> float:
    """Standard deviation of the logarithm of error(rows)/error(start), both beyond the anchor: what
    is not known of its level is common to both."""
    square = (_OWN * PER_DOUBLING**2 + float(np.square(own).sum())) / (_OWN + len(own))
    return float(np.sqrt(square) * abs(np.log2(rows / start)))


@dataclass(frozen=True)
class BackTest:
    """A forecast from a part of the rows, and what was measured with all."""

    from_rows: int
    rows: int
    predicted: float
    spread: float
    measured: float
    power_law: float
    noise: float  # standard deviation of log(predicted/measured) because of what was measured

    @property
    def drift(self) -> float:
        """What log(predicted/measured) is beyond its noise, per doubling."""
        square = np.log(self.predicted / self.measured) ** 2 - self.noise**2
        return float(np.sqrt(max(square, 0.0)) / np.log2(self.rows / self.from_rows))


def back_test(subsets: Sequence[Subset], apart: int = 2) -> BackTest | None:
    """The largest subset predicted from those at least 2^apart times smaller; None if too few."""
    small = tuple(one for one in subsets if one.rows * 2**apart <= subsets[-1].rows * 1.01)
    if len(small) < 2:
        return None
    forecast, last = Forecast(small), subsets[-1]
    return BackTest(
        forecast.anchor.rows, last.rows, forecast.error(last.rows), forecast.spread(last.rows),
        last.mean, forecast.power_law(last.rows),
        math.hypot(last.standard_error / last.mean, forecast.spread(forecast.anchor.rows)),
    )  # fmt: skip
