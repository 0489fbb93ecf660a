"""One draw of a population with its labels, to take samples from; and how large a step on it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Rng, generator
from onegrad.data.label_base import Teacher, flipped
from onegrad.data.label_power import component_laws, label_variance
from onegrad.data.population import Batch, Population
from onegrad.gaussian.joint_rules import joint_law
from onegrad.text.display import brief

if TYPE_CHECKING:
    from onegrad.problem import Problem


@dataclass(frozen=True)
class Instance:
    """One draw of what is random about the population itself: directions and teacher.

    fixed_counts : every sample has exactly the components' shares, instead of drawn ones
    """

    __repr__ = brief

    population: Population
    teacher: Teacher
    fixed_counts: bool = False

    @cached_property
    def label_variance(self) -> float:
        """Var y, exactly: the test error of the best constant."""
        return label_variance(self.population, self.teacher)

    def sample(self, count: int, rng: Rng, out: Array | None = None) -> Batch:
        """`count` samples: inputs x (m × n, in `out` if given), noisy labels y (m), component (m).

        The seed of a simulation gives the training samples of its first repetition.
        """
        rng = generator(rng, "train-data")
        ((x, component),) = self.population.sample(count, rng, self.fixed_counts, out=out)
        outputs = self.teacher.outputs
        noise = rng.standard_normal(count if outputs == 1 else (count, outputs))
        flip = self.teacher.flip
        signs = flipped(np.ones(count), flip, rng) if flip else 1.0
        return Batch(x, self.teacher.labels(x, component, noise, signs), component)


def step_size(problem: Problem) -> float | None:
    """η in units of the rate at which the step moves preactivations by their own size.

    The mean of a neuron's gradient is a_i·E[σ'(b z)]·s with s = Cov(x, y); along it the step
    changes the preactivation w_i·x by the standard deviation

        η · √(E a²) · |E σ'(b z)| · √(sᵀΣ̄s),

    divided by b, the standard deviation of w_i·x itself. s belongs to one draw of the directions.
    None where the law of the data is not known, for several outputs, steps, or another optimiser.
    """
    if not (problem.one_step and problem.data.known and problem.outputs == 1):
        return None
    instance, b = problem.instance(0), problem.bulk_scale
    slope = abs(float(problem.activation.projections(1, b)[1]) / b)
    moved = problem.rate * np.sqrt(problem.readout_square) * slope
    size = float(moved * _spread_along(instance.population, label_direction(instance)) / b)
    return size if size > 1e-12 else 0.0  # the rest is rounding: labels without a linear part


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
