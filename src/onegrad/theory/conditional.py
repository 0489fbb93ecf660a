"""Training and test error of the one-step network under mixtures with structure, no sampling.

Types of neurons after the step (layers/), nodes of the data's few special directions (nodes/), the
fixed point and its errors; twice, at two resolutions, whose difference is the error estimate
(docs/book). All errors are plain mean squared errors, without ½.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from onegrad.errors import AssumptionError, ConvergenceError, Failure
from onegrad.theory.directions.symmetry import grouped
from onegrad.theory.neurons.step import output_effect, output_is_faint
from onegrad.theory.nodes.rules import QuadratureLevel, axis_order
from onegrad.theory.open import Decision
from onegrad.theory.options import ACCURATE, Theory
from onegrad.theory.resolution import (
    level_for,
    solve_tasks,
    with_signs,
)
from onegrad.theory.size.finite_size import (
    corrected,
    corrected_loss,
    correction_of,
    finite_size_bound,
)
from onegrad.theory.task import Solution, Task

_FIXED_POINT = 1e-4  # tolerance of the fixed point, in units of the accuracy
_FEWER = (
    'Use fewer spikes, equal strengths, gradient = "labels-only" or a small step, which allow to '
    "treat spikes in groups, or larger sizes."
)


def predict_mixture(task: Task, theory: Theory = Theory()) -> Solution:
    """Errors to a relative accuracy, by increasing the resolution until two of them agree.

    Of `theory` accuracy and finite_size count. A draft is one coarse resolution without a second
    one to compare it with and without the finite-size correction: some milliseconds
    (docs/book/fixed-point.md). Where a finer resolution would take seconds, the status is "not
    settled" and the error estimate above the accuracy. Raises AssumptionError near interpolation,
    ConvergenceError where no two resolutions agree.
    """
    (found,) = predict_mixtures([task], theory)
    if isinstance(found, Failure):
        raise found.error
    return found


def predict_mixtures(tasks: Sequence[Task], theory: Theory = Theory()) -> list[Solution | Failure]:
    """`predict_mixture` of every task, together: the same numbers up to rounding.

    A Failure stands in the place of what `predict_mixture` would raise.
    """
    tasks = [replace(task, policy=theory.policy) for task in tasks]
    found = _first(tasks, theory)
    if theory.draft:
        return _each(found, lambda one: replace(one, status="draft"))
    for number in itertools.count(1):
        going = {
            i: one
            for i, one in enumerate(found)
            if isinstance(one, Solution) and _goes_on(one, number, theory)
        }
        if not going:
            break
        finer = _finer([tasks[i] for i in going], list(going.values()), number, theory)
        for (i, coarse), one in zip(going.items(), finer, strict=True):
            found[i] = one if isinstance(one, Failure) else _compared(one, coarse)
    return _each(found, lambda one: _ended(one, theory))


def _each(
    found: Sequence[Solution | Failure], step: Callable[[Solution], Solution | Failure]
) -> list[Solution | Failure]:
    return [one if isinstance(one, Failure) else step(one) for one in found]


def _finer(
    tasks: Sequence[Task], coarse: Sequence[Solution], number: int, theory: Theory
) -> list[Solution | Failure]:
    """The next resolution of each; however long it takes where there is an answer already."""
    left = []
    for task, one in zip(tasks, coarse, strict=True):
        most = math.inf if number > 1 and _is_answer(one, theory) else task.most
        start = None if one.squared else one
        task = simplified(task)
        left.append(replace(task, flat=one.flat, coarse=start, most=most))
    tolerance = _FIXED_POINT * theory.accuracy
    return solve_tasks(left, QuadratureLevel.at(number), tolerance, signs=False)


def _ended(solution: Solution, theory: Theory) -> Solution | Failure:
    """Add status, misclassification, calibration, the 1/n correction and its remaining error."""
    ended = _with_status(solution, theory)
    if isinstance(ended, Failure):
        return ended
    ended = with_signs(_with_directions(ended), theory.finite_size)
    if not theory.finite_size:
        return replace(ended, open=replace(ended.open, sizes=finite_size_bound(ended)))
    return corrected(ended, correction_of(ended)) if ended.squared else corrected_loss(ended)


def _first(tasks: Sequence[Task], theory: Theory) -> list[Solution | Failure]:
    """All tasks at the coarsest resolution."""
    policy = theory.policy
    tasks = [simplified(task) for task in tasks]
    level = QuadratureLevel.draft() if theory.draft else QuadratureLevel.at(0)
    few = [task for task in tasks if task.geometry.single <= policy.most_directions]
    solved = iter(solve_tasks(few, level, _FIXED_POINT * theory.accuracy, theory.draft))
    found = [
        next(solved)
        if task.geometry.single <= policy.most_directions
        else Failure(AssumptionError(
            f"{task.geometry.single} special directions are taken one by one, and the theory "
            f"resolves {policy.most_directions}. {_FEWER}"
        ))
        for task in tasks
    ]  # fmt: skip
    return _each(found, _with_a_limit)


def _goes_on(solution: Solution, number: int, theory: Theory) -> bool:
    """Whether the resolution of that number is needed and worth its time; two always are."""
    policy = theory.policy
    if number == 1:
        return True
    finest = policy.levels_fine if theory.accuracy < ACCURATE else policy.levels
    if solution.task.problem.training.steps > 1:
        finest = min(finest, policy.levels_of_steps)
    if number > finest or _is_settled(solution, theory):
        return False
    most = policy.work * max(1.0, ACCURATE / theory.accuracy) ** 2
    return (1.0 if solution.squared else policy.iterated) * solution.work <= most


def _is_settled(solution: Solution, theory: Theory) -> bool:
    """Whether two resolutions are as close as they need be: to the accuracy asked for, or where
    other losses have no 1/n correction to a part of what finite sizes leave open."""
    if solution.apart <= theory.accuracy:
        return True
    if solution.squared or not theory.finite_size or not _is_answer(solution, theory):
        return False
    return solution.apart <= theory.policy.of_sizes * finite_size_bound(solution)


def _is_answer(solution: Solution, theory: Theory) -> bool:
    """Whether two resolutions are near enough for an answer. With other losses than the squared one
    squared errors differ most; drawn layers, in seconds, state no less and are no nearer."""
    policy = theory.policy
    least = 0.0 if solution.squared else policy.tolerable_loss
    return solution.apart <= max(policy.tolerable * theory.accuracy, least)


def simplified(task: Task) -> Task:
    """The task with groups of directions that are alike, where rules over all would be too long."""
    problem, geometry, policy = task.problem, task.geometry, task.policy
    given = task.neurons is not None or problem.training.steps > 1 or task.chance is not None
    if given or geometry.levels is not None or geometry.special < policy.grouped_directions:
        return task
    simple = grouped(geometry)
    if not simple.groups or not output_is_faint(problem, simple):
        return task
    level = level_for(problem, geometry, QuadratureLevel.at(1))
    variances = simple.covariances.diagonal(axis1=1, axis2=2)[:, simple.single :].max(axis=0)
    strong = [
        size
        for size, variance in zip(simple.groups, variances, strict=True)
        if axis_order(float(variance) / geometry.dim, level) > 2
    ]
    if sum(strong) >= policy.grouped_directions or geometry.special >= policy.many_directions:
        return replace(task, geometry=simple)
    return task


def _uncounted(solution: Solution) -> float:
    """Relative error that follows from degrees of freedom that are not counted: a bound."""
    return solution.mean_degrees / max(solution.degrees_left, 1e-9)


def _with_directions(solution: Solution) -> Solution:
    """What is open with what many directions add to it: uncounted degrees of freedom, and the
    initial output that groups leave out."""
    error = _uncounted(solution)
    if solution.geometry.groups:
        error += output_effect(solution.task.problem, solution.geometry)
    return replace(solution, open=replace(solution.open, physics=error))


def _with_a_limit(solution: Solution) -> Solution | Failure:
    """The solution, unless directions with an axis each use up more than the theory can ignore, or
    too few degrees of freedom are left for a limit to exist."""
    problem, policy = solution.task.problem, solution.task.policy
    if _uncounted(solution) > policy.uncounted:
        return Failure(AssumptionError(
            f"{solution.geometry.single} special directions are taken one by one, and the readout "
            f"spends {solution.mean_degrees:.0f} degrees of freedom on them that the theory does "
            f"not count: its errors may be {100 * _uncounted(solution):.0f} % off. {_FEWER}"
        ))  # fmt: skip
    if not solution.degrees_left < policy.fewest_degrees:
        return solution
    share = policy.fewest_degrees / max(solution.degrees_left, 1e-9)
    enough = problem.effective_ridge * share**2
    return Failure(AssumptionError(
        f"width {problem.width} and {problem.samples} samples with an effective ridge of "
        f"{problem.effective_ridge:.2g} leave {solution.degrees_left:.1f} degrees of freedom: so "
        "close to interpolation the error of one training set says nothing about the next, and a "
        "limit of large sizes does not exist. Use an effective ridge above "
        f"{2 * enough:.1g}, or a width further from the number of samples."
    ))  # fmt: skip


def _compared(fine: Solution, coarse: Solution) -> Solution:
    """The finer solution; its difference to the coarser one is the error of the rules."""
    policy = fine.task.policy
    # errors of a tiny training loss are measured in units of the test loss
    least = 0.0 if fine.squared else policy.least_loss * fine.test_loss

    def apart(*names: str) -> float:
        pairs = [(getattr(fine, name), getattr(coarse, name)) for name in names]
        return max(abs(f - c) / max(abs(f), least, 1e-300) for f, c in pairs)

    squares, losses, counted = apart("test_error", "train_error"), 0.0, 1.0
    if not fine.squared:
        losses = apart("test_loss", "train_loss")
        counted = policy.squares if fine.task.problem.loss.signs else 1.0
    known = replace(fine.open, rules=max(squares, losses))
    return replace(fine, open=known, apart=max(counted * squares, losses))


def _with_status(solution: Solution, theory: Theory) -> Solution | Failure:
    """ "not settled" where two resolutions differ by somewhat more than the accuracy; a Failure far
    above it."""
    size = f"{solution.types} types of neurons and {solution.nodes} nodes"
    settled = _is_settled(solution, theory)
    outcome = f"good enough, with {size}" if settled else f"a finer one than {size} would take long"
    solution = replace(
        solution,
        decisions=(
            Decision(
                "limit", solution.degrees_left, theory.policy.fewest_degrees,
                "The number of samples beyond those that the readout uses up", "a limit exists",
                relative=False,
            ),
            Decision(
                "rules", solution.apart, theory.accuracy,
                "The difference between the last two resolutions", outcome,
            ),
        ),
    )  # fmt: skip
    if settled:
        return solution
    if _is_answer(solution, theory):
        return replace(solution, status="not settled")
    return Failure(ConvergenceError(
        f"two resolutions of the theory still differ by {solution.apart:.1e} (wanted "
        f"{theory.accuracy:.0e}) with {size}. Ask for a lower accuracy, or use a smaller rate or "
        "spread: neurons move too far for the rules used here."
    ))  # fmt: skip
