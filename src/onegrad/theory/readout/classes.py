"""Several classes, one output for each: errors add up, and the largest output is the class.

Outputs share the features, and with them the fixed point; each has a problem of its own with the
labels 1 and 0. Given κ they are jointly Gaussian, N(f_s, Q_s), and q is quadratic in the labels:
Q^{cc'} = ½[q(y_c + y_c') − q(y_c) − q(y_c')] (docs/book/indices-and-classes.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.labels import ComponentLabels
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.conditional import simplified
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.features import dropped, features_at
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.designs import quasi_gaussian
from onegrad.theory.nodes.population import Nodes, data_nodes, quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.errors import NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.resolution import level_for, strata
from onegrad.theory.task import Task

_LEVEL = 1  # level of the nodes
_FEW_AXES = 6  # most axes for which a draft uses products of rules
_SCATTERED = 192  # quasi-random points of a draft with more axes
_POINTS = 256  # quasi-random points for N(f_s, Q_s)
_DRAFT_NODES = 256  # nodes at which a draft computes it
_SCALED = (0.8, 1.25)  # factors by which finite size may change the covariance of outputs


def with_values(problem: Problem, values: Sequence[float]) -> Problem:
    """The same problem with one output, and these labels of its components."""
    labels = ComponentLabels(values=tuple(values), noise=problem.label_noise)
    return Problem(
        data=problem.data, labels=labels, network=problem.network, training=problem.training,
        scaling=problem.scaling,
    )  # fmt: skip


def class_problems(problem: Problem) -> list[Problem]:
    """One problem for each output: 1 for its class, 0 for the others. A softmax has no such."""
    if problem.softmax:
        raise AssumptionError(
            f'no theory is known of training.loss = "logistic" with {problem.outputs} classes: in '
            "a softmax the response of a sample is a matrix. Simulate it, or predict loss = "
            '"squared", whose largest output is a class too'
        )
    return [with_values(problem, row) for row in np.eye(problem.outputs).tolist()]


def argmax_error(problem: Problem, geometry: Geometry, test_error: float) -> float:
    """P(argmax_c f_c(x) ≠ class of x) before any step, from N(f_s, Q_s) at nodes of its own; on a
    given first layer see layer_classes.py (eq. largest-output).

    test_error : what a finer theory says about it; Q is scaled by one number to have it
    """
    prediction, covariance, where = output_laws(problem, geometry)
    missed = np.eye(problem.outputs)[where.component] - prediction
    fixed = problem.outputs * problem.label_noise_variance
    fixed += float(where.weights @ np.sum(missed**2, axis=1))
    spread = float(where.weights @ np.trace(covariance, axis1=1, axis2=2))
    if spread > 0:
        covariance = covariance * float(np.clip((test_error - fixed) / spread, *_SCALED))
    return wrong_class(prediction, covariance, where.component, where.weights)


def output_laws(problem: Problem, geometry: Geometry) -> tuple[Array, Array, Nodes]:
    """f (S, K), Q (S, K, K) and the nodes, quasi-random ones of each component
    (eq. largest-output)."""
    return _Outputs.solved(problem, geometry, QuadratureLevel.at(_LEVEL)).laws()


def rough_classes(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes | None = None
) -> tuple[MatrixErrors, float, int]:
    """Errors summed over outputs, P(argmax_c f_c(x) ≠ class of x) and the nodes of one coarse rule:
    a draft, all of it from one fixed point."""
    level = QuadratureLevel.draft()
    if neurons is not None and neurons.vectors.shape[1] > _FEW_AXES:
        level = replace(level, quasi=True, most=_SCATTERED)
    outputs = _Outputs.solved(problem, geometry, level, neurons)
    parts = [(o.test_error, o.train_error, o.train_objective) for o in outputs.of_classes]
    prediction, covariance, where = outputs.laws()
    wrong = wrong_class(prediction, covariance, where.component, where.weights)
    return MatrixErrors(*np.sum(parts, axis=0).tolist()), wrong, len(outputs.nodes.weights)


@dataclass(frozen=True)
class _Outputs:
    """One fixed point with the labels of each class, and of each pair of classes.

    task : one output's task, with the neurons; nodes, level : the rule and its level
    given : the neurons are those of a layer that was drawn
    """

    problem: Problem
    task: Task
    nodes: Nodes
    level: QuadratureLevel
    given: bool
    of_classes: list[NodeErrors]
    of_pairs: dict[tuple[int, ...], NodeErrors]

    @classmethod
    def solved(
        cls,
        problem: Problem,
        geometry: Geometry,
        level: QuadratureLevel,
        neurons: NeuronTypes | None = None,
    ) -> _Outputs:
        unit = np.eye(problem.outputs)
        one = with_values(problem, unit[0].tolist())
        task = simplified(Task(one, geometry, neurons))
        level = level_for(one, task.geometry, level)
        types = neurons or trained_types(one, task.geometry, level)
        nodes = data_nodes(one, task.geometry, types.spread, level)
        features = features_at(one, task.geometry, types, nodes)
        if not features.harmonics:
            ridge = np.asarray(problem.effective_ridge)
            features = features.of_lower_rank(dropped(features, ridge))
        point = solve_fixed_point(features, float(problem.samples), problem.effective_ridge)

        found: list[NodeErrors] = []

        def result(values: Array) -> NodeErrors:
            labelled = replace(features, labels=values[nodes.component]).with_factors(features)
            like = found[0].response if found else None
            found.append(errors_of(replace(point, features=labelled), like))
            return found[-1]

        pairs = itertools.combinations(range(problem.outputs), 2)
        return cls(
            problem, replace(task, neurons=types), nodes, level, neurons is not None,
            [result(row) for row in unit],
            {(i, j): result(unit[i] + unit[j]) for i, j in pairs},
        )  # fmt: skip

    def laws(self) -> tuple[Array, Array, Nodes]:
        """See `output_laws`."""
        one, geometry, types = self.task.problem, self.task.geometry, self.task.neurons
        assert types is not None
        points = self.level.points or _DRAFT_NODES
        where = quasi_nodes(geometry, points, types.vectors.shape[1], self.level)
        there = features_at(one, geometry, types, where)
        groups, first = strata(self.problem, self.nodes), self.of_classes[0]
        tables, means = first.response.tables_at(there), first.solved_means(there.mean)

        def square(result: NodeErrors) -> Array:
            fluctuation = result.mean_fluctuation(means, groups, self.given)
            return result.response.variance_at(there, tables) + fluctuation

        def solved(group: tuple[int, ...]) -> tuple[Array, Array]:
            one = self.of_pairs[group] if len(group) > 1 else self.of_classes[group[0]]
            return one.readout @ there.mean, square(one)

        return *joint_law(len(self.of_classes), solved), where


def joint_law(
    count: int, solved: Callable[[tuple[int, ...]], tuple[Array, Array]]
) -> tuple[Array, Array]:
    """f (S, K) and Q (S, K, K) of K outputs: variances are quadratic in the labels.

    solved : f and q of the readout with the labels 1 of one class, or of two, and 0 of all others
    """
    alone = [solved((c,)) for c in range(count)]
    covariance = np.empty((len(alone[0][0]), count, count))
    for c, (_, variance) in enumerate(alone):
        covariance[:, c, c] = variance
    for i, j in itertools.combinations(range(count), 2):
        shared = 0.5 * (solved((i, j))[1] - alone[i][1] - alone[j][1])
        covariance[:, i, j] = covariance[:, j, i] = shared
    return np.stack([f for f, _ in alone], axis=1), covariance


def wrong_class(prediction: Array, covariance: Array, owner: np.ndarray, weights: Array) -> float:
    """Σ_s ω_s P(argmax N(f_s, Q_s) ≠ class of s)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    z, w = quasi_gaussian(prediction.shape[1], _POINTS)
    drawn = prediction[:, None, :] + np.einsum("sij,pj->spi", root, z)
    wrong = (drawn.argmax(axis=2) != owner[:, None]) @ w
    return float(weights @ wrong)
