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
from onegrad.data.labels import SingleIndex
from onegrad.errors import Failure
from onegrad.gaussian.pair_moments import IDENTITY
from onegrad.problem import Problem
from onegrad.theory.closed import Closure, leading_eigenvectors, typical_closed
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.block_types import output_noise
from onegrad.theory.layers.step import output_loss
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task

_NODES = 2  # for each eigenvector
_CROSSED = 0.2  # of the average's effect: what parts along two eigenvectors do together
_OUTPUT = 0.5  # of what the initial output could do: what it does beyond noise of the residual
_TOLERANCE = 1e-5


def over_placements(solution: Solution | Failure, theory: Theory) -> Solution | Failure:
    """The solution with its mean over placements, and with an error estimate that covers them.

    E f ≈ f(1) + Σ_a E_a[f(ξ_a²) − f(1)], each by a Gauss rule for n ξ_a², with every other part
    typical. Drafts stay as they are.
    """
    if isinstance(solution, Failure) or theory.draft:
        return solution
    task = solution.task
    levels = task.geometry.levels
    assert levels is not None
    coarse, change = _ratios(task, levels.coarser), _change(task)
    if isinstance(coarse, Failure):
        return coarse
    if isinstance(change, Failure):
        return change
    open_ended = float(np.abs(coarse[:, :2]).max(axis=1).sum())
    estimate = solution.error_estimate + open_ended + _CROSSED * float(np.abs(change[:2]).max())
    if task.problem.trained:
        loss = output_loss(task.problem, task.geometry, solution.neurons.moved)
        estimate += max(_OUTPUT * loss, output_noise(task.problem, task.geometry))
    ratio = 1 + change
    return replace(
        solution, test_error=ratio[0] * solution.test_error,
        train_error=ratio[1] * solution.train_error,
        train_objective=ratio[2] * solution.train_objective,
        component_test=ratio[0] * solution.component_test,
        component_train=ratio[1] * solution.component_train,
        label_variance=ratio[3] * solution.label_variance, error_estimate=estimate,
    )  # fmt: skip


def _change(task: Task) -> Array | Failure:
    """(4,) mean over placements over the value at the typical one, less one, of the two errors,
    the objective and Var y.

    Without a step errors are quadratic forms of the labels: those of a linear target are linear in
    ξ_a², E ξ_a² = 1/n, and do not change at all. What the rules find for it is their own error.
    """
    closure, problem = Closure.of(task.problem.trained, spectra=False), task.problem
    points, weights = _placements(task, closure)
    linear = None
    if not problem.trained and problem.loss.name == "squared":
        linear = _linear(problem)
    if not len(points) or linear == problem:
        return np.zeros(4)
    population = problem.draw_instance(np.random.default_rng(0)).population
    geometries = [typical_closed(population, closure, point) for point in points]
    ratios = _ratios(task, geometries)
    if isinstance(ratios, Failure) or linear is None:
        return ratios if isinstance(ratios, Failure) else weights @ ratios
    known = _ratios(Task(linear, task.geometry), geometries)
    return known if isinstance(known, Failure) else weights @ (ratios - known)


def _linear(problem: Problem) -> Problem:
    """The same problem with y = ξᵀx and its noise."""
    return Problem(
        data=problem.data, labels=SingleIndex(link=IDENTITY, noise=problem.label_noise),
        network=problem.network, training=problem.training, scaling=problem.scaling,
    )  # fmt: skip


def _ratios(task: Task, geometries: Sequence[Geometry]) -> Array | Failure:
    """(G, 4) errors, objective and Var y at other geometries over those of the task's own, less
    one; all at the second resolution (the first is percents off after a step)."""
    if not geometries:
        return np.zeros((0, 4))
    tasks = [Task(task.problem, geometry) for geometry in (task.geometry, *geometries)]
    found = []
    for one in solve_tasks(tasks, QuadratureLevel.at(1), _TOLERANCE, signs=False):
        if isinstance(one, Failure):
            return one
        found.append([one.test_error, one.train_error, one.train_objective, one.label_variance])
    return np.array(found[1:]) / found[0] - 1


def _placements(task: Task, closure: Closure) -> tuple[Sequence[Array], Array]:
    """√n ξ_a of the leading eigenvectors at every point of the star, and the points' weights.

    Those that are axes: other parts would turn the other axes with them.
    """
    bulk = task.problem.data.bulk_eigenvalues
    assert bulk is not None
    count = leading_eigenvectors(bulk, closure.leading, closure.share)
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
