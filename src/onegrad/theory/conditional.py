"""Training and test error of the one-step network under mixtures with structure, no sampling.

`predict_mixture` puts the pieces together: types of neurons after the step (neurons.py), nodes
of the data's few special directions (nodes.py), the fixed point (fixed_point.py) and its errors
(second_moments.py); twice, at two resolutions, whose difference is the error estimate
(docs/theory.md). All errors are plain mean squared errors, without ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.theory.geometry import Geometry, Labels, Training
from onegrad.theory.neurons import Neurons, output_is_faint
from onegrad.theory.nodes import Effort, axis_order
from onegrad.theory.resolution import Refusal, Solution, Task, resolving, solve_tasks
from onegrad.theory.symmetry import grouped

DRAFT = 0.03  # accuracies from here on are answered by one coarse resolution
_HIGHEST_LEVEL = 4
_FEWEST_DEGREES = 10.0
_FEWEST_DIRECTIONS = 4  # with fewer special directions groups never pay
_STRONG_DIRECTIONS = 4  # directions of groups that need more than two nodes: groups pay
_MANY_DIRECTIONS = 10  # special directions from which on groups always pay
_FIXED_POINT = 1e-4  # tolerance of the fixed point, in units of the accuracy


def predict_mixture(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    *,
    accuracy: float = 0.01,
    neurons: Neurons | None = None,
    on_failure: str = "raise",
    finite_size: bool = False,
) -> Solution:
    """Errors to a relative `accuracy`, by increasing the resolution until two of them agree.

    accuracy : from 0.03 on, one coarse resolution without a second one to compare it with: some
        milliseconds, status "draft" (docs/theory.md, section 5)
    neurons : types read off a drawn first layer (`drawn_types`: the hybrid theory); by default
        the pure ones, which need no draw
    on_failure : "raise", or "status" to get the finest result with status "inaccurate"
    finite_size : count the degrees of freedom of the mean part. Brings the test error of small
        problems closer to the network's and takes the training error away from it
        (docs/theory.md, section 7)
    """
    task = Task(geometry, labels, training, neurons)
    (said,) = _solutions([task], accuracy, finite_size)
    if on_failure != "status":
        said = _trusted(said, task, accuracy)
    if isinstance(said, Solution):
        return said
    raise said


def predict_mixtures(
    tasks: Sequence[Task], *, accuracy: float = 0.01, finite_size: bool = False
) -> list[Solution | Refusal]:
    """`predict_mixture` of every task, together: the same numbers up to rounding.

    A task that the theory refuses gets its error, not raised.
    """
    said = _solutions(tasks, accuracy, finite_size)
    return [_trusted(one, task, accuracy) for one, task in zip(said, tasks, strict=True)]


def _solutions(
    tasks: Sequence[Task], accuracy: float, finite_size: bool
) -> list[Solution | Refusal]:
    if not 1e-6 <= accuracy <= 0.5:
        raise ConvergenceError(
            f"accuracy = {accuracy}: the theory offers relative accuracies between 1e-6 and 0.5."
        )
    tolerance = _FIXED_POINT * accuracy
    if not finite_size:
        tasks = [_simplified(task) for task in tasks]
    draft = accuracy >= DRAFT
    first = Effort.draft() if draft else Effort.level(0)
    said = solve_tasks(tasks, first, tolerance, finite_size)
    for i, solution in enumerate(said):
        if isinstance(solution, Solution):
            close = solution.degrees_left < _FEWEST_DEGREES
            status = "near-interpolation" if close else "draft" if draft else "inaccurate"
            said[i] = replace(solution, status=status)
    for level in range(1, 1 if draft else _HIGHEST_LEVEL + 1):
        rough = [
            i for i, s in enumerate(said) if isinstance(s, Solution) and s.status == "inaccurate"
        ]
        finer = solve_tasks([tasks[i] for i in rough], Effort.level(level), tolerance, finite_size)
        for i, fine in zip(rough, finer, strict=True):
            coarse = said[i]
            assert isinstance(coarse, Solution)
            said[i] = _compared(fine, coarse, accuracy) if isinstance(fine, Solution) else fine
    return said


def _simplified(task: Task) -> Task:
    """The task with groups of directions that are alike, where rules over all would be too long."""
    geometry, labels, training = task.geometry, task.labels, task.training
    if task.neurons is not None or geometry.special < _FEWEST_DIRECTIONS:
        return task
    simple = grouped(geometry)
    if not simple.groups or not output_is_faint(simple, labels, training):
        return task
    effort = resolving(geometry, labels, Effort.level(1))
    variances = simple.covariances.diagonal(axis1=1, axis2=2)[:, -len(simple.groups) :].max(axis=0)
    strong = [
        size
        for size, variance in zip(simple.groups, variances, strict=True)
        if axis_order(float(variance) / geometry.dim, effort) > 2
    ]
    if sum(strong) >= _STRONG_DIRECTIONS or geometry.special >= _MANY_DIRECTIONS:
        return replace(task, geometry=simple)
    return task


def _compared(fine: Solution, coarse: Solution, accuracy: float) -> Solution:
    estimate = max(
        _relative(fine.test_error, coarse.test_error),
        _relative(fine.train_error, coarse.train_error),
    )
    status = "ok" if estimate <= accuracy else "inaccurate"
    return replace(fine, error_estimate=estimate, status=status)


def _relative(fine: float, coarse: float) -> float:
    return abs(fine - coarse) / max(abs(fine), 1e-300)


def _trusted(solution: Solution | Refusal, task: Task, accuracy: float) -> Solution | Refusal:
    """The solution, or why it is not to be trusted."""
    if not isinstance(solution, Solution):
        return solution
    training = task.training
    if solution.status == "near-interpolation":
        enough = training.ridge * (_FEWEST_DEGREES / solution.degrees_left) ** 2
        return AssumptionError(
            f"width {training.width} and {training.samples} samples with an effective ridge of "
            f"{training.ridge:.2g} leave {solution.degrees_left:.1f} degrees of freedom: so close "
            "to interpolation the error of one training set says nothing about the next, and a "
            "limit of large sizes does not exist. Use an effective ridge above "
            f"{2 * enough:.1g}, or a width further from the number of samples."
        )
    if solution.status == "inaccurate":
        return ConvergenceError(
            f"two resolutions of the theory still differ by {solution.error_estimate:.1e} (wanted "
            f"{accuracy:.0e}) with {solution.types} types of neurons and {solution.nodes} nodes. "
            "Ask for a lower accuracy, or use a smaller rate or spread: neurons move too far for "
            "the rules used here."
        )
    return solution
