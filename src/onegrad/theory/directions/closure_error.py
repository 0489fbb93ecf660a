"""What the theory of a bulk that is not flat leaves open: the closure of the special directions,
and the initial output in the first step (closed.py)."""

from __future__ import annotations

import numpy as np

from onegrad.errors import Failure
from onegrad.theory.neurons.block_types import output_noise
from onegrad.theory.neurons.step import output_loss
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task

_OUTPUT = 0.5  # share of the initial output's possible effect that is not noise of the residual
_TOLERANCE = 1e-5


def closure_error(solution: Solution) -> float | Failure:
    """Relative: what coarser closures change of the errors, at the second resolution (the first is
    percents off after a step), and what the initial output may do in the step."""
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
    return error
