"""Chance of the first step in the curvature of the neurons, which types leave out.

A neuron's slope at a sample is d̄ + s₂ v_i·κ + …, s₂ = E σ''(bZ), so that the gradient has, beside
what `step_chance` averages over, a matrix that is one for each draw and stretches all neurons along
strong directions,

    v_i ← v_i + h_i s₂ (Z − D) v_i,   Var Z_jl = (E[u²κ_j²κ_l²] − E[uκ_jκ_l]²)/m̃             (39)

Z of the step's samples, and with the exact gradient D = tr(CΘ)Θ + 2ΘCΘ of the initial output,
whose part of degree two is κᵀCκ with C = (s₂/2) Σ_i a_i v_iv_iᵀ, Θ = E κκᵀ and
Var C_jl = (1 + δ_jl)(s₂²/4) k E a² s_w⁴. For even activations, whose mean slope is zero, nothing
else moves along spikes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from onegrad.gaussian.activation import Activation
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.step import initial_output_matters, second_moment, step_sample
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.policy import Policy


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
