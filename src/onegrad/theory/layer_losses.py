"""Losses other than the squared one on a given first layer: what is found out on the first of
several layers of a problem, and is as good for the others.

A finer rule for κ and training sets with more labels of one sign change the errors of all layers of
a problem alike: where that is little, the others have the ratios of the first (docs/layers.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.layers.matrix_responses import NodeSolution, Quadratics
from onegrad.theory.losses.calibration import calibration_error, misclassified
from onegrad.theory.losses.label_surplus import with_surplus
from onegrad.theory.losses.matrix_loss import LossSolution, on_fresh_samples, solve_matrix_loss

_ALIKE = 0.05  # changes up to this are those of every layer of a problem
_CENTRE = 1e-3  # of the rule for the surplus of labels


@dataclass(frozen=True)
class LossErrors:
    """Errors of a readout with its loss; misclassification and calibration NaN where there are
    none."""

    errors: MatrixErrors
    test_loss: float
    train_loss: float
    misclassification: float = math.nan
    calibration: float = math.nan

    @property
    def numbers(self) -> Array:
        """Without the signs."""
        return np.array([*self.errors, self.test_loss, self.train_loss])

    def apart(self, other: LossErrors) -> float:
        """The largest relative difference of errors and losses."""
        return float(np.abs(_ratio(other.numbers, self.numbers) - 1)[[0, 1, 3, 4]].max())


@dataclass(frozen=True)
class LossRatios:
    """What changes errors of all layers alike.

    numbers : ratios of `LossErrors.numbers`; wrong : of misclassification
    excess : of the square of the calibration error, which may be next to nothing itself
    """

    numbers: Array
    wrong: float = 1.0
    excess: float = 0.0

    @classmethod
    def between(cls, before: LossErrors, after: LossErrors) -> LossRatios:
        wrong = _ratio(*(np.array(x.misclassification) for x in (after, before)))
        excess = after.calibration**2 - before.calibration**2
        return cls(_ratio(after.numbers, before.numbers), float(wrong), excess)

    @property
    def little(self) -> bool:
        return bool(np.abs(self.numbers - 1).max() <= _ALIKE)

    def after(self, other: LossRatios) -> LossRatios:
        """Both changes."""
        return LossRatios(
            self.numbers * other.numbers, self.wrong * other.wrong, self.excess + other.excess
        )

    def times(self, found: LossErrors) -> LossErrors:
        *errors, test_loss, train_loss = (self.numbers * found.numbers).tolist()
        calibration = found.calibration
        if not math.isnan(calibration):
            calibration = math.sqrt(max(0.0, calibration**2 + self.excess))
        return LossErrors(
            MatrixErrors(*errors), test_loss, train_loss, self.wrong * found.misclassification,
            calibration,
        )  # fmt: skip


def _ratio(after: Array, before: Array) -> Array:
    return np.divide(after, before, out=np.ones_like(before), where=before != 0)


@dataclass(frozen=True)
class LossOnLayer:
    """A rule on one layer, with the nodes of signs if labels are ±1, and the readout there.

    deviation : of the surplus of labels (`surplus_deviation`), 0 where it does not count
    """

    problem: Problem
    rule: Quadratics
    looked: Quadratics | None
    found: LossSolution
    deviation: float

    @classmethod
    def at(
        cls, problem: Problem, rules: tuple[Quadratics, Quadratics | None], begin: NodeSolution,
        deviation: float,
    ) -> LossOnLayer:  # fmt: skip
        """From the solution of the squared loss."""
        return cls(problem, *rules, _solved(problem, rules[0], begin), deviation)

    def finer(self, rule: Quadratics, begin: NodeSolution) -> LossOnLayer:
        """By another rule, from this one; begin : its solution of the squared loss"""
        nodes, samples = self.found.nodes, self.problem.samples
        f, variance = nodes.at(rule, samples)
        near = replace(
            begin, prediction=f, variance=variance, responses=rule.traces(nodes.inverse) / samples
        )
        return replace(self, rule=rule, found=_near(self.problem, rule, near, begin))

    @property
    def errors(self) -> LossErrors:
        """Of the training set with as many labels of each sign as the law says."""
        return self._mean([(1.0, self.found)])

    @property
    def over_surplus(self) -> LossErrors:
        """The mean over training sets with more labels of one sign or of the other."""
        parts, rule, problem = [], self.rule, self.problem
        for z, probability in zip(*gauss_hermite(3), strict=True):
            one = self.found
            if abs(z) > _CENTRE:
                shift = self.deviation * z
                weights, y = with_surplus(rule.weights, rule.y, problem.samples, shift)
                drawn = Quadratics(rule.couplings, rule.blocks, weights, y, 1 - y**2, rule.squares)
                one = _near(problem, drawn, self.found.nodes, self.found.nodes)
                one = on_fresh_samples(one, rule, problem.loss, binary=True)
            parts.append((float(probability), one))
        return self._mean(parts)

    def _mean(self, parts: Sequence[tuple[float, LossSolution]]) -> LossErrors:
        rows = [(*x.nodes.errors, x.test_loss, x.train_loss, *self._signs(x)) for _, x in parts]
        *errors, test_loss, train_loss, wrong, calibration = np.array([p for p, _ in parts]) @ rows
        return LossErrors(MatrixErrors(*errors), test_loss, train_loss, wrong, calibration)

    def _signs(self, found: LossSolution) -> tuple[float, float]:
        """Misclassification and calibration."""
        if self.looked is None:
            return math.nan, math.nan
        return signs_of(self.problem, self.looked, found.nodes)


def signs_of(problem: Problem, rule: Quadratics, found: NodeSolution) -> tuple[float, float]:
    """Misclassification, and calibration of the logistic loss."""
    outputs = (rule.weights, rule.y, *found.at(rule, problem.samples))
    logistic = problem.loss.name == "logistic"
    return misclassified(*outputs), calibration_error(*outputs) if logistic else math.nan


def _solved(
    problem: Problem, rule: Quadratics, begin: NodeSolution, smooth: bool = True
) -> LossSolution:
    numbers = problem.samples, problem.effective_ridge
    return solve_matrix_loss(rule, *numbers, problem.loss, begin, problem.labels_binary, smooth)


def _near(
    problem: Problem, rule: Quadratics, near: NodeSolution, begin: NodeSolution
) -> LossSolution:
    """From a solution that is not far, or where that does not settle by smoother losses."""
    try:
        return _solved(problem, rule, near, smooth=False)
    except ConvergenceError:
        return _solved(problem, rule, begin)
