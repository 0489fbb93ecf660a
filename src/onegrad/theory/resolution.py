"""One resolution of the theory of mixtures: nodes of the data, features there, and their errors.

Problems whose tables have the same shape are solved as a stack. All errors are plain mean squared
errors, without ½ (docs/book).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError, Failure
from onegrad.gaussian.convex_losses import Clipped, Loss
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry, variance_of_labels
from onegrad.theory.layers.features import NodeFeatures, dropped, features_at, table_count
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.neurons.step import spike_strength
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import (
    Nodes,
    data_nodes,
    labels_at,
    output_slopes,
    quasi_nodes,
)
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.calibration import signs_at
from onegrad.theory.readout.errors import NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import FixedPoint, solve_fixed_point
from onegrad.theory.readout.reweighted import LossProblem, solve_with_loss
from onegrad.theory.readout.stage import TypeStage
from onegrad.theory.task import Solution, Task

TOO_LONG = "too long"  # the kind of a refusal
_SIGN_NODES = 256  # nodes of a draft's classification error
_BENDS = 3  # extra nodes along labels per level, for losses other than the squared one
_KINKS = 12  # the same along the strongest axis, for losses with a margin on labels ±1
_STACK = 400_000  # types × nodes that are solved together
_LARGE = 100_000  # types × nodes beyond which other losses are solved one problem at a time
_RARE = 1e-5  # share of all neurons that the rarest types, which are dropped, have together
_LONG = 2  # levels from which many types are rare
_RECENT = 8  # recent tables kept for tasks that share them
_OUTER = 10.0  # tolerance of the iteration over a loss, in units of the fixed point's


Near = tuple[Array, Array, Array] | None  # (f, q, χ) of nodes to start from, if some are known


@dataclass(frozen=True)
class _Resolved:
    """A task with its neurons, nodes and features at one resolution."""

    task: Task
    level: QuadratureLevel
    neurons: NeuronTypes
    where: Nodes
    features: NodeFeatures
    others: dict[int, tuple[NeuronTypes, NodeFeatures]] = field(default_factory=dict)

    def features_of(self, coarse: Solution) -> NodeFeatures:
        """Those of a coarser resolution's neurons at these nodes; once for all tasks that share."""
        task, neurons = coarse.task, coarse.neurons
        if id(neurons) not in self.others:
            kappa = turned(self.where.kappa, self.task.geometry, task.geometry)
            where = replace(self.where, kappa=kappa)
            found = features_at(task.problem, task.geometry, neurons, where)
            self.others[id(neurons)] = neurons, found
        return self.others[id(neurons)][1]


def level_for(problem: Problem, geometry: Geometry, level: QuadratureLevel) -> QuadratureLevel:
    """The level as this problem needs it.

    What separates components is learned to a higher degree than a smooth teacher. A loss that bends
    at some residual needs more than the first moments of labels. With groups
    there are few axes, and no reason to save on them. Where a loss is iterated over, long rules for
    types go without the rare ones.
    """
    separate = problem.labels_separate
    if problem.loss.name != "squared" and level.number >= _LONG:
        level = replace(level, rare=_RARE)
    if separate:
        level = replace(level, tolerance=1e-2 * level.tolerance)
    if problem.loss.name != "squared" and not problem.labels_binary:
        many = problem.joint_link is not None and problem.joint_link.indices > 2
        more = (1 if many else _BENDS) * (1 + level.number)  # leaves room for the step's axis
        level = replace(level, label_nodes=level.label_nodes + more, split=not many)
    if geometry.groups:
        level = replace(level, tolerance=(0.05 if separate else 0.5) * level.tolerance)
        if level.points == 0:  # two nodes along the strongest axes would not do for ReLU
            count = max(level.raised, len(geometry.groups))
            level = replace(level, raised=count, most=2 * level.most)
    return level


def _for_kinks(problem: Problem, level: QuadratureLevel) -> QuadratureLevel:
    """The level of the data's nodes: with a kink what a sample counts changes fast where its output
    passes the margin, and a step makes outputs differ along one axis above all. Samples beyond
    the margin of a squared hinge count nothing, and those far within it decide about its loss."""
    loss = problem.loss
    if not (isinstance(loss, Clipped) and problem.labels_binary):
        return level
    if loss.softness > 0 and not loss.signs:
        return level
    more = _KINKS * (1 + level.number)
    return replace(level, label_nodes=level.label_nodes + more, most=2 * level.most)


def _resolve(task: Task, level: QuadratureLevel) -> _Resolved | Failure:
    """Neurons, nodes and features; a Failure where there would be more entries than wanted."""
    problem, geometry = task.problem, task.geometry
    level = level_for(problem, geometry, level)
    neurons = task.neurons or trained_types(problem, geometry, level, task.chance)
    if not task.flat:
        level = _for_kinks(problem, level)
    where = data_nodes(problem, geometry, neurons.spread, level)
    tables = table_count(geometry, level)
    if (entries := tables * len(neurons.bulk) * len(where.weights)) > task.most:
        return Failure(AssumptionError(
            f"{len(neurons.bulk)} types of neurons at {len(where.weights)} nodes are what its "
            f"rules need here: tables of {entries:.1g} numbers would take long. "
            'method = "conditional" waits for them.'
        ), TOO_LONG)  # fmt: skip
    features = features_at(problem, geometry, neurons, where)
    return _Resolved(task, level, neurons, where, features)


def _large(problem: Problem, features: NodeFeatures) -> bool:
    """Whether a loss is iterated over for this problem on its own, and not in a stack."""
    return problem.loss.name != "squared" and features.mean.size > _LARGE


def _share_features(one: Task, other: Task) -> bool:
    """Whether two tasks differ in nothing but samples of the readout, and its ridge by little."""
    given = one.neurons is not None or other.neurons is not None
    if given or one.flat != other.flat or not same_layers(one.problem, other.problem):
        return False
    return alike(one.geometry, other.geometry) and alike(one.chance, other.chance)


def same_layers(one: Problem, other: Problem) -> bool:
    """Whether two problems differ in nothing but samples of the readout, and its ridge by little,
    at the same geometry."""
    return one.width == other.width and _before_readout(one) == _before_readout(other)


def _before_readout(problem: Problem) -> tuple[object, ...]:
    """What nodes, neurons and labels depend on, beside the geometry."""
    return (
        problem.activation, problem.width, problem.step_samples, problem.rates,
        spike_strength(problem),
        problem.weight_variance, problem.readout_mean, problem.readout_std,
        problem.training.gradient, problem.links, problem.joint_link, problem.component_values,
        problem.label_noise, problem.label_flip, problem.loss,
    )  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    """Whether two records of arrays have the same numbers."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if is_dataclass(one):
        return all(alike(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def solve_tasks(
    tasks: Iterable[Task],
    level: QuadratureLevel,
    tolerance: float = 1e-10,
    signs: bool = True,
    finite_size: bool = False,
) -> list[Solution | Failure]:
    """One resolution of every task, no error estimates; a Failure in the place of what fails.

    signs : with misclassification and calibration, which have many nodes of their own;
        finite_size : `with_signs`

    Tasks that differ only in ridge, samples or surplus share their features, and small tables of
    the same shape are solved together.
    """
    found: dict[int, Solution | Failure] = {}
    waiting: dict[tuple[object, ...], list[tuple[int, _Resolved]]] = {}
    recent: list[_Resolved] = []

    def solve(batch: list[tuple[int, _Resolved]]) -> None:
        parts = [resolved for _, resolved in batch]
        answers = _solve(parts, tolerance)
        if signs:
            answers = [
                one if isinstance(one, Failure) else with_signs(one, finite_size) for one in answers
            ]
        found.update(zip((i for i, _ in batch), answers, strict=True))

    for index, task in enumerate(tasks):
        try:
            same = (one for one in recent if _share_features(one.task, task))
            if (known := next(same, None)) is not None:
                last = replace(known, task=task)
            else:
                resolved = _resolve(task, level)
                if isinstance(resolved, Failure):
                    found[index] = resolved
                    continue
                last = resolved
                recent = [last, *recent[: _RECENT - 1]]
        except (AssumptionError, ConvergenceError) as error:
            found[index] = Failure(error)
            continue
        features = last.features
        kind = (features.mean.shape, features.tilt is None, task.problem.loss)
        batch = waiting.setdefault((*kind, task.problem.labels_binary), [])
        batch.append((index, last))
        alone = features.harmonics or _large(task.problem, features)
        if alone or (len(batch) + 1) * features.mean.size > _STACK:
            solve(batch)
            batch.clear()
    for batch in waiting.values():
        solve(batch)
    return [found[index] for index in sorted(found)]


def _solve(batch: Sequence[_Resolved], tolerance: float) -> list[Solution | Failure]:
    if not batch:
        return []
    alone = len(batch) == 1
    problems = [resolved.task.problem for resolved in batch]
    surplus = [resolved.task.surplus for resolved in batch]
    rows = [(p.samples, p.effective_ridge, s) for p, s in zip(problems, surplus, strict=True)]
    numbers = np.array(rows[0] if alone else rows, float).T
    features = _together([resolved.features for resolved in batch], problems[0].loss, numbers[1])
    try:
        near = together([_near(one) for one in batch])
        point, result = _solved(problems[0], features, numbers, tolerance, near)
        if alone:
            return [_solution(batch[0], point, result)]
        return [_solution(r, *_one_of(point, result, i)) for i, r in enumerate(batch)]
    except (AssumptionError, ConvergenceError) as error:
        if alone:
            return [Failure(error)]
    return [_solve([one], tolerance)[0] for one in batch]


def _one_of(point: FixedPoint, result: NodeErrors, index: int) -> tuple[FixedPoint, NodeErrors]:
    one = result.take(index)
    return one.response.point if result.response.point is point else point.take(index), one


def _together(parts: Sequence[NodeFeatures], loss: Loss, ridges: Array) -> NodeFeatures:
    """Features of one problem, or of a stack; of lower rank where a loss is iterated over. What all
    of a stack share is factored once."""
    shared = all(one is parts[0] for one in parts)
    features = parts[0] if shared else NodeFeatures.stack(parts)
    if loss.name != "squared":
        features = features.of_lower_rank(dropped(features, ridges))
        _ = features.mean_factors  # computed once, to be shared by the tasks
    return features.repeated(len(parts)) if shared and len(parts) > 1 else features


def _near(resolved: _Resolved) -> Near:
    """(f, q, χ) of a coarser resolution at the nodes of this one."""
    coarse, where = resolved.task.coarse, resolved.where
    if coarse is None or where.kappa.shape[1] != coarse.neurons.vectors.shape[1]:
        return None
    response = coarse.by_node.response
    features = resolved.features_of(coarse)
    try:
        variance = response.variance_at(features)
    except ConvergenceError:  # these nodes lie further out than the rule of the solution
        return None
    return coarse.by_node.readout @ features.mean, variance, response.chi_at(features)


def together(parts: Sequence[Near]) -> Near:
    """Of one problem, or of a stack if all of it have some."""
    if any(one is None for one in parts):
        return None
    known = [one for one in parts if one is not None]
    if len(known) == 1:
        return known[0]
    f, q, chi = (np.stack(one) for one in zip(*known, strict=True))
    return f, q, chi


def turned(kappa: Array, own: Geometry, other: Geometry) -> Array:
    """Coordinates κ of samples (S, r') in the basis of another geometry, in which the named
    directions u and the means have nearly the same projections: κ' = Tκ with Tᵀu' ≈ u.

    Bases are chosen for each geometry. The same directions with other overlaps have others, in
    which a function of κ would be one of other directions.
    """
    if own is other or own.groups or other.groups or own.rank != other.rank:
        return kappa
    names = [name for name in own.directions if name in other.directions]
    mine, theirs = (
        np.stack([*(g.directions[name] for name in names), *g.means]) for g in (own, other)
    )
    turn = np.linalg.lstsq(theirs, mine, rcond=None)[0]
    return np.column_stack([kappa[:, : own.rank] @ turn.T, kappa[:, own.rank :]])


def _solved(
    problem: Problem,
    features: NodeFeatures,
    numbers: Array,
    tolerance: float,
    near: Near = None,
) -> tuple[FixedPoint, NodeErrors]:
    """Of one problem, or of a stack with the loss of the first; its samples, ridge and surplus."""
    samples, ridges, surplus = numbers
    if problem.loss.name == "squared":
        point = solve_fixed_point(features, samples, ridges, tolerance=tolerance)
        return point, errors_of(point)
    stage = TypeStage(features, np.asarray(samples), np.asarray(ridges))
    begin = None if near is None else stage.at(*near)
    asked = LossProblem(stage, problem.loss, problem.labels_binary, np.asarray(surplus), begin)
    return solve_with_loss(asked, _OUTER * tolerance)


def _solution(resolved: _Resolved, point: FixedPoint, result: NodeErrors) -> Solution:
    problem, where = resolved.task.problem, resolved.where
    test = np.full(problem.components, np.nan)
    train = test.copy()
    for c in range(problem.components):
        mine = where.component == c
        if np.any(mine):
            w = where.weights[mine] / where.weights[mine].sum()
            test[c], train[c] = w @ result.node_test[mine], w @ result.node_train[mine]
    solution = Solution(
        float(result.test_error), float(result.train_error), float(result.train_objective),
        test, train, None, float(problem.samples / result.response.amplification),
        int(point.iterations), float(point.residual), result, where, resolved.neurons,
        replace(resolved.task, coarse=None),
        label_variance=variance_of_labels(problem, resolved.task.geometry),
        test_loss=float(result.test_error if result.test_loss is None else result.test_loss),
        train_loss=float(result.train_error if result.train_loss is None else result.train_loss),
    )  # fmt: skip
    if solution.geometry.single >= solution.task.policy.many_directions:
        solution = replace(solution, mean_degrees=mean_degrees(point))
    return solution


def mean_degrees(point: FixedPoint) -> float:
    """See Solution.mean_degrees. O(T³), or of the rank of the means' table where that is lower."""
    features, w = point.features, point.weights
    free = features.counts * point.gain
    if features.mean_factors is not None:
        a, b = features.mean_factors
        seen = (b.T * w) @ b @ ((a.T * free) @ a)
        return float(np.trace(np.linalg.solve(np.eye(len(seen)) + seen, seen)))
    mean = (features.mean * w) @ features.mean.T
    return float(np.trace(np.linalg.solve(mean + np.diag(1.0 / free), mean)))


def errors_at(solution: Solution, where: Nodes, finite: bool = False) -> tuple[Array, Array]:
    """E[f|κ] and Var[f|κ] at nodes of one's own choice, in the coordinates of the solution.

    Weights of the nodes play no part. finite : with the fluctuation of the mean part,
    eqs. training-set-shift and first-layer-shift
    """
    task = solution.task
    features = features_at(task.problem, task.geometry, solution.neurons, where)
    solved = solution.by_node.solved_means(features.mean) if finite else None
    return _outputs(solution, features, solved)


def _outputs(
    solution: Solution, features: NodeFeatures, solved: Array | None
) -> tuple[Array, Array]:
    result = solution.by_node
    variance = result.response.variance_at(features)
    if solved is not None:
        variance = variance + fluctuation(solution, solved)
    return result.readout @ features.mean, variance


def fluctuation(solution: Solution, solved: Array) -> Array:
    """`NodeErrors.mean_fluctuation` of this problem's draws."""
    task = solution.task
    groups, given = strata(task.problem, solution.where), task.neurons is not None
    return solution.by_node.mean_fluctuation(solved, groups, given)


def with_signs(solution: Solution, finite_size: bool = False) -> Solution:
    """With misclassification and calibration, where labels are ±1.

    finite_size : with the fluctuation of the mean part, eqs. training-set-shift and
    first-layer-shift; other losses than the
        squared one are means over training sets of other labels (losses/label_surplus.py), and have
        (eq. training-set-shift) without most of what the sum of labels explains
        (`NodeErrors.mean_fluctuation`)
    """
    level = solution.where.level
    if level is None or not solution.task.problem.labels_binary:
        return solution
    return _with_signs(solution, level, finite_size)


def strata(problem: Problem, where: Nodes) -> np.ndarray:
    """Of which every training set has the same share: components, or all samples together."""
    return where.component if problem.data.fixed_counts else np.zeros(len(where.weights), int)


def _with_signs(solution: Solution, level: QuadratureLevel, finite: bool = False) -> Solution:
    """Misclassification, and calibration of the logistic loss: f given κ is N(f_s, q_s).

    They vary faster with κ than moments do, so they have nodes of their own, quasi-Monte Carlo.
    """
    geometry, axes = solution.geometry, solution.neurons.vectors.shape[1]
    points = level.points or _SIGN_NODES
    slopes = output_slopes(geometry, solution.where, solution.by_node.prediction)
    where = quasi_nodes(geometry, points, axes, level, slopes)
    problem = solution.task.problem
    labels = labels_at(problem, geometry, where)
    features = features_at(problem, geometry, solution.neurons, where)
    solved = solution.by_node.solved_means(features.mean) if finite else None
    found = (where.weights, labels, *_outputs(solution, features, solved))

    def chance(along: Array) -> Array:
        assert solved is not None
        return fluctuation(solution, solved @ along)

    logistic = problem.loss.name == "logistic"
    wrong, calibration = signs_at(logistic, *found, chance if finite else None)
    known = calibration if logistic else None
    return replace(solution, misclassification=wrong, calibration=known)
