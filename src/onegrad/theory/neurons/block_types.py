"""Neurons on a bulk Λ that is not flat, as types: random features, and a step that is not large.

Axes are closed under Λ and the rest of the inputs is in blocks of one eigenvalue each (closed.py).
Inputs are whitened, weights are Λ^{½}w. Equations are named as in docs/book/structure.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.smoothing import centred_moments
from onegrad.problem import Problem
from onegrad.theory.directions.eigen import eigen_axes
from onegrad.theory.directions.geometry import BulkLevels, Geometry
from onegrad.theory.neurons.step import (
    OUTPUT_LOSS,
    StepMoments,
    StepSample,
    output_loss,
    output_share,
    second_moment,
    step_sample,
)
from onegrad.theory.neurons.types import LEAST_BULK, NeuronTypes, readout_rule, spread_roots
from onegrad.theory.nodes.rules import QuadratureLevel, Rule, standard_nodes

# Largest effect of the initial output on the errors that may be left out; after one step, its share
# of the labels' variance of which later steps may see the mean alone
FAINT = 0.1
_LARGEST = 20.0  # largest variance that the step may add to preactivations, over their own


class _Before(NamedTuple):
    """Neurons before the step: readout (T,), coordinates over √λ (T, r'), length of the rest over
    its mean (T,), weights (T,)."""

    readout: Array
    coordinates: Array
    length: Array
    weights: Array


def block_types(problem: Problem, geometry: Geometry, level: QuadratureLevel) -> NeuronTypes:
    """Types of neurons after at most one step, nothing drawn.

    With λ_j, p_j the blocks, L = diag(λ) along the axes, those of the parts e_j of the sampling
    noise in each block among them, and E over a sample of the step as in eq. neurons-after:

        f⁰_i ~ N(0, s_w² L),  b⁰_ij² = p_jλ_j s_w²,  e_j·x̃ = √(p_j/(m̃ E u²)) u + N(0, 1)
            (eq. block-start)
        v_i = L^{½} A_i L^{−½} f⁰_i + h_i L g_i,
        A_i² = I + h_i²/(m̃ s_w²) L^{½} E[u² Var σ' κ̃κ̃ᵀ] L^{½}
        b_ij² = b⁰_ij²(1 + h_iλ_jE[uσ''])² + h_i²λ_j²(p_j/m̃)(E[u²σ'²] − E[u²σ']²/E u²)
            (eq. block-neurons)
    """
    levels = geometry.levels
    assert levels is not None
    if not problem.trained:
        return _untrained(problem, geometry, levels, level)
    variance, sample = problem.weight_variance, residual_sample(problem, geometry, level)
    sample = replace(sample, memory=np.sqrt(levels.counts / problem.step_samples))
    along = np.concatenate([levels.axes, levels.values])
    rest = replace(levels, counts=np.maximum(levels.counts - 1.0, 1e-6))
    bulk = math.sqrt(variance * rest.trace)
    typical = sample.moments(problem.activation, np.zeros((1, len(along))), np.array([bulk]))
    moved = _moved(problem, geometry, typical, along, bulk)
    if moved > _LARGEST:
        raise AssumptionError(
            f"the step adds {100 * moved:.0f} % to the variance of preactivations, and types of "
            f"neurons on a bulk that is not flat are good up to {100 * _LARGEST:.0f} %"
        )
    if (loss := output_loss(problem, geometry, moved)) > FAINT:
        raise AssumptionError(
            f"the initial output counts in the residual (up to {100 * loss:.0f} % of the errors), "
            "which types of neurons on a bulk that is not flat leave out"
        )
    rule = readout_rule(problem, moved, level)
    before = _before(problem, geometry, along, bulk, level, rule)
    root = np.sqrt(along)
    start = math.sqrt(variance) * before.coordinates * root
    moments = sample.moments(problem.activation, start, bulk * before.length)
    h = problem.rate * before.readout
    scaled = root[:, None] * moments.spread * root
    spread = (h**2 / (problem.step_samples * variance))[:, None, None] * scaled
    turned = np.einsum("tij,tj->ti", spread_roots(np.eye(len(root)) + spread), before.coordinates)
    vectors = math.sqrt(variance) * turned * root + h[:, None] * along * moments.push
    stretch = 1.0 + np.outer(h * moments.curvature, rest.values)
    squares = variance * rest.counts * rest.values * (before.length[:, None] * stretch) ** 2
    squares += np.outer(h**2 * moments.noise, rest.values**2 * rest.counts / problem.step_samples)
    total = squares.sum(axis=1)
    return NeuronTypes(
        vectors, np.sqrt(total), problem.width * before.weights, round(rest.counts.sum()),
        readout=before.readout, moved=moved, shares=squares / total[:, None],
        coordinates=rest.counts,
    )  # fmt: skip


def residual_sample(problem: Problem, geometry: Geometry, level: QuadratureLevel) -> StepSample:
    """Nodes of a sample of the step, its residual with an initial output that is noise to it."""
    sample = step_sample(problem, geometry, level, False)
    share = output_share(problem, geometry)
    if share < OUTPUT_LOSS:
        return sample
    output = math.sqrt(share * float(sample.weights @ sample.residual**2))
    return replace(
        sample, kappa=np.tile(sample.kappa, (2, 1)), weights=np.tile(sample.weights, 2) / 2,
        residual=np.concatenate([sample.residual + output, sample.residual - output]),
    )  # fmt: skip


def output_noise(problem: Problem, geometry: Geometry) -> float:
    """What the exact gradient takes off the noise in what neurons share, relative; types leave it.

    Neurons weighted with a look along Ŵᵀa. Of that the step has taught η|a|²Λg, and the rest is

        (1 − η|a|²d̄²Λ)W₀ᵀa  (eq. output-noise)

    with the exact gradient, W₀ᵀa with that of the labels alone. The result is the difference of the
    taught share of the variance, S/(S + N), between the two.
    """
    levels, r = geometry.levels, geometry.rank
    assert levels is not None
    if problem.training.gradient == "labels-only":
        return 0.0
    bulk = math.sqrt(problem.weight_variance * levels.trace)
    sample = residual_sample(problem, geometry, QuadratureLevel.at(0))
    push = sample.moments(problem.activation, np.zeros((1, r + 1)), np.array([bulk])).push[0, :r]
    squares = problem.width * problem.readout_square
    turned = problem.rate * squares * levels.axes * push
    taught = float(turned @ second_moment(geometry) @ turned)
    values = np.concatenate([levels.axes, levels.values])
    variance = np.concatenate([np.ones(r), levels.counts]) * values
    variance = squares * problem.weight_variance * variance
    slope = centred_moments(problem.activation, np.array([bulk])).slope[0]
    left = (1 - problem.rate * squares * slope**2 * values) ** 2
    alone, exact = (taught / (taught + float(n.sum())) for n in (variance, variance * left))
    return abs(exact - alone)


def _untrained(
    problem: Problem, geometry: Geometry, levels: BulkLevels, level: QuadratureLevel
) -> NeuronTypes:
    variance = problem.weight_variance
    bulk = math.sqrt(variance * levels.trace)
    before = _before(problem, geometry, levels.axes, bulk, level, None)
    vectors = math.sqrt(variance) * before.coordinates * np.sqrt(levels.axes)
    shares = np.tile(levels.counts * levels.values / levels.trace, (len(vectors), 1))
    return NeuronTypes(
        vectors, bulk * before.length, problem.width * before.weights, round(levels.counts.sum()),
        readout=before.readout, moved=0.0, shares=shares, coordinates=levels.counts,
    )  # fmt: skip


def _before(
    problem: Problem,
    geometry: Geometry,
    along: Array,
    bulk: float,
    level: QuadratureLevel,
    rule: Rule | None,
) -> _Before:
    """Nodes of (a, L^{−½}f⁰, length) by Gauss rules, strong axes first; a has a `rule` where there
    is a step."""
    assert geometry.levels is not None
    second = np.eye(len(along))
    second[: geometry.rank, : geometry.rank] = second_moment(geometry)
    root = np.sqrt(along)
    values, rotation = eigen_axes(root[:, None] * second * root)
    importance = problem.weight_variance * np.maximum(values[::-1], 0.0) / bulk**2
    importance = np.append(importance, 0.0)  # the length
    weak = rule is not None and rule.order == 2
    leading = (rule,) if rule is not None and not weak else ()
    if weak:
        importance = np.append(importance, 0.0)
    z, weights = standard_nodes(importance, replace(level, most=level.most // 2), leading)
    if rule is None:
        z = np.column_stack([np.zeros(len(z)), z])
    elif weak:
        z = np.roll(z, 1, axis=1)
    share, across = 1 / geometry.levels.effective_dim, z[:, 1:-1]
    within = np.ones(len(z))
    if problem.network.rows == "unit":  # |w|² is fixed, so the bulk gets what the axes leave
        dim = float(geometry.levels.counts.sum())
        share = max(share - 1 / dim, 0.0)
        beside = np.einsum("ij,ij->i", across, across) - across.shape[1]
        within = np.sqrt(np.maximum(1 - beside / dim, LEAST_BULK))
    length = within * np.exp(z[:, -1] * math.sqrt(share / 2) - 0.5 * share)  # E length² = 1
    readout = problem.readout_mean + problem.readout_std * z[:, 0]
    return _Before(readout, z[:, 1:-1] @ rotation[:, ::-1].T, length, weights)


def _moved(
    problem: Problem, geometry: Geometry, moments: StepMoments, along: Array, bulk: float
) -> float:
    """Variance that the step adds to preactivations of a neuron at the origin, over b₀²."""
    levels, r = geometry.levels, geometry.rank
    assert levels is not None
    push = (along * moments.push)[0]
    added = push[:r] @ second_moment(geometry) @ push[:r] + push[r:] @ push[r:]
    added += float(levels.counts @ levels.values**2) / problem.step_samples * moments.noise[0]
    return float(problem.rate**2 * problem.readout_square * added / bulk**2)
