"""From errors on subsets to errors at more rows: a power law, damped as on other tables.

Equations are named as in docs/learning-curves.md. The numbers of the law come from a corpus of
curves (corpus.json, written by benchmarks/corpus.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from onegrad.compute.backend import Array
from onegrad.tabular.learning.measure import Score, Subset

_ZERO = 1e-6  # errors below this share of the largest one count as zero
_MOST_NOISE = 4.0  # largest variance between splits over the squared error that is distinguished

Shape = Callable[[float], float]  # log of the error that a theory expects, by rows


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

    def falls(self) -> Array:
        """Of log error per doubling: over the last step, and over all of them."""
        u, logs = np.log2(self.rows), np.log(self.errors)
        first = [-2, 0] if len(u) > 1 else [-1, -1]
        return np.asarray((logs[first] - logs[-1]) / np.maximum(u[-1] - u[first], 1e-9))


@dataclass(frozen=True)
class Law:
    """How an error goes on, as learned from a corpus of curves (eqs. curve-law and curve-bars).

    weights : of a curve's last and mean fall in its slope, the fall of log error per doubling
    damping : what is left of the slope after each doubling
    follows : weight of the fall that a theory expects, beside this slope's (0: no theory)
    inner : half-widths of log error that hold 68 %: factors on the standard error of the last
        measured error, on 1, and on the damped number of doublings
    outer : factor on these that holds 95 %
    steep : the same for a fall per damped doubling, on the first and the last of these
    """

    weights: tuple[float, float]
    damping: float
    follows: float = 0.0
    inner: tuple[float, float, float] = (1.0, 0.05, 0.1)
    outer: float = 2.0
    steep: float = 2.0

    def doublings(self, u: float) -> float:
        """Of u doublings, each counts `damping` times the one before."""
        rate = -math.log(self.damping)
        return (1 - math.exp(-rate * u)) / rate


@dataclass(frozen=True)
class Forecast:
    """The law applied to a curve; shape: of a theory if there is one; wider: factor on all bars."""

    law: Law
    curve: Curve
    shape: Shape | None = None
    wider: float = 1.0

    def log_error(self, rows: float) -> float:
        """At fewer rows than the largest subset: what was measured, interpolated."""
        law, curve = self.law, self.curve
        logs = np.log(curve.errors)
        if rows <= curve.known:
            return float(np.interp(math.log(rows), np.log(curve.rows), logs))
        slope = max(float(np.dot(law.weights, curve.falls())), 0.0)
        fall = slope * law.doublings(math.log2(rows / curve.known))
        if self.shape is not None:
            fall += law.follows * (self.shape(curve.known) - self.shape(rows) - fall)
        return float(logs[-1]) - fall

    def bars(self, rows: float) -> tuple[float, float]:
        """Half-widths of the logarithm of the error that hold 68 and 95 %."""
        far = self.law.doublings(max(math.log2(rows / self.curve.known), 0.0))
        parts = np.array([self.curve.noise[-1], 1.0, far])
        inner = self.wider * float(np.linalg.norm(np.multiply(self.law.inner, parts)))
        return inner, self.law.outer * inner

    def change(self, start: float, rows: float) -> tuple[float, float, float]:
        """error(rows)/error(start), and what holds 95 % of such ratios."""
        log = self.log_error(rows) - self.log_error(start)
        near, far = (self.law.doublings(math.log2(n / self.curve.known)) for n in (start, rows))
        level, _, slope = self.law.inner
        spread = math.hypot(level * self.curve.noise[-1], slope)
        half = self.wider * self.law.steep * spread * (far - near)
        return math.exp(log), math.exp(log - half), math.exp(log + half)


@cache
def laws() -> Mapping[str, Law]:
    """By family (accuracy, log_loss, r2, other); with "+theory" where a theory gives the shape."""
    text = files("onegrad.tabular.learning").joinpath("corpus.json").read_text(encoding="utf-8")
    return {name: Law(**one) for name, one in json.loads(text)["laws"].items()}


def curve_of(subsets: Sequence[Subset], score: Score) -> Curve:
    """Means over splits and their relative standard errors.

    The variance between splits is known badly from five of them: half of it is the mean over all
    sizes, relative to the squared error. Splits that judge the same rows again count once. Shares
    of wrong answers have at least their binomial noise, and half an error more than was seen
    where none was.
    """
    errors, judged = [one.errors[score.name] for one in subsets], subsets[-1].judged
    means, shares = np.array([one.mean() for one in errors]), score.family == "accuracy"
    means = np.maximum(means, 0.5 / (judged + 1) if shares else _ZERO * max(means.max(), _ZERO))
    spread = np.array([one.var(ddof=1) if len(one) > 1 else 0.0 for one in errors]) / means**2
    spread = np.minimum(spread, _MOST_NOISE)
    square = (spread + spread.mean()) / 2 / len(errors[0]) * subsets[-1].again
    if shares:
        square = np.maximum(square, np.maximum(1 - means, 0.0) / (means * judged))
    rows = np.array([one.rows for one in subsets], float)
    return Curve(rows, means, np.sqrt(np.maximum(square, 1e-6)))
