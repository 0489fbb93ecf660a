"""From errors on subsets to errors at more rows: a power law whose slope is drawn towards others'.

Equations are named as in docs/learning-curves.md. The numbers of the law come from a corpus of
curves (corpus.json, written by benchmarks/learning_curves.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np

from onegrad.compute.backend import Array

FAMILIES = ("accuracy", "log_loss", "r2")
_UNKNOWN_LEVEL = 30.0  # prior standard deviation of log error at the largest subset
_ZERO = 1e-6  # errors below this share of the largest one count as zero
_MOST_NOISE = 4.0  # largest variance between splits over the squared error that is distinguished
_REFERENCE = 256.0  # rows at which `slope` is meant

Shape = Callable[[float], float]  # log of the error that a theory expects, by rows


@dataclass(frozen=True)
class Law:
    """Prior of the logarithm of an error as a function of u = log₂ rows (eqs. curve-law,
    measured-curve and student-process).

    slope, fading : mean fall per doubling at 256 rows, and its exponent: slope·(rows/256)^−fading
    follows : of the fall that a theory expects, the share that is expected here (0: no theory)
    scatter, damping : standard deviation of the slope at the largest subset, and what is left of
        its difference from the mean after each doubling
    drift : standard deviation of a random walk, per doubling
    rough : by what the variance of that walk grows with each halving below the largest subset
    noise, common : factors on the standard errors that the splits show: of each size on its own,
        and of a shift that is common to all sizes, because the same rows judge them
    freedom : degrees of freedom of the Student t that all of this has
    blend : weight of a plain power law with offset in the logarithm of the forecast
    bars : for each number of rows known (upper limit) and each ratio, what 68 and 95 % of the
        misses on the corpus stay within, in units of the law's own standard deviation
    """

    slope: float
    fading: float
    follows: float
    scatter: float
    damping: float
    drift: float
    rough: float
    noise: float
    common: float
    freedom: float
    blend: float = 0.0
    bars: Sequence[tuple[float, Sequence[tuple[float, float, float]]]] = ()

    def expected(self, rows: Array, start: float, shape: Shape | None) -> Array:
        """Prior mean of log(error(rows)/error(start))."""
        power = (rows / _REFERENCE) ** -self.fading - (start / _REFERENCE) ** -self.fading
        found = self.slope * power / (self.fading * math.log(2))
        if shape is not None:
            found = found + self.follows * (np.array([shape(n) for n in rows]) - shape(start))
        return np.asarray(found)

    def covariance(self, u: Array, v: Array) -> Array:
        """Of the logarithms of the errors at u and v doublings from the largest subset. Eqs.
        curve-law and measured-curve."""
        rate = -math.log(self.damping)
        g, h = ((1 - np.exp(-rate * w)) / rate for w in (u, v))
        walk_u, walk_v = (self._walked(w) for w in (u, v))
        same = np.sign(u)[:, None] == np.sign(v)[None, :]
        walk = np.where(same, np.minimum(walk_u[:, None], walk_v[None, :]), 0.0)
        return np.asarray(
            _UNKNOWN_LEVEL**2 + self.scatter**2 * np.outer(g, h) + self.drift**2 * walk
        )

    def _walked(self, u: Array) -> Array:
        """Variance of the random walk: one per doubling at the largest subset and beyond, more
        where rows are fewer, by a factor of `rough` for each halving."""
        back = (self.rough ** np.maximum(-u, 0.0) - 1) / math.log(self.rough)
        return np.asarray(np.where(u < 0, back, u))

    def noise_covariance(self, errors: Array) -> Array:
        """Of measured logarithms with these standard errors. The rows are the same at all sizes:
        what they have in common shifts the whole curve, by the noise of the largest subset."""
        own = np.diag((self.noise * errors) ** 2)
        return np.asarray(own + (self.common * errors[-1]) ** 2)

    def bar(self, known: float, ratio: float) -> tuple[float, float]:
        """Factors on the standard deviation for bars that hold 68 and 95 %."""
        of_rows = next((rows for limit, rows in self.bars if known <= limit), self.bars[-1][1])
        ratios, inner, outer = np.transpose(of_rows)
        at = math.log2(max(ratio, 1.0))
        low, high = (float(np.interp(at, np.log2(ratios), one)) for one in (inner, outer))
        return low, high


@dataclass(frozen=True)
class Curve:
    """What was measured: rows, errors, and their relative standard errors."""

    rows: Array
    errors: Array
    noise: Array

    @property
    def known(self) -> float:
        return float(self.rows[-1])

    def until(self, rows: float) -> Curve:
        kept = self.rows <= rows
        return Curve(self.rows[kept], self.errors[kept], self.noise[kept])


@dataclass(frozen=True)
class Forecast:
    """The law given a curve; shape: of a theory if there is one."""

    law: Law
    curve: Curve
    shape: Shape | None = None

    def at(self, rows: Array) -> tuple[Array, Array]:
        """Mean and covariance of the logarithms of the errors, of a Student process
        (eq. student-process): a curve that the law did not expect widens its own bars."""
        law, curve, start = self.law, self.curve, self.curve.known
        u, v = np.log2(curve.rows / start), np.log2(rows / start)
        inner = law.covariance(u, u) + law.noise_covariance(curve.noise)
        cross = law.covariance(v, u)
        left = np.log(curve.errors) - law.expected(curve.rows, start, self.shape)
        level = left[-1]  # the prior is flat, so any origin will do; this one keeps digits
        weights = np.linalg.solve(inner, np.column_stack([left - level, cross.T]))
        mean = law.expected(rows, start, self.shape) + level + cross @ weights[:, 0]
        square = float((left - level) @ weights[:, 0])
        count = len(left) - 1  # one degree of freedom goes to the unknown level
        stretch = (law.freedom + square) / (law.freedom + count)
        if law.blend:
            plain = np.log([self._plain(n) for n in rows])
            mean = (1 - law.blend) * mean + law.blend * plain
        return mean, stretch * (law.covariance(v, v) - cross @ weights[:, 1:])

    @cached_property
    def _plain(self) -> Callable[[float], float]:
        return power_law(self.curve)

    def log_error(self, rows: float) -> float:
        return float(self.at(np.array([float(rows)]))[0][0])

    def bars(self, rows: float) -> tuple[float, float]:
        """Half-widths of the logarithm of the error that hold 68 and 95 %."""
        variance = float(self.at(np.array([float(rows)]))[1][0, 0])
        spread = math.sqrt(max(variance, 0.0))
        inner, outer = self.law.bar(self.curve.known, rows / self.curve.known)
        return inner * spread, outer * spread

    def change(self, start: float, rows: float) -> tuple[float, float, float]:
        """error(rows)/error(start), and what holds 95 % of such ratios: what is not known of the
        level is common to both."""
        mean, covariance = self.at(np.array([float(start), float(rows)]))
        variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
        factor = self.law.bar(self.curve.known, rows / self.curve.known)[1]
        log, half = float(mean[1] - mean[0]), factor * math.sqrt(max(float(variance), 0.0))
        return math.exp(log), math.exp(log - half), math.exp(log + half)


@cache
def laws() -> Mapping[str, Law]:
    """By family (accuracy, log_loss, r2, other); with "+theory" where a theory gives the shape."""
    text = files("onegrad.tabular.learning").joinpath("corpus.json").read_text(encoding="utf-8")
    return {name: Law(**one) for name, one in json.loads(text)["laws"].items()}


def curve_of_splits(
    rows: Sequence[int], errors: Sequence[Array], family: str, judged: int
) -> Curve:
    """Means over splits and their relative standard errors.

    errors : of each split, for every number of rows; judged : held-out rows, all splits together
    The variance between splits is known badly from five of them: half of it is the mean over all
    sizes, relative to the squared error. Shares of wrong answers have at least their binomial
    noise, and half an error more than was seen where none was.
    """
    means = np.array([one.mean() for one in errors])
    floor = 0.5 / (judged + 1) if family == "accuracy" else _ZERO * max(means.max(), _ZERO)
    means = np.maximum(means, floor)
    spread = np.array([one.var(ddof=1) if len(one) > 1 else 0.0 for one in errors]) / means**2
    spread = np.minimum(spread, _MOST_NOISE)
    splits = len(errors[0])
    square = (spread + spread.mean()) / 2 / splits
    if family == "accuracy":
        square = np.maximum(square, np.maximum(1 - means, 0.0) / (means * judged))
    return Curve(np.asarray(rows, float), means, np.sqrt(np.maximum(square, 1e-6)))


def power_law(curve: Curve) -> Callable[[float], float]:
    """a + b·(rows/known)^−c through the errors, by least squares of their logarithms."""
    from scipy.optimize import least_squares

    sizes, logs = curve.rows / curve.known, np.log(curve.errors)

    def left(p: np.ndarray) -> np.ndarray:
        return np.log(np.exp(p[0]) + np.exp(p[1]) * sizes ** -np.exp(p[2])) - logs

    last = logs[-1]
    fits = [
        least_squares(left, [last - 1.2, last - 0.4, start],
                      bounds=([last - 12, last - 12, -4], [last + 2, last + 2, 1]))
        for start in (-1.5, -0.7, 0.0)
    ]  # fmt: skip
    low, size, exponent = np.exp(min(fits, key=lambda fit: fit.cost).x)
    return lambda rows: float(low + size * (rows / curve.known) ** -exponent)
