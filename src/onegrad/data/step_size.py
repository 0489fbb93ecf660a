"""How large a gradient step is: by how much it moves the preactivations, beside their own size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_base import Teacher
from onegrad.data.label_power import component_laws
from onegrad.data.population import Population
from onegrad.gaussian.joint_rules import joint_law

if TYPE_CHECKING:
    from onegrad.data.instance import Instance
    from onegrad.problem import Problem


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
    return float(moved * _spread_along(instance.population, label_direction(instance)) / b)


def label_direction(instance: Instance) -> Array:
    """s = Cov(x, y) (n,) of a population and its teacher."""
    law, teacher = instance.population, instance.teacher
    means, _ = component_laws(law, teacher)
    found = (law.weights * (means - law.weights @ means)) @ law.means
    if teacher.values is None:
        xi = np.atleast_2d(teacher.direction.T).T
        for c, weight in enumerate(law.weights):
            seen = np.column_stack([law.covariance_times(c, v) for v in xi.T])
            slopes = _slopes(teacher, c, xi.T @ law.means[c], xi.T @ seen)
            found += weight * teacher.kept * (seen @ slopes)
    return np.asarray(found)


def _slopes(teacher: Teacher, c: int, mean: Array, covariance: Array) -> Array:
    """The derivatives of E y by the means of the projections ξᵀx, before flips."""
    if teacher.joint is not None:  # E[y z] of the independent z, t = mean + Lz with LLᵀ = Cov t
        first = joint_law(teacher.joint, mean, covariance).first
        return np.linalg.solve(np.linalg.cholesky(covariance).T, first)
    link = teacher.links[c if len(teacher.links) > 1 else 0]
    return np.atleast_1d(link.smoothed(float(mean[0]), float(np.sqrt(covariance[0, 0]))).slope)


def _spread_along(law: Population, s: Array) -> float:
    """Standard deviation of s·x over the whole population."""
    shifts = law.means @ s
    inner = sum(w * (s @ law.covariance_times(c, s)) for c, w in enumerate(law.weights))
    return float(np.sqrt(inner + law.weights @ (shifts - law.weights @ shifts) ** 2))
