"""Losses other than the squared one on a given first layer (docs/book/any-first-layer.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.layers.matrix_responses import (
    NodeSolution,
    Quadratics,
    inverse_of,
    solve_nodes,
)
from onegrad.theory.readout.calibration import Chance, signs_at
from onegrad.theory.readout.moments import LossMoments
from onegrad.theory.readout.reweighted import LossProblem, errors_with_loss, solve_loss
from onegrad.theory.readout.stage import State

_TOLERANCE = 1e-4  # of f over its size, log q and log χ
_CENTRE = 1e-3  # nodes of the label surplus nearer to zero count as zero


@dataclass(frozen=True)
class MatrixStage:
    """The actual matrix of a first layer: eq. loss-equations with

        M = (λ + Σ_s ω_sD_sQ_s)⁻¹,  χ_s = tr(Q_sM)/m,  a = M Σ_s (ω_sD_sf_s + ω_s E ρ)ν_s
        f_s = ν_sᵀa,  q_s = aᵀC_sa + tr(Q_s M L M)/m,  L = Σ_s ω_s E ρ² Q_s

    begin : the solution of the squared loss on this rule
    """

    rule: Quadratics
    samples: int
    ridge: float
    begin: NodeSolution

    @property
    def weights(self) -> Array:
        return self.rule.weights

    @property
    def labels(self) -> Array:
        return self.rule.y

    @property
    def noise(self) -> Array:
        return np.broadcast_to(np.asarray(self.rule.noise, float), self.rule.y.shape)

    @property
    def root(self) -> Array:
        """Nodes far out count by their share."""
        return np.asarray(np.sqrt(np.tile(self.weights, 3) * len(self.weights))[None])

    def with_labels(self, weights: Array, labels: Array) -> MatrixStage:
        return replace(self, rule=self.rule.with_labels(labels, 1 - labels**2, weights))

    def with_ridge(self, factor: float) -> MatrixStage:
        chi, ridge = float(self.begin.responses.mean()), factor * self.ridge
        begin = solve_nodes(self.rule, self.samples, ridge, chi)
        return replace(self, ridge=ridge, begin=begin)

    def of_squared_loss(self, tolerance: float) -> State[NodeSolution]:
        return state_of(self.begin)

    def step(
        self, at: State[NodeSolution], found: LossMoments, tolerance: float
    ) -> State[NodeSolution]:
        """One inverse and three products of k × k matrices: one round of the fixed point, which
        leaves nothing to a `tolerance`."""
        q, w = self.rule, self.weights * found.slope
        system = q.total(w)
        system.flat[:: q.width + 1] += self.ridge
        inverse = inverse_of(system)
        readout = inverse @ q.cross(w * at.prediction + self.weights * found.mean)
        load = q.total(self.weights * found.square)
        moved = inverse @ load @ inverse / self.samples
        # only the second part contains the means
        variance = q.traces(moved + np.outer(readout, readout), mean=False)
        variance += q.squares_of_means(moved)
        return state_of(replace(
            at.inner, responses=q.traces(inverse) / self.samples, inverse=inverse,
            readout=readout, prediction=q.mean(readout), variance=variance, load=load,
        ))  # fmt: skip

    def size(self, change: Array) -> Array:
        return np.asarray(np.abs(change) @ np.tile(self.weights, 3))


def state_of(nodes: NodeSolution) -> State[NodeSolution]:
    return State(nodes.prediction, nodes.variance, nodes.responses, nodes)


def carried(found: NodeSolution, rule: Quadratics, samples: int) -> State[NodeSolution]:
    """A solution at the nodes of another rule, to start from."""
    return State(*found.at(rule, samples), rule.traces(found.inverse) / samples, found)


@dataclass(frozen=True)
class LossOnLayer:
    """A rule on one layer, with the nodes of signs if labels are ±1.

    deviation : of the surplus of labels (`surplus_deviation`), 0 where it does not count; None
        where nothing of one training set does, in the limit
    """

    problem: Problem
    stage: MatrixStage
    looked: Quadratics | None
    deviation: float | None

    def solved(self, near: State[NodeSolution] | None = None) -> State[NodeSolution]:
        """Of the training set with as many labels of each sign as the law says.

        near : a state that is not far
        """
        return solve_loss(replace(self._asked, near=near), _TOLERANCE)

    def numbers(self, state: State[NodeSolution], signs: bool = True) -> Array:
        """Test error, training error and objective, test and training loss, misclassification and
        calibration there; without `signs` the first five."""
        own = self._signs([state.inner])[0] if signs else ()
        return np.array([*self._errors(self._asked, state), *own])

    def over_surplus(self, state: State[NodeSolution]) -> Array:
        """The same, means over training sets with more labels of one sign or of the other."""
        if not self.deviation:
            return self.numbers(state)
        rows, states = [], []
        nodes, probabilities = gauss_hermite(3)
        for z in nodes:
            one, found = self._asked, state
            if abs(z) > _CENTRE:
                one = replace(one, surplus=self.deviation * z, near=state)
                found = solve_loss(one, _TOLERANCE)
            rows.append(self._errors(one, found))
            states.append(found.inner)
        return np.asarray(probabilities @ np.column_stack([rows, self._signs(states)]))

    @property
    def _asked(self) -> LossProblem[NodeSolution]:
        return LossProblem(self.stage, self.problem.loss, self.problem.labels_binary)

    @staticmethod
    def _errors(asked: LossProblem[NodeSolution], state: State[NodeSolution]) -> list[float]:
        e = errors_with_loss(asked, state)
        found = e.test_error, e.train_error, e.train_objective, e.test_loss, e.train_loss
        return [float(value) for value in found]

    def _signs(self, parts: Sequence[NodeSolution]) -> list[tuple[float, float]]:
        """Misclassification and calibration of each."""
        looked, p = self.looked, self.problem
        if looked is None:
            return [(math.nan, math.nan)] * len(parts)
        if self.deviation is None or p.loss.name != "logistic":
            return [signs_of(p, looked, one) for one in parts]
        shift = np.zeros(len(looked))  # of outputs, where the surplus is larger by one
        if len(parts) > 1:
            z = gauss_hermite(len(parts))[0]
            low, high = (looked.mean(parts[i].readout) for i in (0, -1))
            shift = (high - low) / (z[-1] - z[0])
        return [
            signs_of(p, looked, one, _TrainingSets(looked, one, p.samples, shift)) for one in parts
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
    """`signs_at`, at the nodes of a rule."""
    outputs = (rule.weights, rule.y, *found.at(rule, problem.samples))
    return signs_at(problem.loss.name == "logistic", *outputs, chance)
