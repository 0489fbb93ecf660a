"""From errors on subsets to errors at more rows: a power law whose slope is drawn towards others'.

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

_ZERO = 1e-6  # of the largest error: below, an error is zero
_MOST_NOISE = 4.0  # variance between splits, relative to the squared error: more says nothing more
_REFERENCE = 256.0  # rows at which the first weight of a law is meant

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

    def features(self) -> Array:
        """What the slope is predicted from: 1, log₂ of the rows over 256, the fall of log error
        over the last doubling, and per doubling over all of them."""
        u, logs = np.log2(self.rows), np.log(self.errors)
        last = (logs[-2] - logs[-1]) / (u[-1] - u[-2])
        whole = (logs[0] - logs[-1]) / (u[-1] - u[0])
        return np.array([1.0, u[-1] - math.log2(_REFERENCE), last, whole])


@dataclass(frozen=True)
class Law:
    """How an error goes on, as learned from a corpus of curves (eqs. curve-law and curve-bars).

    weights : of the features of a curve in its slope, the fall of log error per doubling
    damping : what is left of the slope after each doubling
    follows : of the fall that a theory expects, the share that is added (0: no theory)
    inner, outer : half-widths of log error that hold 68 and 95 %: factors on the standard error
        of the last measured error, on 1, and on the damped number of doublings
    steep : half-width that holds 95 % of the misses of a fall, per damped doubling
    """

    weights: tuple[float, ...]
    damping: float
    follows: float = 0.0
    inner: tuple[float, float, float] = (1.0, 0.05, 0.1)
    outer: tuple[float, float, float] = (2.0, 0.1, 0.2)
    steep: float = 0.1

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
        slope = max(float(np.dot(law.weights, curve.features())), 0.0)
        fall = slope * law.doublings(math.log2(rows / curve.known))
        if self.shape is not None:
            fall += law.follows * (self.shape(curve.known) - self.shape(rows))
        return float(logs[-1]) - fall

    def bars(self, rows: float) -> tuple[float, float]:
        """Half-widths of the logarithm of the error that hold 68 and 95 %."""
        far = self.law.doublings(max(math.log2(rows / self.curve.known), 0.0))
        parts = np.array([self.curve.noise[-1], 1.0, far])
        inner, outer = (
            self.wider * float(np.linalg.norm(np.multiply(width, parts)))
            for width in (self.law.inner, self.law.outer)
        )
        return inner, max(inner, outer)

    def change(self, start: float, rows: float) -> tuple[float, float, float]:
        """error(rows)/error(start), and what holds 95 % of such ratios."""
        log = self.log_error(rows) - self.log_error(start)
        near, far = (self.law.doublings(math.log2(n / self.curve.known)) for n in (start, rows))
        half = self.wider * self.law.steep * (far - near)
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
