"""One resolution of the theory of mixtures: nodes of the data, features there, and their errors.

Problems whose tables have the same shape are solved as a stack. All errors are plain mean squared
errors, without ½ (docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.hermite import Array
from onegrad.theory.features import (
    Nodes,
    data_nodes,
    features_at,
    single_axes,
    with_lengths,
)
from onegrad.theory.fixed_point import Features, FixedPoint, solve_fixed_point
from onegrad.theory.geometry import Geometry, Labels, Training
from onegrad.theory.neurons import Neurons, pure_types
from onegrad.theory.nodes import Effort, quasi_gaussian
from onegrad.theory.second_moments import Errors, errors
from onegrad.theory.symmetry import exact_radius

Refusal = AssumptionError | ConvergenceError
_SIGN_NODES = 256  # nodes of a draft's classification error
_STACK = 400_000  # types × nodes that are solved together


@dataclass(frozen=True)
class Task:
    """A problem in the theory's terms; its neurons are the pure ones unless they are given."""

    geometry: Geometry
    labels: Labels
    training: Training
    neurons: Neurons | None = None


@dataclass(frozen=True)
class Solution:
    """What the theory says about one problem, and how far to trust it.

    test_error, train_error : mean squared errors; train_objective adds λ_eff‖a‖²
    component_test, component_train : (C,) the same within each component (NaN for weight 0)
    classification_error : of sign(f) for labels ±1, else None
    status : "ok", "draft" (one coarse resolution, no error estimate), "inaccurate" when `accuracy`
        was not reached, or "near-interpolation" when fewer than ten degrees of freedom are left;
        the last two raise unless told otherwise
    degrees_left : m − df₂, the samples beyond those that the readout uses up. The theory is an
        expansion in its inverse: at k ≈ m with next to no ridge it is of order one, and one
        training set differs from the next by a large factor
    error_estimate : relative, the larger of test and train, from two resolutions; NaN for a draft
    iterations, residual : of the fixed point at the finer resolution
    types, nodes : number of neuron types and of data nodes at the finer resolution
    geometry : whose coordinates nodes and neurons have: the problem's own, or where many
        directions are alike the one with an axis for each group of them (symmetry.py)
    """

    test_error: float
    train_error: float
    train_objective: float
    component_test: Array
    component_train: Array
    classification_error: float | None
    status: str
    error_estimate: float
    degrees_left: float
    iterations: int
    residual: float
    types: int
    nodes: int
    by_node: Errors
    where: Nodes
    neurons: Neurons
    geometry: Geometry


@dataclass(frozen=True)
class _Prepared:
    """A task with its neurons, nodes and features at one resolution."""

    task: Task
    effort: Effort
    neurons: Neurons
    where: Nodes
    features: Features


def resolving(geometry: Geometry, labels: Labels, effort: Effort) -> Effort:
    """The effort that a problem needs at that level.

    What separates components is learned to a higher degree than a smooth teacher. With groups
    there are few axes, and no reason to save on them.
    """
    if labels.separating:
        effort = replace(effort, tolerance=1e-2 * effort.tolerance)
    if geometry.groups:
        finer = 0.05 if labels.separating else 0.5
        effort = replace(effort, tolerance=finer * effort.tolerance)
        if effort.points == 0:  # two nodes along the strongest axes would not do for ReLU
            count = max(effort.raised, len(geometry.groups))
            effort = replace(effort, raised=count, most=2 * effort.most)
    return effort


def _prepare(task: Task, effort: Effort) -> _Prepared:
    geometry, labels, training = task.geometry, task.labels, task.training
    effort = resolving(geometry, labels, effort)
    neurons = task.neurons or pure_types(geometry, labels, training, effort)
    where = data_nodes(geometry, labels, neurons, effort)
    features = features_at(geometry, labels, training, neurons, where)
    return _Prepared(task, effort, neurons, where, features)


def _same_features(one: Task, other: Task) -> bool:
    """Whether two tasks differ in nothing but ridge and samples of the readout."""
    if one.neurons is not None or one.geometry is not other.geometry:
        return False
    free = replace(one.training, ridge=other.training.ridge, samples=other.training.samples)
    return free == other.training and one.labels == other.labels and other.neurons is None


def solve_tasks(
    tasks: Iterable[Task], effort: Effort, tolerance: float = 1e-10, finite_size: bool = False
) -> list[Solution | Refusal]:
    """One resolution of every task, no error estimates; a refusal in the place of what fails.

    Neighbours that differ only in ridge or samples share their features, and tables of the same
    shape are solved together.
    """
    found: dict[int, Solution | Refusal] = {}
    waiting: dict[tuple[object, ...], list[tuple[int, _Prepared]]] = {}
    last: _Prepared | None = None

    def solve(batch: list[tuple[int, _Prepared]]) -> None:
        parts = [prepared for _, prepared in batch]
        found.update(zip((i for i, _ in batch), _solve(parts, tolerance, finite_size), strict=True))

    for index, task in enumerate(tasks):
        try:
            if last is not None and _same_features(last.task, task):
                last = replace(last, task=task)
            else:
                last = _prepare(task, effort)
        except (AssumptionError, ConvergenceError) as refusal:
            found[index] = refusal
            continue
        features = last.features
        batch = waiting.setdefault((features.mean.shape, features.tilt is None), [])
        batch.append((index, last))
        if finite_size or features.harmonics or (len(batch) + 1) * features.mean.size > _STACK:
            solve(batch)
            batch.clear()
    for batch in waiting.values():
        solve(batch)
    return [found[index] for index in sorted(found)]


def _solve(
    batch: Sequence[_Prepared], tolerance: float, finite_size: bool
) -> list[Solution | Refusal]:
    if not batch:
        return []
    trainings = [prepared.task.training for prepared in batch]
    alone = len(batch) == 1
    try:
        point = solve_fixed_point(
            batch[0].features if alone else Features.stack([p.features for p in batch]),
            trainings[0].samples if alone else np.array([float(t.samples) for t in trainings]),
            trainings[0].ridge if alone else np.array([t.ridge for t in trainings]),
            tolerance=tolerance, finite_size=finite_size,
        )  # fmt: skip
        result = errors(point)
        if alone:
            return [_solution(batch[0], point, result)]
        return [_solution(p, point.take(i), result.take(i)) for i, p in enumerate(batch)]
    except (AssumptionError, ConvergenceError) as refusal:
        if alone:
            return [refusal]
    return [_solve([one], tolerance, finite_size)[0] for one in batch]


def _solution(prepared: _Prepared, point: FixedPoint, result: Errors) -> Solution:
    task, where = prepared.task, prepared.where
    geometry, labels, training = task.geometry, task.labels, task.training
    test = np.full(len(geometry.weights), np.nan)
    train = test.copy()
    for c in range(len(geometry.weights)):
        mine = where.component == c
        if np.any(mine):
            w = where.weights[mine] / where.weights[mine].sum()
            test[c], train[c] = w @ result.node_test[mine], w @ result.node_train[mine]
    wrong = None
    if labels.binary:
        wrong = _wrong_sign(geometry, labels, training, prepared.neurons, result, prepared.effort)
    return Solution(
        float(result.test_error), float(result.train_error), float(result.train_objective),
        test, train, wrong, "ok", np.nan, float(training.samples / result.response.amplification),
        int(point.iterations), float(point.residual),
        len(prepared.neurons.bulk), len(where.weights), result, where, prepared.neurons, geometry,
    )  # fmt: skip


def errors_at(
    labels: Labels, training: Training, solution: Solution, where: Nodes
) -> tuple[Array, Array]:
    """E[f|κ] and Var[f|κ] at nodes of one's own choice, in the coordinates of the solution.

    Weights of the nodes play no part.
    """
    features = features_at(solution.geometry, labels, training, solution.neurons, where)
    prediction = solution.by_node.readout @ features.mean
    return prediction, solution.by_node.response.variance_at(features)


def _wrong_sign(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    neurons: Neurons,
    result: Errors,
    effort: Effort,
) -> float:
    """P(sign f ≠ y): f given κ is N(f_s, q_s). It varies faster with κ than its moments do,
    so it has nodes of its own, quasi-Monte Carlo."""
    assert labels.values is not None
    single, axes = geometry.rank - len(geometry.groups), single_axes(geometry, neurons)
    points = _SIGN_NODES if geometry.groups else effort.points
    z, w = quasi_gaussian(neurons.vectors.shape[1], points or _SIGN_NODES)
    total = 0.0
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        kappa = z.copy()
        kappa[:, :single] = geometry.means[c, :single] + (
            z[:, :single] @ geometry.roots[c, :single, :single]
        )
        kappa = with_lengths(geometry, c, axes, kappa, exact_radius)
        nodes = Nodes(kappa, np.full(len(w), c), w, effort)
        features = features_at(geometry, labels, training, neurons, nodes)
        margin = labels.values[c] * (result.readout @ features.mean)
        spread = np.sqrt(np.maximum(result.response.variance_at(features), 1e-300))
        total += float(weight * w @ ndtr(-margin / spread))
    return total
