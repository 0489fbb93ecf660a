"""The chance parts of the first step along strong spikes: c = VᵀW₀ᵀa, and the sampling noise ζ.

Both are one vector for each draw, not one for each neuron, and are of the order of 1/√n; strong
spikes make them visible (docs/book/chance-and-size.md).

What types leave out is the chance in the curvature of the neurons (`quadratic_chance`). A neuron's
slope at a sample is d̄ + s₂ v_i·κ + …, s₂ = E σ''(bZ), so that the gradient has a matrix that is one
for each draw and stretches all neurons along strong directions,

    v_i ← v_i + h_i s₂ (Z − D) v_i,   Var Z_jl = (E[u²κ_j²κ_l²] − E[uκ_jκ_l]²)/m̃             (39)

Z of the step's samples, and with the exact gradient D = tr(CΘ)Θ + 2ΘCΘ of the initial output,
whose part of degree two is κᵀCκ with C = (s₂/2) Σ_i a_i v_iv_iᵀ, Θ = E κκᵀ and
Var C_jl = (1 + δ_jl)(s₂²/4) k E a² s_w⁴. For even activations, whose mean slope is zero, nothing
else moves along spikes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.smoothing import centred_moments
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.step import (
    StepChance,
    StepSample,
    initial_output_matters,
    output_share,
    second_moment,
    step_sample,
)
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.policy import Policy

_MARGIN = 4.0  # a coarse look that is this many times below the limit decides alone


def strong_directions(
    problem: Problem, geometry: Geometry, many: bool, policy: Policy = Policy()
) -> tuple[str, ...]:
    """Spikes along which the chance parts of the step count, the strongest first.

    None where Q ≤ `Policy.step_chance`. Of many directions, which are taken in groups, none:
    AssumptionError where they count, beyond `Policy.step_chance_of_many`.
    """
    shares = shares_that_count(problem, geometry, policy)
    total = sum(shares.values())
    if total <= (policy.step_chance_of_many if many else policy.step_chance):
        return ()
    if many:
        raise AssumptionError(
            f"the step moves neurons along {len(shares)} strong spikes by chance (of the initial "
            "output, and of the step's samples); of so many directions, which are taken in groups, "
            "that cannot be averaged over. Use a smaller rate or spread, fewer spikes, "
            'gradient = "labels-only", or method = "layer".'
        )
    return tuple(sorted(shares, key=lambda name: -shares[name]))


def shares_that_count(
    problem: Problem, geometry: Geometry, policy: Policy = Policy()
) -> dict[str, float]:
    """`step_shares`, or none where a coarse look says that they are far from counting."""
    rough = sum(step_shares(problem, geometry, coarse=True).values())
    return step_shares(problem, geometry) if _MARGIN * rough > policy.step_chance else {}


def step_shares(problem: Problem, geometry: Geometry, coarse: bool = False) -> dict[str, float]:
    """Q of each spike: k times what chance pushes along it add to the variance of preactivations.

    With θ̄_j + 1 the second moment along spike j, d̄ the slope of an untrained neuron, b₀ its
    scale:

        Q_j = (k η² E a²/b₀²) (1 + θ̄_j) [k E a² s_w² d̄⁴ θ̄_j² + Var ζ_j]  (eq. chance-threshold)

    of the initial output (with the exact gradient) and of the step's sampling noise. With several
    steps neither is followed.
    coarse : what all widths share is enough, few nodes without the initial output in the noise
    """
    names = [name for name in geometry.directions if name.startswith("spike")]
    if problem.rate == 0 or not names or problem.training.steps > 1:
        return {}
    basis = np.stack([geometry.directions[name] for name in names], axis=1)
    second = second_moment(geometry)
    noise = (_coarse_noise if coarse else _noise_variance)(problem, geometry, basis)
    strength = np.einsum("ij,ik,kj->j", basis, second, basis) - 1.0
    bulk = problem.dim * problem.weight_variance
    if problem.training.gradient == "exact":
        slope = _slope(problem, np.array([math.sqrt(bulk)]))[0]
        output = problem.width * problem.readout_square * problem.weight_variance
        noise = noise + output * slope**4 * strength**2
    per = problem.width * problem.rate**2 * problem.readout_square / bulk
    return dict(zip(names, (per * (1 + strength) * noise).tolist(), strict=True))


def _slope(problem: Problem, scale: Array) -> Array:
    """d̄ = E σ'(scale·Z)."""
    return centred_moments(problem.activation, scale).slope


def _noise_variance(problem: Problem, geometry: Geometry, basis: Array) -> Array:
    """Var ζ_j = (E[u² d̄² κ_j²] − E[u d̄ κ_j]²)/m̃ along the columns: eq. push-noise."""
    output = not geometry.groups and initial_output_matters(problem, geometry)
    sample = step_sample(problem, geometry, QuadratureLevel.at(2), output)
    return _variance_of(sample, problem, geometry, basis)


def _coarse_noise(problem: Problem, geometry: Geometry, basis: Array) -> Array:
    """The same of a coarse rule; the initial output adds up to three times its share, that of a
    product of squares of Gaussians that are one."""
    sample = step_sample(problem, geometry, QuadratureLevel.at(0), False)
    more = 1.0 + 3.0 * output_share(problem, geometry)
    return more * _variance_of(sample, problem, geometry, basis)


def _variance_of(sample: StepSample, problem: Problem, geometry: Geometry, basis: Array) -> Array:
    kappa, variance = sample.kappa[:, : geometry.rank], problem.weight_variance
    rest = (problem.dim - geometry.special) * variance
    slope = _slope(problem, np.sqrt(rest + variance * np.einsum("si,si->s", kappa, kappa)))
    pushed = (sample.residual * slope)[:, None] * (kappa @ basis)
    mean = sample.weights @ pushed
    return np.asarray((sample.weights @ pushed**2 - mean**2) / problem.step_samples)


def step_chance(
    problem: Problem, geometry: Geometry, strong: Sequence[str], values: Array
) -> StepChance:
    """c and ζ at standard values along the strong directions, made orthonormal. Eqs. initial-chance
    and push-noise.

    c moves the push along a strong direction by −c_j E[d̄² κ_j²], and ζ is independent of it: both
    together are one Gaussian, so that ζ_j is given what the push lacks of its variance.
    """
    columns = np.stack([geometry.directions[name] for name in strong], axis=1)
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    basis = left @ right
    noise = np.sqrt(_noise_variance(problem, geometry, basis))
    if problem.training.gradient == "labels-only":
        return StepChance(np.zeros(geometry.rank), basis @ (noise * values), 0)
    variance = problem.weight_variance
    size = math.sqrt(problem.width * problem.readout_square * variance)
    second = np.einsum("ij,ik,kj->j", basis, second_moment(geometry), basis)
    scale = np.sqrt(problem.dim * variance + variance * second)
    along = size * _slope(problem, scale) ** 2 * second
    noise = np.sqrt(along**2 + noise**2) - along
    return StepChance(basis @ (size * values), -basis @ (noise * values), len(strong))


def quadratic_chance(problem: Problem, geometry: Geometry, policy: Policy = Policy()) -> float:
    """What leaving (39) out may cost, relative: ½τ²/(τ² + `Policy.stretch`), an empirical bound.

    Random problems with even activations were 3 to 10 % off at τ² = 0.03 and 25 % at 10. Several
    steps are not followed.
    """
    if problem.rate == 0 or problem.training.steps > 1 or not geometry.rank:
        return 0.0
    stretch = stretch_variance(problem, geometry)
    return 0.5 * stretch / (stretch + policy.stretch)


@lru_cache(maxsize=64)
def _mean_curvature(activation: Activation, scale: float) -> float:
    """s₂ = E σ''(bZ), the same for all points of most curves."""
    return float(activation.projections(2, scale)[2]) / scale**2


def stretch_variance(problem: Problem, geometry: Geometry) -> float:
    """τ² = η² E a² s₂² Σ_jl Θ_j (Var Z_jl + Var D_jl)/Σ_j Θ_j: the variance that the stretch of a
    neuron has along the special directions, in units of its own there. An axis of a group counts as
    often as it has directions, which is an upper bound; a bulk that is not flat counts as flat
    (eq. stretch) (eq. stretch-output)."""
    scale = float(np.sqrt(problem.dim * problem.weight_variance))
    curvature = _mean_curvature(problem.activation, scale)
    values, axes = np.linalg.eigh(second_moment(geometry))
    output = not geometry.groups and initial_output_matters(problem, geometry)
    sample = step_sample(problem, geometry, QuadratureLevel.at(2), output)
    kappa, squares = sample.kappa[:, : geometry.rank] @ axes, values**2
    copies = np.ones(geometry.rank)
    copies[geometry.single :] = geometry.groups
    copies = (axes**2).T @ copies  # directions that an axis stands for
    weights = copies * values
    pushed = sample.weights * sample.residual
    mean = (kappa * pushed[:, None]).T @ kappa
    second = (pushed * sample.residual) @ ((kappa**2 @ weights) * (kappa**2 @ copies))
    share = (second - float(weights @ (mean**2).sum(axis=1))) / problem.step_samples
    if problem.training.gradient == "exact":
        size = curvature**2 / 4 * problem.width * problem.readout_square
        size *= problem.weight_variance**2
        total = float(copies @ squares)
        own = 12 * squares**2 + 2 * squares * total
        share += size * float(weights @ (4 * squares * total + own))
    share /= float(weights.sum())
    return float(problem.rate**2 * problem.readout_square * curvature**2 * share)
