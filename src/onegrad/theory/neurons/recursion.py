"""Types of neurons after several steps of gradient descent, each on samples of its own.

Nothing is drawn: the types after one step (types.py) take the next one, and so on. Formulas and
their checks: docs/book/any-first-layer.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import slope_moments, smoothed
from onegrad.problem import Problem
from onegrad.theory.directions.eigen import settled
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.block_types import FAINT, block_types
from onegrad.theory.neurons.step import StepChance, StepSample, output_share
from onegrad.theory.neurons.types import NeuronTypes, pure_types
from onegrad.theory.nodes.designs import tensor
from onegrad.theory.nodes.population import data_nodes, labels_at, with_flips
from onegrad.theory.nodes.rules import QuadratureLevel

_TYPES = 2400  # types of neurons after all steps, about
# Share of a preactivation's variance by which a batch moves all neurons along spikes: relu is 11 %
# off at 0.11, 2 % at 0.05
_CHANCE = 0.06
MOST_STEPS = 4  # every further one doubles the types
MOST_DIRECTIONS = 6  # special directions that the rules of every step can resolve


class NoiseDirections(NamedTuple):
    """Directions of a step's sampling noise that neurons share: how many at most, and the singular
    value from which on one counts, over the first one."""

    most: int = 2
    visible: float = 0.05


def recursion_holds(problem: Problem, spectra: bool = False) -> bool:
    """Whether several steps are predicted without a draw: gradient descent on fresh samples in
    the mixture convention, few steps and few directions.

    spectra : in the isotropic convention too, where no initial output is in the residual
    """
    data = problem.data
    means = bool(getattr(data, "mean", 0.0)) or getattr(data, "centres", None) is not None
    directions = data.components * (getattr(data, "rank", 0) + means)
    labels_only = spectra and problem.training.gradient == "labels-only"
    return (
        problem.training.optimiser == "gd"
        and problem.training.batch == "fresh"
        and problem.training.steps <= MOST_STEPS
        and (problem.network.convention == "mixture" or labels_only)
        and directions + 1 <= MOST_DIRECTIONS
    )


def trained_types(
    problem: Problem,
    geometry: Geometry,
    level: QuadratureLevel,
    chance: StepChance | None = None,
    noise: NoiseDirections = NoiseDirections(),
) -> NeuronTypes:
    """Types of neurons after all steps of the problem: `pure_types` for one, `block_types` on a
    bulk that is not flat.

    noise : of each of several steps; outliers have more of them than errors need
    """
    if geometry.levels is not None:
        return block_types(problem, geometry, level)
    later = len(problem.rates) - 1
    if later:  # every later step doubles the types
        most, points = max(_TYPES >> later, 300), max(_TYPES >> later, 256)
        level = replace(level, most=min(level.most, most), points=min(level.points, points))
    neurons = pure_types(problem, geometry, level, chance)
    if later and output_share(problem, geometry) > FAINT:
        raise AssumptionError(
            "several steps without a draw need an initial output that is small beside the labels, "
            'a larger network.width; use method = "layer"'
        )
    for rate in problem.rates[1:]:
        neurons = _next_step(problem, geometry, neurons, (rate, noise), level)
    return neurons


def _step_sample(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, level: QuadratureLevel
) -> StepSample:
    """u = y − F(κ) with F(κ) = Σ_i c_i a_i ν_i(κ), the mean output of the current network."""
    where = data_nodes(problem, geometry, neurons.spread, level)
    labels = labels_at(problem, geometry, where)
    labels, kappa, weights = with_flips(problem, labels, where.kappa, where.weights)
    if problem.training.gradient == "exact":
        shift = neurons.vectors @ kappa.T
        value = smoothed(problem.activation, shift, neurons.bulk[:, None]).value
        assert neurons.readout is not None
        labels = labels - (neurons.counts * neurons.readout) @ value
    if problem.label_noise:
        given = np.column_stack([kappa, labels]), weights
        nodes, weights = tensor([given, gauss_hermite(3)])
        kappa, labels = nodes[:, :-2], nodes[:, -2] + problem.label_noise * nodes[:, -1]
    return StepSample(kappa, labels, weights, 0.0)


def _noise_directions(sample: StepSample, table: Array, noise: NoiseDirections) -> Array:
    """ψ (S, L), orthonormal in L²(ωu²): what the noise of a step depends on.

    The noise of neuron i is Σ_t u_t d_i(κ_t) x̃_t over the bulk, table = √c_i h_i d_i(κ_s): its
    leading singular functions are the directions that neurons share.
    """
    size = np.sqrt(sample.weights) * np.abs(sample.residual)
    _, values, right = np.linalg.svd(table * size, full_matrices=False)
    values, axes = settled(values, right.T)
    right = axes.T
    kept = values[: noise.most] > noise.visible * max(float(values[0]), 1e-300)
    functions = right[: noise.most][kept]
    return np.asarray((functions / np.maximum(size, 1e-300)).T)


def _next_step(
    problem: Problem,
    geometry: Geometry,
    neurons: NeuronTypes,
    step: tuple[float, NoiseDirections],
    level: QuadratureLevel,
) -> NeuronTypes:
    """One more step, with h_i = η a_i and E over κ, u and z of its sample (eqs. current-output,
    recursion-sample, recursion-push, recursion-noise and recursion-bulk):

        e_l·x̃ = √(n'/m̃) uψ_l + N(0, 1),   new coordinates f_l ~ N(0, b²/n')
        v   += h (E[uσ'κ] + Lζ),            LLᵀ = E[u² Var_z(σ') κκᵀ]/m̃
        f_l += h (√(n'/m̃) E[u²σ'ψ_l] + f_l E[uσ''])
        b²  ← b² (1 + h E[uσ''])² + h² (n'/m̃) (E[u²σ'²] − Σ_l E[u²σ'ψ_l]²)

    Every type becomes two, with opposite chance parts (f, ζ).
    """
    sample, activation = _step_sample(problem, geometry, neurons, level), problem.activation
    assert neurons.readout is not None
    h = step[0] * neurons.readout
    shift = neurons.vectors @ sample.kappa.T
    slopes = slope_moments(activation, shift, neurons.bulk[:, None]).value
    psi = _noise_directions(sample, slopes * (np.sqrt(neurons.counts) * h)[:, None], step[1])
    _check_chance(problem, geometry, neurons, sample, slopes)
    count, known = psi.shape[1], neurons.vectors.shape[1]
    left = neurons.bulk_dim - count
    if left < 1:
        raise AssumptionError(
            f"{geometry.dim - left} special directions leave no bulk in dimension {geometry.dim}; "
            "use a larger dim, fewer spikes or fewer steps."
        )
    sample = replace(sample, memory=math.sqrt(left / problem.step_samples), functions=psi)
    # f along the new directions, then ζ along all
    chance = _chance(neurons.counts, count + known + count)
    bulk, h, readout = (np.tile(x, 2) for x in (neurons.bulk, h, neurons.readout))
    new = chance[:, :count] * (bulk / math.sqrt(neurons.bulk_dim))[:, None]
    start = np.concatenate([np.tile(neurons.vectors, (2, 1)), new], axis=1)
    bulk = bulk * math.sqrt(left / neurons.bulk_dim)
    moments = sample.moments(activation, start, bulk)
    values, vectors = np.linalg.eigh(moments.spread / problem.step_samples)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    zeta = np.einsum("tij,tj->ti", roots, chance[:, count:])
    moved = start + h[:, None] * (moments.push + zeta)
    square = bulk**2 * (1 + h * moments.curvature) ** 2
    square += h**2 * (left / problem.step_samples) * moments.noise
    counts = np.tile(neurons.counts, 2) / 2
    return NeuronTypes(moved, np.sqrt(square), counts, left, None, readout)


def _check_chance(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, sample: StepSample, slopes: Array
) -> None:
    """Refuse where the chance of a batch along strong spikes moves all neurons together.

    They move by h_iζ with ζ of mean zero and Var ζ_j = Var(u d̄ κ_j)/m̃; every further step
    amplifies it. Nothing here follows it.
    """
    assert neurons.readout is not None
    p, r = neurons.counts / neurons.counts.sum(), geometry.rank
    product = (sample.residual * (p @ slopes))[:, None] * sample.kappa[:, :r]
    mean = sample.weights @ product
    covariance = (product.T * sample.weights) @ product - np.outer(mean, mean)
    second = geometry.mean_covariance
    chance = float(np.sum(covariance * second)) / problem.step_samples
    moved = sum(rate**2 for rate in problem.rates) * float(p @ neurons.readout**2) * chance
    share = len(problem.rates) * moved / float(p @ neurons.bulk**2)
    if share > _CHANCE:
        raise AssumptionError(
            f"the steps' samples move all neurons together along the spikes, by {100 * share:.2g} "
            "% of the variance of a preactivation, which several steps without a draw leave out. "
            'Use method = "layer", a smaller rate or more step_samples'
        )


def _chance(counts: Array, dimension: int) -> Array:
    """Standard Gaussians (2T, dimension), a point and its mirror image for each of T types: mean
    zero and unit covariance over neurons exactly, the rest from one fixed draw."""
    z = np.random.default_rng([20250117, dimension]).standard_normal((len(counts), dimension))
    root = np.linalg.cholesky((z.T * (counts / counts.sum())) @ z)
    white = np.linalg.solve(root, z.T).T
    return np.concatenate([white, -white])
