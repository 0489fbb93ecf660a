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
from onegrad.theory.neurons.block_types import block_types
from onegrad.theory.neurons.step import StepChance, output_share, step_sample
from onegrad.theory.neurons.types import NeuronTypes, RowMixing, pure_types
from onegrad.theory.nodes.designs import tensor
from onegrad.theory.nodes.population import data_nodes, labels_at, with_flips
from onegrad.theory.nodes.rules import QuadratureLevel

# Variance of the initial output over that of labels up to which later steps may see its mean alone
_OUTPUT = 0.1
_TYPES = 2400  # types of neurons after all steps, about
# Share of a preactivation's variance by which a batch moves all neurons along spikes: relu is 11 %
# off at 0.11, 2 % at 0.05
_CHANCE = 0.06
MOST_STEPS = 4  # every further one doubles the types
MOST_DIRECTIONS = 6  # special directions that the rules of every step can resolve


class NoiseDirections(NamedTuple):
    """Directions of a step's sampling noise that neurons share: how many at most, and the singular
    value from which on one counts, over the first one; matrices that turn rows, of each step."""

    most: int = 2
    visible: float = 0.05
    matrices: int = 0


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
    if later and output_share(problem, geometry) > _OUTPUT:
        raise AssumptionError(
            "several steps without a draw need an initial output that is small beside the labels, "
            'a larger network.width; use method = "layer"'
        )
    if later and noise.matrices:
        neurons = replace(neurons, mixing=_first_mixing(problem, geometry, neurons, level))
    for rate in problem.rates[1:]:
        neurons = _next_step(problem, geometry, neurons, (rate, noise), level)
    return neurons


class _Sample(NamedTuple):
    """Nodes for one sample of a step: κ with earlier noise directions, residual u, weights."""

    kappa: Array
    residual: Array
    weights: Array


def _step_sample(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, level: QuadratureLevel
) -> _Sample:
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
    return _Sample(kappa, labels, weights)


def _noise_directions(sample: _Sample, table: Array, noise: NoiseDirections) -> Array:
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
    memory = math.sqrt(left / problem.step_samples)
    # f along the new directions, then ζ along all
    chance = _chance(neurons.counts, count + known + count)
    double = _twice(neurons)
    h, shift = np.tile(h, 2), np.tile(shift, (2, 1))
    new = chance[:, :count] * (double.bulk / math.sqrt(neurons.bulk_dim))[:, None]
    bulk = double.bulk * math.sqrt(left / neurons.bulk_dim)
    u, w = sample.residual, sample.weights
    along = memory * u[:, None] * psi  # e_l·x̃ without its N(0, 1)
    shift = shift + new @ along.T
    scale = np.sqrt(bulk**2 + np.sum(new**2, axis=1))[:, None]
    slope = slope_moments(activation, shift, scale)
    wu, wu2 = w * u, w * u**2
    curvature = slope.curvature @ wu
    remembered = slope.value @ (wu2[:, None] * psi)  # E[u² σ' ψ_l]
    push = np.concatenate(
        [
            slope.value @ (wu[:, None] * sample.kappa),
            memory * remembered + new * curvature[:, None],
        ],
        axis=1,
    )
    kappa = np.concatenate([sample.kappa, along], axis=1)
    size = known + count
    pairs = (kappa[:, :, None] * kappa[:, None, :]).reshape(len(u), -1)
    spread = (slope.variance @ (wu2[:, None] * pairs)).reshape(-1, size, size)
    new_axes = np.arange(known, size)
    spread[:, new_axes, new_axes] += (slope.variance @ wu2)[:, None]
    values, vectors = np.linalg.eigh(spread / problem.step_samples)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    zeta = np.einsum("tij,tj->ti", roots, chance[:, count:])
    moved = np.concatenate([double.vectors, new], axis=1) + h[:, None] * (push + zeta)
    second = (slope.variance + slope.value**2) @ wu2
    noise = np.maximum(second - np.sum(remembered**2, axis=1), 0.0)
    square = bulk**2 * (1 + h * curvature) ** 2 + h**2 * (left / problem.step_samples) * noise
    found = NeuronTypes(moved, np.sqrt(square), double.counts, left, None, double.readout)
    if double.mixing is None:
        return found
    kept = (1 + h * curvature) * math.sqrt(left / neurons.bulk_dim)
    bends = slope.curvature * (memory * h * kept * double.mixing.start)[:, None]
    parts = _mixing_parts(bends, sample, double.counts, step[1].matrices)
    before = double.mixing.parts * kept[:, None]
    mixing = RowMixing(kept * double.mixing.start, np.concatenate([before, parts], axis=1))
    return replace(found, mixing=mixing)


def _mixing_parts(bends: Array, sample: _Sample, counts: Array, most: int) -> Array:
    """P_il (T, L) of M_l = X̃ᵀ diag(uψ_l) X̃/√(n'm̃), ψ_l orthonormal in L²(ωu²): what
    (1/m̃) Σ_t u_tσ''_i(κ_t) x̃_tx̃_tᵀ is for neuron i, bends = √(n'/m̃) h_is_iσ''_i(κ_s)."""
    size = np.sqrt(sample.weights) * np.abs(sample.residual)
    table = bends * size
    _, values, right = np.linalg.svd(np.sqrt(counts)[:, None] * table, full_matrices=False)
    return np.asarray(table @ settled(values, right.T)[1][:, :most])


def _first_mixing(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, level: QuadratureLevel
) -> RowMixing:
    """Of the first step, in which σ'' is the same along all of the data."""
    assert neurons.readout is not None
    sample = step_sample(problem, geometry, level, False)
    bulk = math.sqrt(neurons.bulk_dim * problem.weight_variance)
    power = float(sample.weights @ sample.residual**2)
    slopes = slope_moments(problem.activation, np.zeros((1, 1)), np.full((1, 1), bulk))
    bend = problem.rate * neurons.readout * float(slopes.curvature[0, 0])
    part = bulk * bend * math.sqrt(neurons.bulk_dim / problem.step_samples * power)
    mean = float(sample.weights @ sample.residual)
    return RowMixing(bulk * (1 + bend * mean), part[:, None])


def _check_chance(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, sample: _Sample, slopes: Array
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


def _twice(neurons: NeuronTypes) -> NeuronTypes:
    """Every type as two of half its number."""
    assert neurons.readout is not None
    return NeuronTypes(
        np.tile(neurons.vectors, (2, 1)), np.tile(neurons.bulk, 2), np.tile(neurons.counts, 2) / 2,
        neurons.bulk_dim, None, np.tile(neurons.readout, 2),
        mixing=None if neurons.mixing is None else neurons.mixing.twice(),
    )  # fmt: skip
