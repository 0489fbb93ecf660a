"""Training and test error of the one-step network under mixtures with structure, no sampling.

Types of neurons after the step (layers/), nodes of the data's few special directions (nodes/), the
fixed point and its errors; twice, at two resolutions, whose difference is the error estimate
(docs/theory.md). All errors are plain mean squared errors, without ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.errors import AssumptionError, ConvergenceError, Failure
from onegrad.theory.correction_curves import with_corrections
from onegrad.theory.layers.step import output_effect, output_is_faint
from onegrad.theory.nodes.rules import QuadratureLevel, axis_order
from onegrad.theory.options import ACCURATE, Theory
from onegrad.theory.resolution import (
    MANY_DIRECTIONS,
    level_for,
    solve_tasks,
    with_fluctuation,
    with_signs,
)
from onegrad.theory.size_bound import finite_size_bound
from onegrad.theory.symmetry import grouped
from onegrad.theory.task import Solution, Task

_HIGHEST_LEVEL = 3  # one more where a better accuracy than the default is asked for
_SEVERAL_STEPS = 2  # the same after several steps, which have many types
_FEWEST_DEGREES = 10.0
_FEWEST_DIRECTIONS = 4  # with fewer special directions groups never pay
_STRONG_DIRECTIONS = 4  # directions of groups that need more than two nodes: groups pay
_MOST_DIRECTIONS = 60  # with an axis each; types alone take seconds beyond
_MOST_WORK = 1.5e8  # of a resolution, at the default accuracy; beyond it the next one takes seconds
_ITERATED = 5.0  # times less of it where a loss is iterated over
_RATHER = 2.0  # times more of that where first layers would be drawn instead, which takes longer
_HOPELESS, _SOON = 0.4, 5e7  # two resolutions so far apart, and more work: the next is not tried
_LATER = 0.5  # of the room for tables, where two resolutions are far apart
_OF_SIZES = 0.1  # of what finite sizes leave open: less than that rules need not be known to
_TOLERABLE = 5.0  # accuracies up to which an answer is given with its estimate, "not settled"
_OF_OTHER_LOSS = 0.4  # the same of other losses, at least
_OF_SQUARES = 1 / 3  # what differences of squared errors count beside a loss of signs
_WORST = 0.05  # what many directions leave uncertain: beyond that refused
_SMALL_LOSS = 0.1  # of the test loss: below, a training loss is compared with that
_FIXED_POINT = 1e-4  # tolerance of the fixed point, in units of the accuracy
_FEWER = (
    'Use fewer spikes, equal strengths, gradient = "labels-only" or a small step, which allow to '
    "treat spikes in groups, or larger sizes."
)


def predict_mixture(task: Task, theory: Theory = Theory()) -> Solution:
    """Errors to a relative accuracy, by increasing the resolution until two of them agree.

    Of `theory` accuracy and finite_size count. A draft is one coarse resolution without a second
    one to compare it with and without the finite-size correction: some milliseconds
    (docs/theory.md, section 5). Where a finer resolution would take seconds, the status is "not
    settled" and the error estimate above the accuracy. Raises AssumptionError near interpolation,
    ConvergenceError where no two resolutions agree.
    """
    (found,) = predict_mixtures([task], theory)
    if isinstance(found, Failure):
        raise found.error
    return found


def predict_mixtures(
    tasks: Sequence[Task],
    theory: Theory = Theory(),
    looked: Sequence[Solution | Failure] | None = None,
) -> list[Solution | Failure]:
    """`predict_mixture` of every task, together: the same numbers up to rounding.

    A Failure stands in the place of what `predict_mixture` would raise.
    looked : `first_look` at these tasks, where that was taken already
    """
    tolerance = _FIXED_POINT * theory.accuracy
    found = first_look(tasks, theory) if looked is None else list(looked)
    if theory.draft:
        return [replace(one, status="draft") if isinstance(one, Solution) else one for one in found]
    tasks = [simplified(task) for task in tasks]
    rough = {i: one for i, one in enumerate(found) if isinstance(one, Solution)}
    most = _MOST_WORK * max(1.0, ACCURATE / theory.accuracy) ** 2
    for number in range(1, _HIGHEST_LEVEL + int(theory.accuracy < ACCURATE) + 1):
        going = [i for i, one in rough.items() if _goes_on(one, number, most, theory.accuracy)]
        level = QuadratureLevel.at(number)
        left = [
            replace(
                tasks[i], flat=rough[i].flat, coarse=None if rough[i].squared else rough[i],
                most=_room(tasks[i], rough[i], number, theory.accuracy),
            )
            for i in going
        ]  # fmt: skip
        finer = solve_tasks(left, level, tolerance, signs=False)
        for i, one in zip(going, finer, strict=True):
            compared = _compared(one, rough.pop(i))
            found[i] = compared
            if isinstance(compared, Solution) and not _is_settled(compared, theory):
                rough[i] = compared
    for i, solution in rough.items():
        found[i] = _unsettled(solution, theory.accuracy)
    found = [_with_directions(one, theory) for one in found]
    found = [
        one if isinstance(one, Failure) else with_signs(one, theory.finite_size) for one in found
    ]
    if not theory.finite_size:
        return found
    found = [
        with_fluctuation(one) if isinstance(one, Solution) and not one.squared else one
        for one in found
    ]
    answers = iter(with_corrections([one for one in found if _correctable(one)]))
    return [next(answers) if _correctable(one) else one for one in found]


def first_look(tasks: Sequence[Task], theory: Theory) -> list[Solution | Failure]:
    """All tasks at the coarsest resolution."""
    if not 1e-6 <= theory.accuracy <= 0.5:
        raise ConvergenceError(
            f"accuracy = {theory.accuracy}: the theory offers relative accuracies between 1e-6 "
            "and 0.5."
        )
    tasks = [simplified(task) for task in tasks]
    level = QuadratureLevel.draft() if theory.draft else QuadratureLevel.at(0)
    few = [task for task in tasks if task.geometry.single <= _MOST_DIRECTIONS]
    solved = iter(solve_tasks(few, level, _FIXED_POINT * theory.accuracy, theory.draft))
    found = [
        next(solved) if task.geometry.single <= _MOST_DIRECTIONS else _too_many(task)
        for task in tasks
    ]
    return [_far_from_interpolation(_few_enough(one)) for one in found]


def _correctable(one: Solution | Failure) -> bool:
    """The 1/n correction is that of the squared loss."""
    return isinstance(one, Failure) or one.squared


def _goes_on(solution: Solution, number: int, most: float, accuracy: float) -> bool:
    """Whether the resolution of that number is worth its time."""
    if number == 1:
        return True
    if not solution.squared and not _is_answer(solution, accuracy):
        most *= _RATHER
    hopeless = solution.apart > _HOPELESS and solution.work > _SOON
    several = solution.task.problem.training.steps > 1 and number > _SEVERAL_STEPS
    iterated = 1.0 if solution.squared else _ITERATED
    return iterated * solution.work <= most and not (hopeless or several)


def _is_settled(solution: Solution, theory: Theory) -> bool:
    """Whether two resolutions are as close as they need be: to the accuracy asked for, or where
    other losses have no 1/n correction to a tenth of what finite sizes leave open."""
    if solution.squared or not theory.finite_size or not _is_close(solution, theory.accuracy):
        return solution.apart <= theory.accuracy
    enough = max(theory.accuracy, _OF_SIZES * finite_size_bound(solution))
    return solution.apart <= enough


def _room(task: Task, solution: Solution, number: int, accuracy: float) -> float:
    """`Task.most` of the resolution of that number, after this solution."""
    if _is_close(solution, accuracy):
        return np.inf
    return task.most if number == 1 else _LATER * task.most


def _is_close(solution: Solution, accuracy: float) -> bool:
    """Whether two resolutions are close: the next one will settle it."""
    return solution.apart <= _TOLERABLE * accuracy


def _is_answer(solution: Solution, accuracy: float) -> bool:
    """Whether two resolutions are near enough for an answer. With other losses than the squared one
    squared errors differ most; drawn layers, in seconds, state no less and are no nearer."""
    least = 0.0 if solution.squared else _OF_OTHER_LOSS
    return solution.apart <= max(_TOLERABLE * accuracy, least)


def simplified(task: Task) -> Task:
    """The task with groups of directions that are alike, where rules over all would be too long."""
    problem, geometry = task.problem, task.geometry
    given = task.neurons is not None or problem.training.steps > 1 or task.chance is not None
    if given or geometry.levels is not None or geometry.special < _FEWEST_DIRECTIONS:
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
    if sum(strong) >= _STRONG_DIRECTIONS or geometry.special >= MANY_DIRECTIONS:
        return replace(task, geometry=simple)
    return task


def _few_enough(solution: Solution | Failure) -> Solution | Failure:
    """The solution, unless directions with an axis each use up more than the theory can ignore."""
    if isinstance(solution, Failure) or _uncounted(solution) <= _WORST:
        return solution
    return Failure(AssumptionError(
        f"{solution.geometry.single} special directions are taken one by one, and the readout "
        f"spends {solution.mean_degrees:.0f} degrees of freedom on them that the theory does not "
        f"count: its errors may be {100 * _uncounted(solution):.0f} % off. {_FEWER}"
    ))  # fmt: skip


def _too_many(task: Task) -> Failure:
    return Failure(AssumptionError(
        f"{task.geometry.single} special directions are taken one by one, and the theory resolves "
        f"{_MOST_DIRECTIONS}. {_FEWER}"
    ))  # fmt: skip


def _uncounted(solution: Solution) -> float:
    """Relative error that follows from degrees of freedom that are not counted: a bound."""
    return solution.mean_degrees / max(solution.degrees_left, 1e-9)


def _with_directions(solution: Solution | Failure, theory: Theory) -> Solution | Failure:
    """The error estimate with what many directions add to it: uncounted degrees of freedom, and
    the initial output that groups leave out."""
    if isinstance(solution, Failure) or theory.draft:
        return solution
    error = _uncounted(solution)
    if solution.geometry.groups:
        error += output_effect(solution.task.problem, solution.geometry)
    return replace(solution, error_estimate=solution.error_estimate + error) if error else solution


def _far_from_interpolation(solution: Solution | Failure) -> Solution | Failure:
    """The solution, unless too few degrees of freedom are left for a limit to exist."""
    if isinstance(solution, Failure) or not solution.degrees_left < _FEWEST_DEGREES:
        return solution
    problem = solution.task.problem
    enough = problem.effective_ridge * (_FEWEST_DEGREES / max(solution.degrees_left, 1e-9)) ** 2
    return Failure(AssumptionError(
        f"width {problem.width} and {problem.samples} samples with an effective ridge of "
        f"{problem.effective_ridge:.2g} leave {solution.degrees_left:.1f} degrees of freedom: so "
        "close to interpolation the error of one training set says nothing about the next, and a "
        "limit of large sizes does not exist. Use an effective ridge above "
        f"{2 * enough:.1g}, or a width further from the number of samples."
    ))  # fmt: skip


def _compared(fine: Solution | Failure, coarse: Solution) -> Solution | Failure:
    """The finer solution with the difference to the coarser one as its error estimate."""
    if isinstance(fine, Failure):
        return fine
    # a training loss may be next to nothing: then it is known in units of the test loss
    least = 0.0 if fine.squared else _SMALL_LOSS * fine.test_loss

    def apart(*names: str) -> float:
        pairs = [(getattr(fine, name), getattr(coarse, name)) for name in names]
        return max(abs(f - c) / max(abs(f), least, 1e-300) for f, c in pairs)

    squares = apart("test_error", "train_error")
    if fine.squared:
        return replace(fine, error_estimate=squares, apart=squares)
    losses = apart("test_loss", "train_loss")
    counted = _OF_SQUARES if fine.task.problem.loss.signs else 1.0
    return replace(fine, error_estimate=max(squares, losses), apart=max(counted * squares, losses))


def _unsettled(solution: Solution, accuracy: float) -> Solution | Failure:
    """The solution with an estimate somewhat above the accuracy; a Failure far above it."""
    if _is_answer(solution, accuracy):
        return replace(solution, status="not settled")
    return Failure(ConvergenceError(
        f"two resolutions of the theory still differ by {solution.apart:.1e} (wanted "
        f"{accuracy:.0e}) with {solution.types} types of neurons and {solution.nodes} "
        "nodes. Ask for a lower accuracy, or use a smaller rate or spread: neurons move too far "
        "for the rules used here."
    ))  # fmt: skip
