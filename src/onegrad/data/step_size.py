"""How large a gradient step is: by how much it moves the preactivations, beside their own size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.joint_rules import joint_law

if TYPE_CHECKING:
    from onegrad.data.instance import Instance
    from onegrad.problem import Problem

_SAMPLES = 20_000  # samples for E[y t] with several indices: known to 1 %


def step_size(problem: Problem) -> float | None:
    """η in units of the rate at which the step moves preactivations by their own size.

    The mean of a neuron's gradient is a_i·E[σ'(b z)]·s with s = Cov(x, y); along it the step
    changes the preactivation w_i·x by the standard deviation

        η · √(E a²) · |E σ'(b z)| · √(sᵀΣ̄s),

    which is divided by b, that of w_i·x itself. s is that of one draw of the directions. None where
    the law of the data is not known, for several outputs, steps, or another optimiser.
    """
    if not (problem.one_step and problem.data.known and problem.outputs == 1):
        return None
    instance, b = problem.instance(0), problem.bulk_scale
    slope = abs(float(problem.activation.projections(1, b)[1]) / b)
    moved = problem.rate * np.sqrt(problem.readout_square) * slope
    return float(moved * _spread_along(instance, label_direction(instance)) / b)


def label_direction(instance: Instance) -> Array:
    """s = Cov(x, y) (n,) of a population and its teacher."""
    law, teacher = instance.population, instance.teacher
    found = np.zeros(law.dim)
    means, slopes = _laws(instance)
    for c, weight in enumerate(law.weights):
        found += weight * (means[c] - law.weights @ means) * law.means[c]
        if teacher.values is None:
            xi = np.atleast_2d(teacher.direction.T).T @ np.atleast_1d(slopes[c])
            found += weight * teacher.kept * _covariance_times(instance, c, xi)
    return found


def _laws(instance: Instance) -> tuple[Array, list[Array]]:
    """Of each component E y, and the derivatives of E y by the means of the projections."""
    law, teacher = instance.population, instance.teacher
    if teacher.values is not None:
        return teacher.kept * teacher.values, []
    xi = np.atleast_2d(teacher.direction.T).T
    means, slopes = [], []
    for c in range(law.components):
        shift = xi.T @ law.means[c]
        covariance = xi.T @ np.column_stack([_covariance_times(instance, c, v) for v in xi.T])
        if teacher.joint is not None:
            z = np.random.default_rng(0).standard_normal((_SAMPLES, len(shift)))
            t = z @ np.linalg.cholesky(covariance).T
            y = teacher.joint(shift + t)
            means.append(joint_law(teacher.joint, shift, covariance).mean)
            slopes.append(np.linalg.solve(covariance, t.T @ (y - y.mean()) / _SAMPLES))
        else:
            link = teacher.links[c if len(teacher.links) > 1 else 0]
            smooth = link.smoothed(float(shift[0]), float(np.sqrt(covariance[0, 0])))
            means.append(float(smooth.value))
            slopes.append(np.array([float(smooth.slope)]))
    return teacher.kept * np.array(means), slopes


def _covariance_times(instance: Instance, component: int, v: Array) -> Array:
    """Σ_c v."""
    law = instance.population
    spikes, strengths = law.spikes[component], law.strengths[component]
    bulk = v if law.bulk is None else law.bulk * v
    return np.asarray(bulk + spikes @ (strengths * (spikes.T @ v)))


def _spread_along(instance: Instance, s: Array) -> float:
    """Standard deviation of s·x over the whole population."""
    law = instance.population
    shifts = law.means @ s
    inner = sum(w * (s @ _covariance_times(instance, c, s)) for c, w in enumerate(law.weights))
    return float(np.sqrt(inner + law.weights @ (shifts - law.weights @ shifts) ** 2))
