"""A mean over draws in the making: what is known at points of its law (averages.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.chance import Law
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution

_SETTLED = 0.5  # of the accuracy: by less than that two rules may differ
_OPEN = 0.1  # of the error estimate of the typical point: the same
WORST = 0.05  # a mean over draws that is not known better than that is refused

Values = dict[tuple[float, ...], Array]


@dataclass(frozen=True)
class OverDraws:
    """How the test error differs between draws of the directions and of the step's chance.

    mean, median, spread : of the test error over draws; spread is a standard deviation
    points : how many problems were solved for it
    variables : how many chance quantities were averaged over
    """

    mean: float
    median: float
    spread: float
    points: int
    variables: int


@dataclass
class Average:
    """One problem's average in the making: values found so far at points of its law.

    left_by_sizes : what finite sizes leave open of losses without a 1/n correction
    """

    law: Law
    solution: Solution
    level: QuadratureLevel
    values: Values = field(default_factory=dict)
    first: Solution | None = None
    flat: bool = False
    left_by_sizes: float = 0.0
    failure: Failure | None = None
    active: list[int] = field(default_factory=list)
    left_out: float = 0.0
    effect: float = 0.0
    spread: float = 0.0
    bend: float = 0.0
    rule_error: float = 0.0
    resolution: float = 0.0
    ratios: list[Array] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    nodes: tuple[Array, Array] = (np.zeros((0, 0)), np.zeros(0))

    def at(self, points: Array) -> Array:
        """(points, outputs) found there."""
        return np.stack([self.values[name] for name in self.law.canonical(points)])

    @property
    def finite(self) -> bool:
        """Whether signs are those of finite sizes at every point: where labels have a surplus."""
        return any(variable.kind == "balance" for variable in self.law.variables)

    @property
    def iterated(self) -> bool:
        """Whether points are found sooner from the typical one. Of the absolute loss they are not:
        samples on the one side of its kink at the one and not at the other do not say the way."""
        loss = self.law.problem.loss
        return not self.solution.squared and (loss.signs or not loss.kink)

    @property
    def farthest(self) -> Array:
        """The typical point, and the node that differs most from it."""
        nodes, weights = self.nodes
        change = np.abs(self.at(nodes)[:, 0] - self.base[0])
        return np.stack([self.law.typical, nodes[np.argmax(np.sqrt(weights) * change)]])

    @property
    def extent(self) -> Array:
        """E|v − v*|/|v' − v*| in units of v*/E v: v* typical, v' farthest, of each output."""
        nodes, weights = self.nodes
        values, (typical, far) = self.at(nodes), self.at(self.farthest)
        mean = weights @ np.abs(values - typical)
        share = np.minimum(ratio(mean, np.abs(far - typical)), 1.0)
        return share * ratio(typical, weights @ values)

    @property
    def base(self) -> Array:
        return self.at(self.law.typical[None])[0]

    @property
    def mean_ratio(self) -> Array:
        """The mean over the rule, in units of the typical point."""
        nodes, weights = self.nodes
        return ratio(weights @ self.at(nodes), self.base)

    @property
    def scatter(self) -> float:
        """Standard deviation over the nodes of the rule, relative: signs that differ may do what
        all of the same sign do not."""
        nodes, weights = self.nodes
        change = relative(self.at(nodes) - self.base, self.base)
        return largest(np.sqrt(weights @ change**2))

    @property
    def moved(self) -> float:
        """By how much the last rule differs from the one before, in test and training error."""
        last, before = self.ratios[-1], self.ratios[-2]
        return largest(ratio(last[:2], before[:2]) - 1)

    def enough(self, theory: Theory) -> float:
        """By less than that two rules or resolutions may differ: of the accuracy asked for, or of
        what the solution and finite sizes leave open anyway; twice that with losses other than the
        squared one, whose terms of order 1/n are not known."""
        left = self.solution.error_estimate + self.left_by_sizes
        known = 0.0 if theory.draft else _OPEN * left
        least = max(_SETTLED * theory.accuracy, min(known, 0.5 * WORST))
        return least if self.solution.squared else 2 * least


def ratio(value: Array, base: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(value / base)


def relative(change: Array, base: Array) -> Array:
    """Of test and training error."""
    return ratio(change[..., :2], base[:2])


def largest(values: Array) -> float:
    """Of those of test and training error; an error of training that is 0 has no ratio."""
    return float(np.max(np.where(np.isnan(values[:2]), 0.0, np.abs(values[:2]))))
