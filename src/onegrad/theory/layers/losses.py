"""Losses other than the squared one on a given first layer: what is found out on the first of
several layers of a problem, and is as good for the others.

A finer rule for κ and training sets with more labels of one sign change the errors of all layers of
a problem alike: where that is little, the others have the ratios of the first
(docs/book/any-first-layer.md).
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
from onegrad.theory.readout.calibration import Chance, calibration_error, misclassified
from onegrad.theory.readout.label_surplus import with_surplus
from onegrad.theory.readout.matrix_loss import LossSolution, on_fresh_samples, solve_matrix_loss

# Relative change of errors up to which what a finer rule or the surplus of labels does on the first
# layer serves for the others of a problem
_ALIKE = 0.05
_CENTRE = 1e-3  # nodes of the label surplus nearer to zero count as zero


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
    excess : excess of the squared calibration error, which may itself be near zero
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

    deviation : of the surplus of labels (`surplus_deviation`), 0 where it does not count; None
        where nothing of one training set does, in the limit
    """

    problem: Problem
    rule: Quadratics
    looked: Quadratics | None
    found: LossSolution
    deviation: float | None

    @classmethod
    def at(
        cls, problem: Problem, rules: tuple[Quadratics, Quadratics | None], begin: NodeSolution,
        deviation: float | None,
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
        assert self.deviation is not None
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
        signs = self._signs([one.nodes for _, one in parts])
        rows = [
            (*one.nodes.errors, one.test_loss, one.train_loss, *own)
            for (_, one), own in zip(parts, signs, strict=True)
        ]
        *errors, test_loss, train_loss, wrong, calibration = np.array([p for p, _ in parts]) @ rows
        return LossErrors(MatrixErrors(*errors), test_loss, train_loss, wrong, calibration)

    def _signs(self, parts: Sequence[NodeSolution]) -> list[tuple[float, float]]:
        """Misclassification and calibration of each."""
        if self.looked is None:
            return [(math.nan, math.nan)] * len(parts)
        if self.deviation is None or self.problem.loss.name != "logistic":
            return [signs_of(self.problem, self.looked, one) for one in parts]
        shift = np.zeros(len(self.looked))  # change of the outputs if the surplus grows by one
        if len(parts) > 1:
            z = gauss_hermite(len(parts))[0]
            low, high = (self.looked.mean(parts[i].readout) for i in (0, -1))
            shift = (high - low) / (z[-1] - z[0])
        chances = (_TrainingSets(self.looked, one, self.problem.samples, shift) for one in parts)
        return [
            signs_of(self.problem, self.looked, one, chance)
            for one, chance in zip(parts, chances, strict=True)
        ]


@dataclass(frozen=True)
class _TrainingSets:
    """Var Σ_s u_s f_s from one training set to the next, cᵀMLMc/m with c = Σ_s u_sν_s, but for what
    the surplus of labels explains, (Σ_s u_s ∂f_s/∂z)².

    shift : (S,) ∂f_s/∂z
    """

    rule: Quadratics
    found: NodeSolution
    samples: int
    shift: Array

    def __call__(self, along: Array) -> Array:
        moved = np.stack([self.found.inverse @ self.rule.cross(u) for u in along.T], axis=1)
        variance = np.einsum("ib,ij,jb->b", moved, self.found.load, moved, optimize=True)
        return np.asarray(np.maximum(variance / self.samples - (self.shift @ along) ** 2, 0.0))


def signs_of(
    problem: Problem, rule: Quadratics, found: NodeSolution, chance: Chance | None = None
) -> tuple[float, float]:
    """Misclassification, and calibration of the logistic loss, with the chance of one training set
    (`calibration_error`)."""
    outputs = (rule.weights, rule.y, *found.at(rule, problem.samples))
    logistic = problem.loss.name == "logistic"
    return misclassified(*outputs), calibration_error(*outputs, chance) if logistic else math.nan


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
