"""Neurons after the first step, as types: coordinates v_i, bulk norm b_i, multiplicity c_i.

`pure_types` predicts the joint law of (v_i, b_i) without drawing anything; `drawn_types` reads it
off a trained first layer. Equations are named as in docs/book.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.directions.eigen import SAME, eigen_axes
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.symmetry import radial_importance, radius
from onegrad.theory.neurons.own_output import own_moments
from onegrad.theory.neurons.step import (
    StepChance,
    bulk_dimension,
    initial_output_matters,
    second_moment,
    spike_strength,
    step_importance,
    step_sample,
)
from onegrad.theory.nodes.rules import (
    QuadratureLevel,
    Rule,
    common,
    decay_order,
    halves,
    standard_nodes,
)

# Share of the variance before the step below which nodes of f⁰ are not moved
_LITTLE = 0.25
LEAST_BULK = 0.01  # least b₀² of rows of unit norm, over its mean: nodes far out in few dimensions
_BY_TYPE = ("vectors", "bulk", "tilt", "readout")  # arrays with a row for each type
_SPIKES = 4  # highest spike degree whose strength enters the choice of the readout's rule


@dataclass(frozen=True)
class NeuronTypes:
    """Types of neurons in the coordinates (V, [W₀ᵀa], e).

    vectors : (T, r') v_i, |v_i| along a group; bulk : (T,) b_i; counts : (T,) c_i, Σ c_i = k
    bulk_dim : n' = n − r'. Coordinates after the r of the geometry are N(0, 1) on fresh data,
        independent of κ and y
    tilt : (T,) or None, see NodeFeatures.tilt
    readout : (T,) the initial a_i of pure types, which later steps move along
    moved : how much the step changed preactivations (`step_importance`); NaN where it is not known
    shares : (T, J) of b_i² along each block of a bulk that is not flat, summing to one in a row,
        with coordinates : (J,) p_j of them; None where the bulk is flat
    """

    vectors: Array
    bulk: Array
    counts: Array
    bulk_dim: int
    tilt: Array | None = None
    readout: Array | None = None
    moved: float = math.nan
    shares: Array | None = None
    coordinates: Array | None = None

    def of(self, kept: np.ndarray) -> NeuronTypes:
        """Some types, for all neurons; of one step on a flat bulk."""
        parts: dict[str, Any] = {}
        for name in _BY_TYPE:
            rows = getattr(self, name)
            parts[name] = None if rows is None else rows[kept]
        counts = self.counts[kept] * (self.counts.sum() / self.counts[kept].sum())
        return replace(self, counts=counts, **parts)

    @property
    def effective_dim(self) -> float:
        """Equal coordinates whose |x_⊥|² would fluctuate as b_i² does from sample to sample."""
        if self.shares is None or self.coordinates is None:
            return float(self.bulk_dim)
        mean = self.counts @ (self.bulk[:, None] ** 2 * self.shares)
        return float(mean.sum() ** 2 / np.sum(mean**2 / self.coordinates))

    @property
    def spread(self) -> Array:
        """E[vvᵀ]/E[b²] over neurons: how much of κ the features see, axis by axis."""
        p = self.counts / self.counts.sum()
        return (self.vectors.T * p) @ self.vectors / float(p @ self.bulk**2)


class _Start(NamedTuple):
    """Neurons before the step, as nodes."""

    coordinates: Array  # (T, r') f⁰_i
    bulk: Array  # (T,) b₀ with its fluctuation
    readout: Array  # (T,) a_i
    weights: Array  # (T,) summing to one
    repeats: int  # number of readout values for each f⁰
    strong: bool  # whether the readout has a rule of its own, with the same f⁰ at each of its nodes


def pure_types(
    problem: Problem,
    geometry: Geometry,
    level: QuadratureLevel,
    chance: StepChance | None = None,
) -> NeuronTypes:
    """Types of neurons after the first step, nothing drawn (eq. bulk-after) (eq. own-noise).

    With h_i = η a_i, s_w² the variance of an entry of W and E over one sample (κ̃, u) of the step
    and z', at the preactivation f⁰_i·κ̃ + b₀ z' (docs/book/what-the-step-writes.md):

        f⁰_i ~ N(0, s_w² I),  b₀² = n' s_w²                       coordinates and bulk before it
        e·x̃ = sh·u + N(0, 1),  sh = √(n'/m̃)/√E u²                 its sample remembers u
            (eq. step-sample)
        g_i = E[u σ' κ̃],  mult_i = 1 + h_i E[u σ'']  (eq. neurons-after)
        v_i = f⁰_i + h_i g_i + noise of the covariance h_i²/m̃ E[u² Var_z'(σ') κ̃κ̃ᵀ]
              (`_with_own_noise`; where all a_i are equal `_with_noise`)
        b_i² = b₀² mult_i² + h_i² (n'/m̃) (E[u² σ'²] − E[u² σ']²/E u²)

    Where the initial output matters, u = y − f₀, the coordinate of f⁰_i along W₀ᵀa has the mean
    a_i √(n s_w²/(k E a²)), and tilt_i = b₀ mult_i a_i/√(k E a²): eqs. initial-output and tilt. What
    `chance` knows of one draw makes f⁰_i ~ N(a_i c/(k E a²), s_w² I) and adds h_i ζ to v_i:
    eqs. initial-chance and push-noise.
    """
    variance, bulk_dim = problem.weight_variance, bulk_dimension(geometry, False)
    if bulk_dim < 2:
        raise AssumptionError(
            f"{geometry.dim - bulk_dim} special directions leave no bulk in dimension "
            f"{geometry.dim}; use a larger dim or fewer spikes."
        )
    sample = step_sample(problem, geometry, level, False)
    moved = step_importance(problem, geometry, sample, math.sqrt(bulk_dim * variance))
    several = problem.training.steps > 1  # the chance part of f₀ is not followed so far
    output = not (geometry.groups or several) and (
        initial_output_matters(problem, geometry, moved) or bool(chance and chance.directions)
    )
    if output:
        bulk_dim -= 1
        sample = step_sample(problem, geometry, level, True, chance)
        moved = step_importance(problem, geometry, sample, math.sqrt(bulk_dim * variance))
    start = _before_step(problem, geometry, level, output, moved)
    if chance is not None and output:
        start = _with_chance(start, problem, chance)
    each = len(start.readout) // start.repeats
    coordinates, bulk, repeats = start.coordinates[:each], start.bulk[:each], start.repeats
    moments = sample.moments(problem.activation, coordinates, bulk)
    if repeats > 1:
        moments = moments.tiled(repeats)
    if output:
        own = own_moments(problem, geometry, start.coordinates, start.bulk)
        moments = moments.without(own, start.readout, start.coordinates, sample)
    h = problem.rate * start.readout
    stretch = 1.0 + h * moments.curvature
    spread = (h**2 / problem.step_samples)[:, None, None] * moments.spread
    before, push = start.coordinates, h[:, None] * moments.push
    pushed = before + push
    if problem.readout_std == 0 and not geometry.groups:
        vectors = _with_noise(pushed, spread, start.weights, variance)
    elif start.strong:
        vectors = _with_own_noise(start, before, pushed, spread, variance)
    else:
        roots = spread_roots(np.eye(before.shape[1]) + spread / variance)
        vectors = np.einsum("tij,tj->ti", roots, before) + push
    if chance is not None:
        vectors[:, : geometry.rank] += h[:, None] * chance.noise
    counts, size = problem.width * start.weights, math.sqrt(problem.width * problem.readout_square)
    noise = h**2 * (bulk_dim / problem.step_samples) * moments.noise
    after = np.sqrt(start.bulk**2 * stretch**2 + noise)
    tilt = start.bulk * stretch * start.readout / size if output else None
    return NeuronTypes(vectors, after, counts, bulk_dim, tilt, start.readout, moved)


def _before_step(
    problem: Problem,
    geometry: Geometry,
    level: QuadratureLevel,
    output: bool,
    moved: float,
) -> _Start:
    """f⁰ and a by tensor Gauss rules, or quasi-Monte Carlo when many directions are strong.

    The norm of w_i is an axis of its own: its fluctuation of order 1/√n is what a centred even
    activation learns a constant from; rows of unit norm have none. Of a group only the length of
    f⁰ there counts.
    output : whether W₀ᵀa is an axis
    moved : variance that the step adds to preactivations; if it is small, the readout is one more
        weak axis
    """
    count, bulk_dim = geometry.rank + 1 + int(output), bulk_dimension(geometry, output)
    variance, single = problem.weight_variance, geometry.single
    # Principal directions of E κκᵀ, strong ones first; e and W₀ᵀa have unit variance.
    second = second_moment(geometry)
    values, directions = eigen_axes(second[:single, :single])
    beside = np.ones(count + 1)
    importance = np.concatenate([values[::-1], second.diagonal()[single:], beside])
    importance = importance[: len(beside)] / bulk_dim
    importance[-1] = 0.0
    for j, size in enumerate(geometry.groups, start=single):
        importance[j] = radial_importance(importance[j], size, problem.labels_separate)
    rotation = np.eye(count)
    rotation[:single, :single] = directions[:, ::-1]
    rule = readout_rule(problem, moved, level)
    weak = rule.order == 2
    leading: tuple[Rule, ...] = () if weak else (rule,)
    if weak:
        importance = np.append(importance, 0.0)
    z, weights = standard_nodes(importance, replace(level, most=level.most // 2), leading)
    z = np.roll(z, 1, axis=1) if weak else z
    # Without the output nothing but h depends on the readout: average once per f⁰.
    repeats = 1 if output or weak else len(leading[0].nodes[1])
    if level.rare and repeats == 1:
        kept = common(z, weights, level.rare)
        z, weights = z[kept], weights[kept] / weights[kept].sum()
    readout = problem.readout_mean + problem.readout_std * z[:, 0]
    coordinates = math.sqrt(variance) * z[:, 1 : 1 + count] @ rotation.T
    for j, size in enumerate(geometry.groups, start=single):
        coordinates[:, j] = math.sqrt(variance) * radius(z[:, 1 + j], size)
    # b₀² has the mean n's_w² and the relative variance 2/n'
    length = np.exp(z[:, -1] / math.sqrt(2 * bulk_dim) - 0.5 / bulk_dim)
    bulk = math.sqrt(bulk_dim * variance) * length
    if output:
        coordinates[:, -2] += readout * math.sqrt(
            geometry.dim * variance / (problem.width * problem.readout_square)
        )
    if problem.network.rows == "unit":  # |f⁰|² + b₀² = ns_w², whatever the neuron
        square = geometry.dim * variance - np.einsum("ij,ij->i", coordinates, coordinates)
        bulk = np.sqrt(np.maximum(square, LEAST_BULK * bulk_dim * variance))
    strong = not weak and not geometry.groups
    return _Start(coordinates, bulk, readout, weights, repeats, strong)


def _with_chance(start: _Start, problem: Problem, chance: StepChance) -> _Start:
    """The mean of f⁰ given c = VᵀW₀ᵀa, and that much less of it along the rest of W₀ᵀa."""
    coordinates, total = start.coordinates.copy(), problem.width * problem.readout_square
    coordinates[:, : len(chance.output)] += start.readout[:, None] * chance.output / total
    less = math.sqrt(problem.dim) - math.sqrt(problem.dim - chance.directions)
    coordinates[:, -2] -= start.readout * math.sqrt(problem.weight_variance / total) * less
    return start._replace(coordinates=coordinates)


def readout_rule(problem: Problem, moved: float, level: QuadratureLevel) -> Rule:
    """Nodes for (a − readout_mean)/readout_std; two: the axis may share a design with others.

    A spike of degree p in the features has the strength k·moved^p/λ over the ridge, and p nodes
    know the powers of a below p. So strong spikes of the first few degrees need more than two
    nodes even where the step adds little to a preactivation.
    """
    if problem.readout_std == 0:
        return Rule(1)
    strength, x = spike_strength(problem), moved / (1.0 + moved)

    def needed(tolerance: float) -> int:
        spikes = decay_order(x, tolerance, max(strength, 1.0))
        return max(decay_order(x, tolerance), min(spikes, _SPIKES))

    order = level.grown(needed, 2)
    return halves(order) if level.halves else Rule(order)


def _with_noise(pushed: Array, spread: Array, weights: Array, variance: float) -> Array:
    """Nodes (T, r') whose covariance C becomes C + E spread, by the linear map that moves them
    least, C^−½ (C^½ (C + E spread) C^½)^½ C^−½; their mean stays.

    The noise of the step is independent of f⁰. Where the push takes back much of f⁰ and every
    neuron has the same sign of h_i, A_i f⁰_i would lose the noise with it (by a factor of two for
    quadratic activations with a constant readout); signs that differ average that out. Where
    little is left of f⁰, of the `variance` s_w², and more comes by noise, nodes of f⁰ cannot stand
    for it.
    """
    mean = weights @ pushed
    rest = pushed - mean
    values, vectors = np.linalg.eigh((rest.T * weights) @ rest)
    kept = values > SAME * max(float(values[-1]), 1e-300)
    root = np.where(kept, np.sqrt(np.maximum(values, 0.0)), 0.0)
    back = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
    added = vectors.T @ np.einsum("t,tij->ij", weights, spread) @ vectors
    if np.any(kept & (values < _LITTLE * variance) & (np.diagonal(added) > values)):
        raise AssumptionError(
            "the step takes back what neurons had along special directions, and its sampling noise "
            "is what remains there; types of neurons do not know that noise. Use a smaller or "
            'larger rate, more step_samples, or method = "layer".'
        )
    middle = root[:, None] * (np.diag(values) + added) * root
    moved = back[:, None] * spread_roots(middle[None])[0] * back
    return np.asarray(mean + rest @ vectors @ moved @ vectors.T)


def _with_own_noise(
    start: _Start, before: Array, pushed: Array, spread: Array, variance: float
) -> Array:
    """Nodes (T, r') of f⁰ + h g + h L ζ, ζ a standard Gaussian of each neuron and h²LLᵀ = `spread`
    (eq. with-own-noise).

    before, pushed : (T, r') f⁰ and f⁰ + h g, where bulks are turned with what that makes of them

    Given the readout, f⁰ + h g is M f⁰ + a constant + what is not linear, and with the noise the
    linear part has the covariance s_w²MMᵀ + h²LLᵀ: it becomes R_i f⁰ with that covariance, R_i as
    close to M as it may be. A_i f⁰ + h g with A_i² = I + h²LLᵀ/s_w² has that covariance in the mean
    over ±h only: where the step takes back what a neuron had, its noise remains (6 % of losses).
    """
    values, group = np.unique(start.readout, return_inverse=True)
    shares = np.where(group == np.arange(len(values))[:, None], start.weights, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    first, after = (x - (shares @ x)[group] for x in (before, pushed))
    second, cross = (np.einsum("at,ti,tj->aij", shares, x, first) for x in (first, after))
    slope = (cross @ np.linalg.pinv(second, rcond=SAME))[group]
    # by singular values of both parts side by side: squares would lose the small ones
    parts = np.concatenate([math.sqrt(variance) * slope, spread_roots(spread)], axis=2)
    left, sizes, _ = np.linalg.svd(parts, full_matrices=False)
    whole = left * sizes[:, None, :]
    inner, _, outer = np.linalg.svd(whole.mT @ slope)
    turned = whole @ inner @ outer / math.sqrt(variance) - slope
    return np.asarray(pushed + np.einsum("tij,tj->ti", turned, first))


def spread_roots(squares: Array) -> Array:
    """Symmetric roots A_i of (T, r', r') positive matrices: all of them, not the diagonal."""
    values, vectors = np.linalg.eigh(squares)
    return np.asarray(
        np.einsum("tij,tj,tkj->tik", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
    )


def drawn_types(first_layer: Array, basis: Array, tilt: Array | None = None) -> NeuronTypes:
    """Every neuron of a trained first layer (k, n) as its own type (`hybrid`).

    basis : (n, r') orthonormal: the geometry's basis first, then further directions on which
        fresh data are N(0, 1), above all the direction e of the gradient.
    tilt : (k,), needed when W₀ᵀa is one of those directions (eq. tilt)
    """
    vectors = first_layer @ basis
    square = np.einsum("ij,ij->i", first_layer, first_layer)
    least = SAME * max(float(square.mean()), 1e-300)
    square -= np.einsum("ij,ij->i", vectors, vectors)
    k, n = first_layer.shape
    return NeuronTypes(
        vectors, np.sqrt(np.maximum(square, least)), np.ones(k), n - basis.shape[1], tilt
    )
