"""Var y, what the best constant predictor costs: exactly, from the law of the population."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_base import Teacher
from onegrad.data.population import Population
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.joint_rules import joint_law


def label_variance(population: Population, teacher: Teacher) -> float:
    """Var y over a fresh sample of one draw of the population, label noise included.

    Var y = Σ_c ρ_c (v_c + (m_c − m̄)²) + Var[y|x] with the components' laws.
    """
    means, variances = component_laws(population, teacher)
    return total_variance(population.weights, means, variances, teacher.noise_variance)


def component_laws(population: Population, teacher: Teacher) -> tuple[Array, Array]:
    """Mean m_c and variance v_c of E[y|x] in each component: of link_c(t) with
    t ~ N(ξ·μ_c, ξᵀΣ_cξ), or of the component's value, less what flips take of them."""
    if teacher.values is not None:
        return teacher.kept * teacher.values, np.zeros_like(teacher.values)
    if teacher.joint is not None:
        return _joint_laws(population, teacher)
    xi, population = population.seen(teacher.direction), population.whitened
    variances = [
        float(xi @ xi + strengths @ (spikes.T @ xi) ** 2)
        for spikes, strengths in zip(population.spikes, population.strengths, strict=True)
    ]
    links = teacher.links * (population.components if len(teacher.links) == 1 else 1)
    means, spreads = link_laws(links, population.means @ xi, np.array(variances))
    return teacher.kept * means, teacher.kept**2 * spreads


def _joint_laws(population: Population, teacher: Teacher) -> tuple[Array, Array]:
    assert teacher.joint is not None
    xi, population = population.seen(teacher.direction.T), population.whitened
    inner = [s.T @ xi.T for s in population.spikes]
    covariances = [
        xi @ xi.T + (g.T * t) @ g for g, t in zip(inner, population.strengths, strict=True)
    ]
    link = teacher.joint.scaled(teacher.kept)
    return joint_link_laws(link, population.means @ xi.T, np.array(covariances))


def joint_link_laws(link: JointLink, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Mean and variance of g(t) in each component, t of these means (C, p) and covariances."""
    laws = [joint_law(link, m, c) for m, c in zip(means, covariances, strict=True)]
    centre = np.array([law.mean for law in laws])
    return centre, np.array([law.energy for law in laws]) - centre**2


def link_laws(links: Sequence[Activation], means: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and variance of link_c(t) in each component, t of these means and variances (C)."""
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
    """Σ ρ_c (v_c + (m_c − m̄)²) + noise, the latter Var[y|x]; summed over outputs (C × K)."""
    centred = means - weights @ means
    outputs = 1 if means.ndim == 1 else means.shape[1]
    return float(np.sum(weights @ (variances + centred**2))) + outputs * noise
