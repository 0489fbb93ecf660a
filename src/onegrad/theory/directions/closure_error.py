"""What the theory of a bulk that is not flat leaves open: the closure of the special directions,
and the initial output in the first step (closed.py)."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gaussian_mean
from onegrad.theory.directions.closed import Closure, leading_eigenvectors
from onegrad.theory.neurons.block_types import output_noise
from onegrad.theory.neurons.step import output_loss
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task

_OUTPUT = 0.5  # share of the initial output's possible effect that is not noise of the residual
_TOLERANCE = 1e-5


def closure_error(solution: Solution) -> float | Failure:
    """Relative: what coarser closures change of the errors, at the second resolution (the first is
    percents off after a step), what the initial output may do in the step, and the chance of the
    labels' scale."""
    task = solution.task
    assert task.geometry.levels is not None
    geometries = (task.geometry, *task.geometry.levels.coarser)
    found = []
    tasks = [Task(task.problem, geometry) for geometry in geometries]
    for one in solve_tasks(tasks, QuadratureLevel.at(1), _TOLERANCE, signs=False):
        if isinstance(one, Failure):
            return one
        found.append([one.test_error, one.train_error])
    changes = np.abs(np.array(found[1:]).reshape(-1, 2) / found[0] - 1)
    error = float(changes.max(axis=1).sum())
    if task.problem.trained:
        loss = output_loss(task.problem, task.geometry, solution.neurons.moved)
        error += max(_OUTPUT * loss, output_noise(task.problem, task.geometry))
    return error + _scale_of_labels(task)


def _scale_of_labels(task: Task) -> float:
    """What the chance of ξᵀΛξ does to the mean of y², in units of it; errors are those of the
    typical ξᵀΛξ. Leading eigenvectors, which are averaged over, are left out.

    A two-level bulk at n = 307 and a quadratic teacher: 0.4 %, and networks are 0.5 % off.
    """
    problem, bulk = task.problem, task.problem.data.bulk_eigenvalues
    if task.geometry.basis is not None or problem.links is None or bulk is None:
        return 0.0
    closure = Closure.of(problem.trained, spectra=False)
    count = leading_eigenvectors(bulk, closure.leading, closure.share)
    spread = np.sqrt(2 * np.sum((bulk[count:] / bulk.mean() - 1) ** 2)) / len(bulk)
    # two points that have the mean and the variance of ξᵀΛξ
    sizes = np.sqrt([1.0, max(0.0, 1 - spread), 1 + spread]) * np.linalg.norm(task.geometry.teacher)
    found = 0.0
    for link in problem.links:

        def square(t: Array, link: Activation = link) -> Array:
            return np.asarray(link(t) ** 2)

        typical, low, high = gaussian_mean(square, 0.0, sizes, link.breakpoints)
        found = max(found, abs((low + high) / 2 - typical) / max(typical, 1e-300))
    return float(found)
