"""Neurons after the first step, as types: coordinates v_i, bulk norm b_i, multiplicity c_i.

The step moves w_i by η a_i (1/m̃) Σ_t u_t σ'(w_i·x_t) x_t, u = y − f₀ (or y). `pure_types`
predicts the joint law of (v_i, b_i) without drawing anything; `drawn_types` reads it off a
trained first layer. Equation numbers refer to docs/theory.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.activation import Activation, Smoothed
from onegrad.errors import AssumptionError
from onegrad.hermite import Array, gauss_hermite
from onegrad.theory.geometry import Geometry, Labels, Training
from onegrad.theory.nodes import (
    Effort,
    Rule,
    axis_order,
    component_nodes,
    standard_nodes,
    tensor,
)
from onegrad.theory.smoothing import slope_moments, smoothed
from onegrad.theory.symmetry import radial_importance, radius

_WEAK_STEP = 1e-3  # a step that adds less than this to a preactivation's variance is nearly linear
_TINY_STEP = 1e-5
_OUTPUT_MATTERS = 0.01  # initial output below this part of E y² is left out of the residual
_FAINT_STEP = 0.02  # likewise, of k·(variance that the step adds)·(part of E y²), with groups


@dataclass(frozen=True)
class Neurons:
    """Types of neurons in the coordinates (V, [W₀ᵀa], e).

    vectors : (T, r') v_i, |v_i| along a group; bulk : (T,) b_i; counts : (T,) c_i, Σ c_i = k
    bulk_dim : n' = n − r'. Coordinates after the r of the geometry are N(0, 1) on fresh data,
        independent of κ and y
    tilt : (T,) or None, see Features.tilt
    """

    vectors: Array
    bulk: Array
    counts: Array
    bulk_dim: int
    tilt: Array | None = None

    @property
    def spread(self) -> Array:
        """E[vvᵀ]/E[b²] over neurons: how much of κ the features see, axis by axis."""
        p = self.counts / self.counts.sum()
        return (self.vectors.T * p) @ self.vectors / float(p @ self.bulk**2)


@dataclass(frozen=True)
class StepSample:
    """Nodes for one sample of the first step: κ̃ without its e coordinate, residual u, weights."""

    kappa: Array  # (S, r) or (S, r + 1) with the coordinate along W₀ᵀa
    residual: Array
    weights: Array

    @property
    def power(self) -> float:
        """E u²."""
        return float(self.weights @ self.residual**2)


def initial_output_matters(geometry: Geometry, labels: Labels, training: Training) -> bool:
    """Whether f₀ has to be taken off the labels: an exact gradient and f₀ that is not tiny."""
    return _output_share(geometry, labels, training) > _OUTPUT_MATTERS


def output_is_faint(geometry: Geometry, labels: Labels, training: Training) -> bool:
    """Whether f₀ may be left out of the residual though it is not tiny beside the labels,
    because the step hardly moves neurons: k·(variance that it adds)·(share of f₀) is small."""
    share = _output_share(geometry, labels, training)
    if share <= _OUTPUT_MATTERS:
        return True
    sample = _step_sample(geometry, labels, training, Effort.level(0), False)
    bulk_dim = geometry.dim - geometry.special - 1
    bulk = math.sqrt(max(bulk_dim, 1) * training.weight_variance)
    memory = _memory(bulk_dim, training.step_samples, sample.power)
    moved = _step_importance(training, sample, _second_moment(geometry), bulk, memory)
    return training.width * share * moved <= _FAINT_STEP


def _output_share(geometry: Geometry, labels: Labels, training: Training) -> float:
    """E f₀²/E y², to a percent; zero where the gradient leaves f₀ out, or nothing moves."""
    if training.gradient == "labels-only" or training.rate == 0:
        return 0.0
    scale = math.sqrt(geometry.dim * training.weight_variance)
    mean, square = _two_moments(training.activation, 0.0, scale)
    output = training.width * training.readout_square * square
    output += (training.width * training.readout_mean * mean) ** 2
    return output / max(_label_power(geometry, labels), 1e-12)


def _two_moments(activation: Activation, shift: float, scale: float) -> tuple[float, float]:
    """E σ(s+bZ) and E σ(s+bZ)², to a percent: enough to compare with a threshold."""
    z, w = gauss_hermite(32)
    values = activation(shift + scale * z)
    return float(w @ values), float(w @ values**2)


def _label_power(geometry: Geometry, labels: Labels) -> float:
    total = labels.noise**2
    for c, weight in enumerate(geometry.weights):
        if labels.values is not None:
            total += weight * labels.values[c] ** 2
            continue
        assert labels.links is not None
        xi = geometry.teacher
        scale = math.sqrt(float(xi @ geometry.covariances[c] @ xi))
        total += weight * _two_moments(labels.links[c], float(xi @ geometry.means[c]), scale)[1]
    return float(total)


def label_means(geometry: Geometry, labels: Labels, component: int, kappa: Array) -> Array:
    """ȳ = E[y | κ, component]."""
    if labels.values is not None:
        return np.full(len(kappa), float(labels.values[component]))
    assert labels.links is not None
    return labels.links[component](kappa[:, : geometry.rank] @ geometry.teacher)


def _step_sample(
    geometry: Geometry, labels: Labels, training: Training, effort: Effort, output: bool
) -> StepSample:
    """Nodes of (κ, t, u): t = ŵ_a·x along W₀ᵀa, u = ȳ − f₀ + noise  (eqs. (20), (23))."""
    r, variance = geometry.rank, training.weight_variance
    bulk = math.sqrt((geometry.dim - r) * variance)
    length = math.sqrt(training.width * training.readout_square * geometry.dim * variance)
    parts = []
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        kinks = () if labels.links is None else labels.links[c].kinks
        kappa, omega = component_nodes(
            geometry.means[c], geometry.roots[c], np.eye(r) * variance / bulk**2, effort,
            geometry.teacher if labels.links is not None else None, kinks,
        )  # fmt: skip
        u = label_means(geometry, labels, c, kappa)
        noise = np.full(len(u), labels.noise**2)
        rules = [(np.concatenate([kappa, u[:, None], noise[:, None]], axis=1), weight * omega)]
        if output:
            scale = np.sqrt(bulk**2 + variance * np.einsum("si,si->s", kappa, kappa))
            table = smoothed(training.activation, np.zeros((len(u), 1)), scale[:, None])
            first = Smoothed(*(moment[:, 0] for moment in table))
            rest = np.maximum(first.variance - scale**2 * first.slope**2, 0.0)
            noise = noise + training.width * (
                training.readout_square * rest + training.readout_std**2 * first.value**2
            )
            u = u - training.width * training.readout_mean * first.value
            columns = [kappa, u[:, None], noise[:, None], first.slope[:, None]]
            rules = [(np.concatenate(columns, axis=1), weight * omega), gauss_hermite(3)]
        noisy = bool(np.any(noise > 0))
        if not (noisy or output):
            parts.append((kappa, u, weight * omega))
            continue
        nodes, omega = tensor([*rules, gauss_hermite(3) if noisy else (np.zeros(1), np.ones(1))])
        u = nodes[:, r] + np.sqrt(nodes[:, r + 1]) * nodes[:, -1]
        if output:
            along = nodes[:, -2]
            u = u - length * nodes[:, r + 2] * along
            parts.append((np.concatenate([nodes[:, :r], along[:, None]], axis=1), u, omega))
        else:
            parts.append((nodes[:, :r], u, omega))
    kappa, u, omega = (np.concatenate(p) for p in zip(*parts, strict=True))
    return StepSample(kappa, u, omega)


def _memory(bulk_dim: int, step_samples: int, power: float) -> float:
    """sh: on the sample of the step e·x̃ = sh·u + N(0,1), sh = √(n'/m̃)/√E u²  (eq. (21))."""
    return math.sqrt(bulk_dim / step_samples) / math.sqrt(power) if power > 0 else 0.0


def _spread_root(squares: Array) -> Array:
    """Symmetric roots A_i of (T, r', r') positive matrices: all of them, not the diagonal."""
    values, vectors = np.linalg.eigh(squares)
    return np.asarray(
        np.einsum("tij,tj,tkj->tik", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
    )


@dataclass(frozen=True)
class _Moments:
    """Averages over one sample of the step, per initial neuron f0_i."""

    push: Array  # (T, r') g_i = E[u σ' κ̃]
    curvature: Array  # (T,) E[u σ'']
    noise: Array  # (T,) E[u² σ'²] − E[u² σ']²/E u²
    spread: Array  # (T, r', r') E[u² Var_z(σ') κ̃κ̃ᵀ]

    def tiled(self, repeats: int) -> _Moments:
        arrays = (self.push, self.curvature, self.noise, self.spread)
        return _Moments(*(np.tile(x, (repeats, *([1] * (x.ndim - 1)))) for x in arrays))


def _step_moments(
    start: Array, bulk: Array, sample: StepSample, training: Training, memory: float
) -> _Moments:
    """Averages (22) over κ̃ and z', with the N(0,1) part of e·x̃ merged into z'."""
    u, weights, power = sample.residual, sample.weights, sample.power
    last = start[:, -1]
    shift = start[:, :-1] @ sample.kappa.T + memory * last[:, None] * u
    scale = np.sqrt(bulk**2 + last**2)[:, None]
    moments = slope_moments(training.activation, shift, scale)
    wu, wu2 = weights * u, weights * u**2
    curvature = moments.curvature @ wu
    squared = moments.value @ wu2  # E[u² σ']
    push = np.concatenate(
        [moments.value @ (wu[:, None] * sample.kappa),
         (memory * squared + last * curvature)[:, None]], axis=1,
    )  # fmt: skip
    second = (moments.variance + moments.value**2) @ wu2
    kappa = np.concatenate([sample.kappa, (memory * u)[:, None]], axis=1)
    size = kappa.shape[1]
    pairs = (kappa[:, :, None] * kappa[:, None, :]).reshape(len(u), -1)
    spread = (moments.variance @ (wu2[:, None] * pairs)).reshape(-1, size, size)
    spread[:, -1, -1] += moments.variance @ wu2
    noise = second - (squared**2 / power if power > 0 else 0.0)
    return _Moments(push, curvature, np.maximum(noise, 0.0), spread)


def pure_types(geometry: Geometry, labels: Labels, training: Training, effort: Effort) -> Neurons:
    """Types of neurons after the step, nothing drawn: eqs. (20)–(24).

    f0 ~ N(0, I·weight_variance) and a by tensor Gauss rules (quasi-Monte Carlo when many
    directions are strong). The norm of w_i is an axis of its own: its fluctuation of order
    1/√n is what a centred even activation learns a constant from. With the initial output in
    the residual, the coordinate along W₀ᵀa has mean a_i·√(n·weight_variance/(k E a²)).
    """
    output = not geometry.groups and initial_output_matters(geometry, labels, training)
    sample = _step_sample(geometry, labels, training, Effort.level(0), output)
    count = geometry.rank + 1 + int(output)
    bulk_dim = geometry.dim - geometry.special - 1 - int(output)
    if bulk_dim < 1:
        raise AssumptionError(
            f"{geometry.dim - bulk_dim} special directions leave no bulk in dimension "
            f"{geometry.dim}; use a larger dim or fewer spikes."
        )
    variance = training.weight_variance
    bulk = math.sqrt(bulk_dim * variance)
    memory = _memory(bulk_dim, training.step_samples, sample.power)
    # Axes of f0: principal directions of E κκᵀ, strong ones first; e and W₀ᵀa have unit variance.
    # Of a group only the length of f0 there counts.
    second = _second_moment(geometry)
    single = geometry.rank - len(geometry.groups)
    values, vectors = np.linalg.eigh(second[:single, :single])
    importance = np.concatenate([values[::-1], second.diagonal()[single:], np.ones(count + 1)])
    importance = importance[: count + 1] / bulk_dim
    importance[-1] = 0.0
    for j, size in enumerate(geometry.groups):
        along = importance[single + j]
        importance[single + j] = radial_importance(along, size, labels.separating)
    rotation = np.eye(count)
    rotation[:single, :single] = vectors[:, ::-1]
    moved = _step_importance(training, sample, second, bulk, memory)
    leading: tuple[Rule, ...] = (_readout_rule(training, moved, effort),)
    readout_axes: list[float] = []
    if moved < _WEAK_STEP:  # the readout is one more weak axis, and coarse averages will do
        leading, readout_axes = (), [0.0]
    elif effort != Effort.level(0):
        sample = _step_sample(geometry, labels, training, effort, output)
        memory = _memory(bulk_dim, training.step_samples, sample.power)
    z, p = standard_nodes(np.array([*importance, *readout_axes]), effort, leading)
    z = np.roll(z, 1, axis=1) if readout_axes else z
    a = training.readout_mean + training.readout_std * z[:, 0]
    start = math.sqrt(variance) * z[:, 1:-1] @ rotation.T
    for j, size in enumerate(geometry.groups, start=single):
        start[:, j] = math.sqrt(variance) * radius(z[:, 1 + j], size)
    before = bulk * np.exp(z[:, -1] / math.sqrt(2 * bulk_dim))
    if output:
        start[:, -2] += a * math.sqrt(
            geometry.dim * variance / (training.width * training.readout_square)
        )
    # Without the output nothing but h depends on the readout: average once per f0.
    repeats = 1 if output or readout_axes else leading[0].order
    if moved < _TINY_STEP:  # not even the neuron matters
        start_for_step, repeats = np.zeros((1, count)), len(z)
    else:
        start_for_step = start
    each = len(z) // repeats
    moments = _step_moments(start_for_step[:each], before[:each], sample, training, memory)
    if repeats > 1:
        moments = moments.tiled(repeats)
    h = training.rate * a
    stretch = 1.0 + h * moments.curvature
    squares = np.eye(count) + (h**2 / (variance * training.step_samples))[:, None, None] * (
        moments.spread
    )
    vectors = np.einsum("tij,tj->ti", _spread_root(squares), start) + h[:, None] * moments.push
    noise = h**2 * (bulk_dim / training.step_samples) * moments.noise
    after = np.sqrt(before**2 * stretch**2 + noise)
    tilt = None
    if output:
        tilt = before * stretch * a / math.sqrt(training.width * training.readout_square)
    return Neurons(vectors, after, training.width * p, bulk_dim, tilt)


def _second_moment(geometry: Geometry) -> Array:
    """E κκᵀ over the mixture."""
    outer = np.einsum("c,ci,cj->ij", geometry.weights, geometry.means, geometry.means)
    return geometry.mean_covariance + outer


def _step_importance(
    training: Training, sample: StepSample, second: Array, bulk: float, memory: float
) -> float:
    """Variance that the step adds to a preactivation, E (h g·κ)², relative to the bulk's."""
    count = sample.kappa.shape[1] + 1
    push = _step_moments(np.zeros((1, count)), np.array([bulk]), sample, training, memory).push[0]
    r = len(second)
    moved = float(push[:r] @ second @ push[:r] + push[r:] @ push[r:]) / bulk**2
    return training.rate**2 * training.readout_square * moved


def _readout_rule(training: Training, moved: float, effort: Effort) -> Rule:
    """Nodes for (a − readout_mean)/readout_std: the more, the further the step moves neurons."""
    if training.readout_std == 0:
        return Rule(1)
    order = axis_order(moved, effort)
    return Rule(2 * max(1 + effort.raised, math.ceil((order + 1) / 2)))


def drawn_types(first_layer: Array, basis: Array, tilt: Array | None = None) -> Neurons:
    """Every neuron of a trained first layer (k, n) as its own type (`hybrid`).

    basis : (n, r') orthonormal: the geometry's basis first, then further directions on which
        fresh data are N(0, 1), above all the direction e of the gradient.
    tilt : (k,), needed when W₀ᵀa is one of those directions (eq. (24))
    """
    vectors = first_layer @ basis
    square = np.einsum("ij,ij->i", first_layer, first_layer)
    square -= np.einsum("ij,ij->i", vectors, vectors)
    k, n = first_layer.shape
    return Neurons(
        vectors, np.sqrt(np.maximum(square, 1e-300)), np.ones(k), n - basis.shape[1], tilt
    )
