"""What finite sizes may add to the theory's errors, where the 1/n correction is off."""

from __future__ import annotations

import math

import numpy as np

from onegrad.theory.neurons.quadratic_chance import quadratic_chance
from onegrad.theory.policy import Policy
from onegrad.theory.resolution import mean_degrees
from onegrad.theory.task import Solution

AT_MOST = 1.0  # largest part of the bound that interpolation adds: a factor of two in the errors
_VISIBLE_STEP = 0.05  # change of preactivations by a step, relative, at which it counts half
_LEAST_SOFTNESS = 1e-9  # against a division by zero at kinks


def finite_size_bound(solution: Solution) -> float:
    """A bound for the relative 1/n effect that the limit leaves out, the larger of test and train.

        c·(1 + p)/min(n, k, m − df₂) + ½/(m − df₁)

    with p = tr[WN(I + WN)⁻¹] the degrees of freedom of the mean part, which the fixed point does
    not count, df₁ and df₂ those of the bulk, and c = c₀ + c₁ I/(I + 0.05) for a step that changes
    preactivations by I (`NeuronTypes.moved`; c₀ + c₁ where that is not known). The form is that of
    an expansion in the degrees of freedom left, of which training errors near interpolation notice
    those of the first kind; the factors are empirical (`Policy.bound_at_rest`, `bound_by_step`).
    What the step leaves to chance in the curvature of the neurons is added.
    """
    problem, point = solution.task.problem, solution.by_node.response.point
    policy = solution.task.policy
    features = point.features
    used = mean_degrees(point)
    # nodes whose samples are all at a kink have c = 0: these samples are fitted exactly
    softness = np.maximum(point.softness, _LEAST_SOFTNESS)
    unfitted = problem.samples / (1.0 + float(features.weights @ (point.chi / softness)))
    size = min(solution.degrees_left, problem.dim, problem.width)
    times = 1.0 if solution.squared else policy.bound_of_losses
    chance = quadratic_chance(problem, solution.task.geometry, policy)
    return chance + bound_of(used, size, unfitted, solution.neurons.moved, times, policy)


def bound_of(
    used: float, size: float, unfitted: float, moved: float = math.nan, times: float = 1.0,
    policy: Policy = Policy(),
) -> float:  # fmt: skip
    """The same from p = `used`, min(n, k, m − df₂) = `size` and m − df₁ = `unfitted`, so many
    times. Far beyond interpolation the last term has no end, and training errors have."""
    share = 1.0 if math.isnan(moved) else moved / (moved + _VISIBLE_STEP)
    factor = (policy.bound_at_rest + policy.bound_by_step * share) * (1.0 + used)
    return times * factor / size + min(AT_MOST, times * 0.5 / unfitted)
