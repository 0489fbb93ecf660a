"""Where a random teacher lies relative to the eigenvectors of a bulk that is not flat.

Its parts along the leading eigenvectors, √n ξ_a ~ N(0, 1), move the errors from draw to draw: their
mean is taken over them. Beside it, what the closure of the directions leaves (closed.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import roots_genlaguerre

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.closed import Closure, typical_closed
from onegrad.theory.layers.step import output_loss
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.resolution import Solution, Task, solve_tasks

_VISIBLE = 0.02  # share of the trace of Λ from which on an eigenvector is looked at
_MOST = 4  # eigenvectors
_NODES = 3  # for each
_CROSSED = 0.2  # of the average's effect: what parts along two eigenvectors do together
_TOLERANCE = 1e-5


def over_placements(solution: Solution | Failure, theory: Theory) -> Solution | Failure:
    """The solution with its mean over placements, and with an error estimate that covers them.

    E f ≈ f(1) + Σ_a E_a[f(ξ_a²) − f(1)], each by a Gauss rule for n ξ_a², with every other part
    typical. Drafts stay as they are.
    """
    if isinstance(solution, Failure) or theory.draft:
        return solution
    task, level = solution.task, QuadratureLevel.at(1)
    levels = task.geometry.levels
    assert levels is not None
    geometries = [task.geometry, levels.less or task.geometry]
    points, weights = _placements(task)
    population = task.problem.instance(0).population
    closure = Closure.of(task.problem.trained, spectra=False)
    geometries += [typical_closed(population, closure, point) for point in points]
    tasks = [Task(task.problem, geometry) for geometry in geometries]
    found = []
    for one in solve_tasks(tasks, level, _TOLERANCE):
        if isinstance(one, Failure):
            return one
        found.append([one.test_error, one.train_error, one.train_objective, one.label_variance])
    values = np.array(found)
    open_ended = float(np.abs(values[1, :2] / values[0, :2] - 1).max())
    change = weights @ (values[2:] / values[0] - 1) if len(points) else np.zeros(4)
    estimate = solution.error_estimate + open_ended + _CROSSED * float(np.abs(change[:2]).max())
    if task.problem.trained:
        estimate += output_loss(task.problem, task.geometry, solution.neurons.moved)
    ratio = 1 + change
    return replace(
        solution, test_error=ratio[0] * solution.test_error,
        train_error=ratio[1] * solution.train_error,
        train_objective=ratio[2] * solution.train_objective,
        component_test=ratio[0] * solution.component_test,
        component_train=ratio[1] * solution.component_train,
        label_variance=ratio[3] * solution.label_variance, error_estimate=estimate,
    )  # fmt: skip


def _placements(task: Task) -> tuple[Sequence[Array], Array]:
    """√n ξ_a of the leading eigenvectors at every point of the star, and the points' weights."""
    bulk = task.problem.data.bulk_eigenvalues
    assert bulk is not None
    count = min(_MOST, int(np.sum(bulk > _VISIBLE * bulk.sum())))
    if task.geometry.basis is not None or task.problem.links is None:
        return [], np.zeros(0)
    x, w = roots_genlaguerre(_NODES, -0.5)  # of z²/2, z ~ N(0, 1)
    points, weights = [], []
    for a in range(count):
        for root, weight in zip(np.sqrt(2 * x), w / w.sum(), strict=True):
            point = np.ones(count)
            point[a] = root
            points.append(point)
            weights.append(weight)
    return points, np.array(weights)
