"""Means of errors over first layers that were drawn, and how well they are known.

Some layers are solved for every node, f; all are known roughly, by errors c with one response for
all nodes, which tell what differs between layers:

    E f ≈ (Σ f/Σ c over those known both ways) · mean of all c
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.theory.draws import relative_error
from onegrad.theory.layers.any_layer import LayerErrors
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.policy import Policy

_ERRORS = [0, 1, 3, 4]  # of the numbers of a layer: test, train, and the readout's own loss there
# Populations drawn for the mean label power: one index, several indices
_POPULATIONS, _FEWER = 512, 64
_APART = 10**6  # offset of their seeds, so that none is a repetition's seed
_RARER = 10  # a mean is looked at after every layer: so much rarer it may be off when that ends


@dataclass
class LabelPower:
    """Var y of the populations that first layers were drawn for, one after the other: a control
    variate, because its mean over populations is known from many that no layer is drawn for.

    drawn : (layers,) Var y of each
    """

    problem: Problem
    seed: int
    drawn: list[float] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        return float(np.ptp(self.drawn)) > 1e-9 * abs(float(np.mean(self.drawn)))

    @property
    def mean(self) -> float:
        """Of many populations where they differ, else of those of the layers."""
        return self.expected[0] if self.differs else float(np.mean(self.drawn))

    @cached_property
    def expected(self) -> tuple[float, float]:
        """E Var y and its standard error."""
        count = _POPULATIONS if self.problem.joint_link is None else _FEWER
        many = [
            self.problem.instance(Streams(self.seed, _APART + j, theory=True)).label_variance
            for j in range(count)
        ]
        return float(np.mean(many)), float(np.std(many) / math.sqrt(count))


@dataclass(frozen=True)
class LayerMeans:
    """Of the three errors, and of test and training loss.

    found : of layers that were solved for every node
    rough : errors c of these layers and of more; or none
    power : of the labels that the layers were drawn for, a control variate
    """

    found: Sequence[LayerErrors]
    rough: Sequence[MatrixErrors] = ()
    power: LabelPower | None = None
    policy: Policy = field(default=Policy(), repr=False)

    @property
    def layers(self) -> int:
        return max(len(self.found), len(self.rough))

    @cached_property
    def _values(self) -> Array:
        return np.array([(*one.errors, one.test_loss, one.train_loss) for one in self.found])

    @cached_property
    def _rough(self) -> Array:
        return np.array([(*one, one.test_error, one.train_error) for one in self.rough])

    @property
    def _by_ratio(self) -> bool:
        return len(self.rough) > len(self.found)

    @property
    def _every(self) -> Array:
        return self._rough if self._by_ratio else self._values

    @property
    def mean(self) -> Array:
        mean = self._values.mean(axis=0) * self._controlled[0]
        if self._by_ratio:
            mean = mean * self._rough.mean(axis=0) / self._rough[: len(self.found)].mean(axis=0)
        return np.asarray(mean)

    @property
    def standard_error(self) -> Array:
        """0 for a single layer."""
        return np.abs(self.mean) * self._spread()

    @property
    def controlled(self) -> bool:
        """Whether label power is used."""
        return bool(np.any(self._controlled[0] != 1))

    def scatter(self, quantile: float | None = None) -> float:
        """Standard error of the mean, relative, the largest of test and train and of the readout's
        own loss there; a training loss of next to nothing in units of the test loss. With a
        quantile of Student's law, how far the mean may be from the one over all layers."""
        mean = self.mean
        least = np.full(len(mean), 1e-300)
        least[4] = self.policy.least_loss * mean[3]
        wide = np.abs(mean) * self._spread(quantile)
        return float(np.max(wide[_ERRORS] / np.maximum(mean, least)[_ERRORS]))

    def settled(self, accuracy: float) -> bool:
        """Whether more layers would tell nothing: their mean is known to half of the accuracy, or
        to the accuracy where rules and sizes leave far more open; or more rough ones are drawn, and
        their own mean is known better than the ratio of errors to them. Known means a standard
        error, times Student's quantile over the one for many layers."""
        policy = self.policy
        if self._by_ratio and self._known(policy.mean_known * self._ratio_error):
            return True
        beside = min(accuracy, policy.layers_beside * self.found[0].open)
        quantile = 1 - (1 - policy.stated) / _RARER
        known = self.scatter(quantile) / float(ndtri(quantile))
        return known <= max(policy.mean_known * accuracy, beside)

    def tells(self, accuracy: float) -> bool:
        """Whether rough errors may stand for the layers that follow: their ratio to errors is known
        better than the accuracy asked for, than their own mean, or than what is open anyway."""
        if not (self.found and self.rough):
            return False
        least = max(accuracy, self.policy.layers_beside * self.found[0].open)
        enough = np.maximum(least, self.policy.mean_known * relative_error(self._rough))
        return bool(np.all((self._ratio_error <= enough)[:2]))

    def _known(self, enough: Array) -> bool:
        """Whether the mean of all layers is known so well in test and training error."""
        return bool(np.all((self._controlled[1] <= enough)[:2]))

    @property
    def _ratio_error(self) -> Array:
        """Of the ratio of errors to rough ones, relative: its scatter, and from so few no less than
        a part of its distance from one."""
        ratios = self._values / self._rough[: len(self._values)]
        off = np.abs(ratios.mean(axis=0) - 1) / len(ratios)
        return np.maximum(relative_error(ratios), self.policy.ratio_floor * off)

    def _spread(self, quantile: float | None = None) -> Array:
        """Standard errors, relative; with a quantile each times that of Student's law for the
        layers that it was found from, half the width of a confidence interval."""
        _, spread, freedom = self._controlled
        ratio = self._ratio_error if self._by_ratio else np.zeros(len(spread))
        if quantile is None:
            return np.hypot(spread, ratio)
        ratios = max(len(self.found), self.policy.layers) - 1  # of fewer their floor counts
        factor = stdtrit(np.maximum(freedom, 1), quantile)
        return np.hypot(factor * spread, float(stdtrit(ratios, quantile)) * ratio)

    @cached_property
    def _controlled(self) -> tuple[Array, Array, Array]:
        """Factors for the means of the columns of c, those of all layers, by regression on label
        power v, and the relative standard errors of what is then their mean, with their degrees of
        freedom,

            c̄ − β(v̄ − E v),   β = cov(c, v)/var v,

        with the variance s²(1/L + (v̄ − E v)²/Σ(v − v̄)²) + β² Var(E v) of L layers, s² what is left
        of c per degree of freedom. 1 and the plain ones where the variance is not halved.
        """
        c, power = self._every, self.power
        plain, count, gain = relative_error(c), len(c), math.sqrt(0.5)
        alone = np.ones(c.shape[1]), plain, np.full(c.shape[1], count - 1.0)
        if power is None or count < self.policy.layers + 2 or not power.differs:
            return alone
        v, mean = np.array(power.drawn[:count]), c.mean(axis=0)
        aside = v - v.mean()
        square = float(aside @ aside)
        slope = aside @ (c - mean) / square
        left = ((c - mean - np.outer(aside, slope)) ** 2).sum(axis=0) / (count - 2)
        if np.all(np.sqrt(left / count) > gain * plain * np.abs(mean)):
            return alone
        expected, error = power.expected
        off = float(v.mean()) - expected
        controlled = mean - slope * off
        spread = np.sqrt(left * (1 / count + off**2 / square) + (slope * error) ** 2)
        used = (controlled > 0) & (spread < gain * plain * controlled)
        factor = np.where(used, controlled / np.where(mean == 0, 1.0, mean), 1.0)
        freedom = np.where(used, count - 2.0, count - 1.0)
        return factor, np.where(used, spread / np.where(used, controlled, 1.0), plain), freedom
