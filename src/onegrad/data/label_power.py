"""Var y, what the best constant predictor costs: exactly, from the law of the population."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.labels import Teacher
from onegrad.data.population import Population
from onegrad.gaussian.activation import Activation


def label_variance(population: Population, teacher: Teacher) -> float:
    """Var y over a fresh sample of one draw of the population, label noise included.

    Var y = Σ_c ρ_c (v_c + (m_c − m̄)²) + noise² with the components' laws.
    """
    means, variances = component_laws(population, teacher)
    return total_variance(population.weights, means, variances, teacher.noise)


def component_laws(population: Population, teacher: Teacher) -> tuple[Array, Array]:
    """Mean m_c and variance v_c of y in each component, before noise: of link_c(t) with
    t ~ N(ξ·μ_c, ξᵀΣ_cξ), or of the component's value."""
    if teacher.values is not None:
        return teacher.values, np.zeros(population.components)
    xi = teacher.direction
    variances = [
        float(xi @ xi + strengths @ (spikes.T @ xi) ** 2)
        for spikes, strengths in zip(population.spikes, population.strengths, strict=True)
    ]
    links = teacher.links * (population.components if len(teacher.links) == 1 else 1)
    return link_laws(links, population.means @ xi, np.array(variances))


def link_laws(links: Sequence[Activation], means: Array, variances: Array) -> tuple[Array, Array]:
    """The same, given means and variances (C) of ξᵀx in each component."""
    laws = [
        _law(link, float(mean), float(variance))
        for link, mean, variance in zip(links, means, variances, strict=True)
    ]
    value, variance = np.array(laws).T
    return value, variance


@lru_cache(maxsize=1024)
def _law(link: Activation, mean: float, variance: float) -> tuple[float, float]:
    """Mean and variance of link(t), t Gaussian: the same for all points of many a curve."""
    found = link.smoothed(mean, math.sqrt(variance))
    return float(found.value), float(found.variance)


def total_variance(weights: Array, means: Array, variances: Array, noise: float) -> float:
    """Σ ρ_c (v_c + (m_c − m̄)²) + noise²."""
    centred = means - weights @ means
    return float(weights @ (variances + centred**2)) + noise**2
