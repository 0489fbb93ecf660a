"""What finite sizes may add to the theory's errors, where the 1/n correction is off."""

from __future__ import annotations

import math

import numpy as np

from onegrad.theory.quadratic_chance import quadratic_chance
from onegrad.theory.resolution import mean_degrees
from onegrad.theory.task import Solution

# Found by comparing with simulations of random problems at n = 200–400 (docs/theory.md, section 7).
# Factors of 1/size without a step, what a visible step adds, and of 1/(m − df₁) in training errors
_AT_REST, _BY_STEP, _TRAINING = 0.8, 2.5, 0.5
_VISIBLE_STEP = 0.05  # change of preactivations by a step, relative, at which it counts half
AT_MOST = 1.0  # training errors at interpolation are known to about a factor of two
_LEAST_SOFTNESS = 1e-9  # against a division by zero at kinks
OTHER_LOSS = 2.0  # times as much is open with other losses (docs/losses.md, section 4)


def finite_size_bound(solution: Solution) -> float:
    """A bound for the relative 1/n effect that the limit leaves out, the larger of test and train.

        c·(1 + p)/min(n, k, m − df₂) + ½/(m − df₁)

    with p = tr[WN(I + WN)⁻¹] the degrees of freedom of the mean part, which the fixed point does
    not count, df₁ and df₂ those of the bulk, and c = 0.8 + 2.5·I/(I + 0.05) for a step that changes
    preactivations by I (`NeuronTypes.moved`; 3.3 where that is not known). The form is that of
    an expansion in the degrees of freedom left, of which training errors near interpolation notice
    those of the first kind; the factors are empirical. What the step leaves to chance in the
    curvature of the neurons is added.
    """
    problem, point = solution.task.problem, solution.by_node.response.point
    features = point.features
    used = mean_degrees(point)
    # nodes whose samples are all at a kink have c = 0: none of them is left unfitted
    softness = np.maximum(point.softness, _LEAST_SOFTNESS)
    unfitted = problem.samples / (1.0 + float(features.weights @ (point.chi / softness)))
    size = min(solution.degrees_left, problem.dim, problem.width)
    times = 1.0 if solution.squared else OTHER_LOSS
    chance = quadratic_chance(problem, solution.task.geometry)
    return chance + bound_of(used, size, unfitted, solution.neurons.moved, times)


def bound_of(
    used: float, size: float, unfitted: float, moved: float = math.nan, times: float = 1.0
) -> float:
    """The same from p = `used`, min(n, k, m − df₂) = `size` and m − df₁ = `unfitted`, so many
    times. Far beyond interpolation the last term has no end, and training errors have."""
    share = 1.0 if math.isnan(moved) else moved / (moved + _VISIBLE_STEP)
    factor = (_AT_REST + _BY_STEP * share) * (1.0 + used)
    return times * factor / size + min(AT_MOST, times * _TRAINING / unfitted)
