"""Means of errors over first layers that were drawn, and how well they are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri, stdtrit

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.theory.layers.any_layer import LayerErrors
from onegrad.theory.layers.matrix_errors import MatrixErrors

# Errors of a training loss are relative to at least this share of the test loss
_SMALL_LOSS = 0.1
# Assumed layer-to-layer scatter of the bias of rough errors, as a share of the bias
_OTHER_LAYERS = 0.2
# Sampling stops when the scatter is this share of the accuracy or of the ratio's error
_LITTLE = 0.5
_BESIDE = 0.1  # stop sampling when the standard error is below this share of the other errors
_FEWEST_CONTROLLED = 6  # fewest layers for which label power is used as a control variate
_WORTH_IT = 0.7  # use control variates if they reduce the standard error below this factor
# Quantiles of Student's law. Of what an answer states: one in a hundred is further off by bad luck
# of its layers. Of stopping: the scatter of few layers is small by chance now and then, and it is
# looked at after every layer; a mean known to 1.4 % was taken for one known to 0.14 % without this.
STATED, _STOPPING = 0.995, 0.9995
# Ratios that Student's quantile assumes at least: a floor bounds the scatter of fewer
_FEWEST_RATIOS = 4
# Populations drawn for the mean label power: one index, several indices
_POPULATIONS, _FEWER = 512, 64
_APART = 10**6  # offset of their seeds, so that none is a repetition's seed


@dataclass
class LabelPower:
    """Var y of the populations that first layers were drawn for, one after the other: a control
    variate, because its mean over populations is known from many that no layer is drawn for.

    drawn : (layers,) Var y of each
    """

    problem: Problem
    seed: int
    drawn: list[float] = field(default_factory=list)
    _known: tuple[float, float] | None = None

    @property
    def differs(self) -> bool:
        return float(np.ptp(self.drawn)) > 1e-9 * abs(float(np.mean(self.drawn)))

    @property
    def mean(self) -> float:
        """Of many populations where they differ, else of those of the layers."""
        return self.expected[0] if self.differs else float(np.mean(self.drawn))

    @property
    def expected(self) -> tuple[float, float]:
        """E Var y and its standard error."""
        if self._known is None:
            count = _POPULATIONS if self.problem.joint_link is None else _FEWER
            many = [
                self.problem.instance(Streams(self.seed, _APART + j, theory=True)).label_variance
                for j in range(count)
            ]
            self._known = float(np.mean(many)), float(np.std(many) / math.sqrt(count))
        return self._known


def over_layers(
    found: Sequence[LayerErrors],
    rough: Sequence[MatrixErrors] = (),
    power: LabelPower | None = None,
) -> tuple[Array, Array]:
    """Means of the three errors and of test and training loss, and their standard errors, 0 for a
    single layer.

    Where more layers are known roughly, by errors c instead of f,

        E f ≈ (Σ f/Σ c over those known both ways) · mean of all c

    with the relative variances of the mean of c and of the ratio (`_ratio_errors`). Where label
    `power` tells much of what differs between layers, the mean is `_controlled`.
    """
    values = _numbers(found)
    every = _rough_numbers(rough) if len(rough) > len(found) else values
    factor, spread, _ = _controlled(every, power)
    mean = values.mean(axis=0) * factor
    if every is not values:
        spread = np.hypot(spread, _ratio_errors(values, every))
        mean = mean * every.mean(axis=0) / every[: len(found)].mean(axis=0)
    return mean, np.abs(mean) * spread


def _intervals(
    found: Sequence[LayerErrors],
    rough: Sequence[MatrixErrors],
    power: LabelPower | None,
    quantile: float | None,
) -> Array:
    """Standard errors of the means of `over_layers`, relative; with a quantile each times that of
    Student's law for the layers that it was found from, half the width of a confidence interval."""
    values = _numbers(found)
    every = _rough_numbers(rough) if len(rough) > len(found) else values
    _, spread, freedom = _controlled(every, power)
    ratio = np.zeros(values.shape[1]) if every is values else _ratio_errors(values, every)
    if quantile is None:
        return np.hypot(spread, ratio)
    ratios = max(len(values), _FEWEST_RATIOS) - 1
    factor = stdtrit(np.maximum(freedom, 1), quantile)
    return np.hypot(factor * spread, float(stdtrit(ratios, quantile)) * ratio)


def _controlled(c: Array, power: LabelPower | None) -> tuple[Array, Array, Array]:
    """Factors for the means of the columns of c by regression on label power v, and the relative
    standard errors of what is then their mean, with their degrees of freedom,

        c̄ − β(v̄ − E v),   β = cov(c, v)/var v,

    with the variance s²(1/L + (v̄ − E v)²/Σ(v − v̄)²) + β² Var(E v) of L layers, s² what is left
    of c per degree of freedom. 1 and the plain ones where that is not worth it.
    """
    plain, count = _relative_error(c), len(c)
    alone = np.ones(c.shape[1]), plain, np.full(c.shape[1], count - 1.0)
    if power is None or count < _FEWEST_CONTROLLED or not power.differs:
        return alone
    v, mean = np.array(power.drawn[:count]), c.mean(axis=0)
    aside = v - v.mean()
    square = float(aside @ aside)
    slope = aside @ (c - mean) / square
    left = ((c - mean - np.outer(aside, slope)) ** 2).sum(axis=0) / (count - 2)
    if np.all(np.sqrt(left / count) > _WORTH_IT * plain * np.abs(mean)):
        return alone
    expected, error = power.expected
    off = float(v.mean()) - expected
    controlled = mean - slope * off
    spread = np.sqrt(left * (1 / count + off**2 / square) + (slope * error) ** 2)
    used = (controlled > 0) & (spread < _WORTH_IT * plain * controlled)
    factor = np.where(used, controlled / np.where(mean == 0, 1.0, mean), 1.0)
    freedom = np.where(used, count - 2.0, count - 1.0)
    return factor, np.where(used, spread / np.where(used, controlled, 1.0), plain), freedom


def scatter_of(
    found: Sequence[LayerErrors],
    rough: Sequence[MatrixErrors] = (),
    power: LabelPower | None = None,
    quantile: float | None = None,
) -> float:
    """Standard error of the mean over first layers, relative, the largest of test and train and of
    the readout's own loss there; a training loss of next to nothing in units of the test loss. With
    a quantile of Student's law, how far the mean may be from that over all layers."""
    mean = over_layers(found, rough, power)[0]
    wide = np.abs(mean) * _intervals(found, rough, power, quantile)
    least = np.full(len(mean), 1e-300)
    least[4] = _SMALL_LOSS * mean[3]
    kept = [0, 1, 3, 4]
    return float(np.max(wide[kept] / np.maximum(mean, least)[kept]))


def settled(
    found: Sequence[LayerErrors],
    rough: Sequence[MatrixErrors],
    accuracy: float,
    power: LabelPower | None = None,
) -> bool:
    """Whether more layers would tell nothing: their mean is known to half of the accuracy, or to
    the accuracy where rules and sizes leave far more open; or more rough ones are drawn, and their
    own mean is known better than the ratio of errors to them. Known means a standard error, times
    Student's quantile over that of many layers."""
    if len(rough) > len(found):
        c = _rough_numbers(rough)
        ratio = _ratio_errors(_numbers(found), c)
        if np.all((_controlled(c, power)[1] <= _LITTLE * ratio)[:2]):
            return True
    beside = min(accuracy, _BESIDE * _open(found))
    known = scatter_of(found, rough, power, _STOPPING) / float(ndtri(_STOPPING))
    return known <= max(_LITTLE * accuracy, beside)


def _open(found: Sequence[LayerErrors]) -> float:
    """What rules and sizes leave open, relative."""
    return math.hypot(found[0].by_nodes, found[0].by_size)


def tells(found: Sequence[LayerErrors], rough: Sequence[MatrixErrors], accuracy: float) -> bool:
    """Whether rough errors may stand for the layers that follow: their ratio to errors is known
    better than the accuracy asked for, than their own mean, or than what is open anyway."""
    if not (found and rough):
        return False
    c = _rough_numbers(rough)
    least = max(accuracy, _BESIDE * _open(found))
    enough = np.maximum(least, _LITTLE * _relative_error(c))
    return bool(np.all((_ratio_errors(_numbers(found), c) <= enough)[:2]))


def _ratio_errors(values: Array, c: Array) -> Array:
    """Of the ratio of errors to rough ones: its scatter, and from so few no less than a part of
    its distance from one."""
    ratios = values / c[: len(values)]
    least = _OTHER_LAYERS * np.abs(ratios.mean(axis=0) - 1) / len(values)
    return np.maximum(_relative_error(ratios), least)


def _numbers(found: Sequence[LayerErrors]) -> Array:
    return np.array([(*one.errors, one.test_loss, one.train_loss) for one in found])


def _rough_numbers(rough: Sequence[MatrixErrors]) -> Array:
    return np.array([(*one, one.test_error, one.train_error) for one in rough])


def _relative_error(values: Array) -> Array:
    """Standard error of the mean of rows, in units of it; 0 for one row."""
    draws = len(values)
    if draws == 1:
        return np.zeros(values.shape[1])
    size = np.maximum(np.abs(values.mean(axis=0)), 1e-300)
    return np.asarray(values.std(axis=0, ddof=1) / size / math.sqrt(draws))
