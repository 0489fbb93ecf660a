"""The 1/n correction of the conditional theory: docs/book/chance-and-size.md.

The ratio of ratio.py, at one coarse resolution, multiplies the fine answer of the fixed point;
what it leaves open, and a bound where there is none.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.features import NodeFeatures, features_at
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.neurons.step_chance import quadratic_chance
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import data_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.open import Decision
from onegrad.theory.policy import Policy
from onegrad.theory.readout.errors import Correction, NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.readout.moments import LabelLaw
from onegrad.theory.resolution import fluctuation, level_for, mean_degrees, strata
from onegrad.theory.size.ratio import (
    AT_MOST,
    DIFFERENCE,
    NoCorrection,
    attempted,
    by_cumulants,
    cumulants_of,
    parts_of_errors,
    three,
    with_lengths,
)
from onegrad.theory.task import Solution, Task

# Relative error left by few neurons without a linear part, over (their share)⁴/k
_EVEN = 4.0
# largest part of the bound that interpolation adds: a factor of two in the errors
_VISIBLE_STEP = 0.05  # change of preactivations by a step, relative, at which it counts half
_TILT = 0.003  # relative effect of the tilt on the ratio: 0.2 to 0.6 %
_LEAST_SOFTNESS = 1e-6  # least c of a node and in the mean: at the kink of a loss it is zero
_WORTH_SAYING = 0.01  # relative effect from which users are told of an assumption
_MANY_NODES = 800  # nodes, each with either length; beyond, rules are those of a draft
# As coarse as a draft, but for axes that a step makes strong: four values of the readout made the
# correction of a training error 1.1 % where it is .4
_LEVEL = replace(QuadratureLevel.draft(), number=1, tolerance=QuadratureLevel.at(2).tolerance)
_SEPARATE = replace(QuadratureLevel.draft(), number=1)  # `level_for` makes it finer


_LIKE_RIDGE = (
    "Part of the 1/n correction is that of ridge regression at the curvature of this loss.",
)


def corrected(solution: Solution, correction: Correction) -> Solution:
    """The solution with its errors at this size; the remainder joins its error estimate."""
    decided = Decision(
        "sizes", correction.size, solution.task.policy.largest_correction,
        "The 1/n correction of test and training error",
        "not known" if correction.left_out and not correction.size else "applied",
    )  # fmt: skip
    return replace(
        solution,
        decisions=(*solution.decisions, decided),
        test_error=correction.test * solution.test_error,
        train_error=correction.train * solution.train_error,
        train_objective=correction.objective * solution.train_objective,
        component_test=correction.test * solution.component_test,
        component_train=correction.train * solution.component_train,
        open=replace(solution.open, sizes=correction.remainder),
        correction=correction,
    )


def correction_of(solution: Solution) -> Correction:
    """The ratios for the solution's problem, at a coarse resolution; about 0.1 s.

    Where no ratio can be had the errors stay those of the limit, with its bound on 1/n, or with
    what a correction too large to be made would have been.
    """
    found = attempted(lambda: _ratios(solution.task), solution.task.policy.largest_correction)
    if isinstance(found, Correction):
        return found
    return Correction(
        remainder=max(finite_size_bound(solution), found.seen),
        left_out=(f"No finite-size correction: {found.reason}.",),
    )


def corrected_loss(solution: Solution) -> Solution:
    """The correction for another loss, from the correction of ridge regression at its curvature.

    With the mean curvature 1/c of the loss it is ridge regression at the ridge cλ, as far as the
    bulk is concerned, and its errors have the ratios of that, without what the mean part of the
    readout does: that is known for every loss (`with_mean_part`). Open is what the ratios leave,
    and a part of all that was applied.
    """
    task, policy = solution.task, solution.task.policy
    mean = with_mean_part(solution)
    point = solution.by_node.response.point
    weights, problem = point.features.weights, task.problem
    curvature = float(weights @ (1.0 / (point.softness + point.chi)))
    flatness = max(1.0 / curvature - float(weights @ point.chi), _LEAST_SOFTNESS)
    training = problem.training.model_copy(
        update={"loss": "squared", "delta": None, "ridge": flatness * problem.training.ridge}
    )
    ridge = problem.replace(training=training)
    found = attempted(
        lambda: _ratios(replace(task, problem=ridge, coarse=None), of_mean=True),
        policy.largest_correction,
    )
    if isinstance(found, NoCorrection):
        sizes = max(finite_size_bound(solution), found.seen)
        return replace(mean, open=replace(mean.open, sizes=sizes))
    test, train = found.test / found.mean_test, found.train / found.mean_train
    applied = abs(test - 1) + abs(train - 1)
    applied += abs(mean.test_error / solution.test_error - 1)
    applied += abs(mean.train_error / solution.train_error - 1) if solution.train_error else 0.0
    slope = _slope_of_loss(mean)
    test_error, train_error = test * mean.test_error, train * mean.train_error
    train_loss = train**slope * mean.train_loss
    decided = Decision(
        "sizes", found.size, policy.largest_correction,
        "The 1/n correction of ridge regression at the loss's curvature", "applied",
    )  # fmt: skip
    remainder = found.remainder + policy.of_losses * applied
    made = Correction(
        test_error / solution.test_error, train_error / max(solution.train_error, 1e-300),
        remainder=remainder, left_out=_LIKE_RIDGE,
    )  # fmt: skip
    return replace(
        mean, test_error=test_error, train_error=train_error, train_loss=train_loss,
        train_objective=found.objective**slope * mean.train_objective,
        component_test=test * mean.component_test, component_train=train * mean.component_train,
        test_loss=test**slope * mean.test_loss,
        open=replace(mean.open, sizes=remainder), correction=made,
        decisions=(*mean.decisions, decided),
    )  # fmt: skip


def _slope_of_loss(solution: Solution) -> float:
    """d log(test loss)/d log(test error) where errors grow at all nodes alike."""
    result, problem = solution.by_node, solution.task.problem
    point = result.response.point
    labels = LabelLaw(point.features.labels, point.features.noise, problem.labels_binary)
    losses = [
        float(point.features.weights @ labels.moments(
            problem.loss, result.prediction, result.variance + step * result.node_test, point.chi
        ).test_loss)
        for step in (0.0, DIFFERENCE)
    ]  # fmt: skip
    return math.log(losses[1] / losses[0]) / math.log1p(DIFFERENCE) if losses[0] > 0 else 0.0


def with_mean_part(solution: Solution) -> Solution:
    """Errors and losses with what the mean part of the readout does to them at this size.

    From one training set and one first layer to the next it adds to the variance of outputs, eqs.
    training-set-shift and first-layer-shift, and a training sample moves its own prediction by
    R_ss/m more than by χ_s: by the degrees of freedom that the fixed point does not count. For the
    squared loss that is most of the 1/n correction. O(T²(T + S)).

    That is a linear response. Where next to no sample is at a kink it is large, and what a training
    set has by chance moves outputs until samples reach the kink: a part x of the test error counts
    x/(1 + (x/x₀)²), x₀ = `Policy.linear`.
    """
    result, problem = solution.by_node, solution.task.problem
    point = result.response.point
    features, weights = point.features, point.features.weights
    solved = result.solved_means(features.mean)
    added = fluctuation(solution, solved)
    own = result.leverage(solved, strata(problem, solution.where))
    part = float(weights @ added) / solution.test_error
    share = 1.0 / (1.0 + (part / solution.task.policy.linear) ** 2)
    labels = LabelLaw(features.labels, features.noise, problem.labels_binary)
    found = labels.moments(
        problem.loss, result.prediction, result.variance + share * added, point.chi + share * own
    )
    test, train = solution.component_test.copy(), solution.component_train.copy()
    for c in range(problem.components):
        mine = solution.where.component == c
        if np.any(mine):
            test[c] += np.average(share * added[mine], weights=weights[mine])
            train[c] = np.average(found.train_square[mine], weights=weights[mine])
    return replace(
        solution, test_error=solution.test_error + share * float(weights @ added),
        train_error=float(weights @ found.train_square), component_train=train,
        test_loss=float(weights @ found.test_loss), component_test=test,
        train_loss=float(weights @ found.train_loss),
    )  # fmt: skip


def _ratios(task: Task, of_mean: bool = False) -> Correction | NoCorrection:
    """of_mean : with the ratios that the mean part of the readout has alone"""
    problem, geometry, policy = task.problem, task.geometry, task.policy
    first = _SEPARATE if problem.labels_separate else _LEVEL
    for each in (first, QuadratureLevel.draft()):
        level = level_for(problem, geometry, each)
        neurons = trained_types(problem, geometry, level)
        where = data_nodes(problem, geometry, neurons.spread, level)
        if 2 * len(where.weights) <= _MANY_NODES:
            break
    if neurons.bulk_dim < policy.smallest_bulk:
        return NoCorrection(f"{neurons.bulk_dim} directions beside the special ones are too few")
    if 2 * len(where.weights) > policy.correction_nodes:
        return NoCorrection(f"{len(where.weights)} nodes are too many for it")
    left_out, tilt = [], 0.0
    if neurons.tilt is not None:
        neurons, tilt = replace(neurons, tilt=None), _TILT
        left_out.append(
            "The 1/n correction ignores that the exact gradient correlates a neuron with its "
            "readout weight."
        )
    samples, ridge = float(problem.samples), problem.effective_ridge
    limit = errors_of(
        solve_fixed_point(features_at(problem, geometry, neurons, where), samples, ridge)
    )
    plain = three(limit)
    if not np.all(plain[:2] > 0):  # nothing to learn: the errors are zero
        return Correction()
    features = with_lengths(problem, geometry, neurons, where)
    beyond = cumulants_of(problem, geometry, neurons, where)
    # first the fluctuations at low rank, then the effect of lengths
    errors, added, low = parts_of_errors(problem, features, where, beyond, task.neurons is None)
    errors = errors + added
    found = Correction(
        *(
            errors / low * three(errors_of(solve_fixed_point(features, samples, ridge))) / plain
        ).tolist()
    )
    share = _nonlinear_share(features)
    chaos = policy.of_chaos * share / neurons.effective_dim + _EVEN * share**4 / problem.width
    rows = (
        policy.of_rows
        * _step_noise(problem, geometry, neurons)
        * problem.dim
        / problem.step_samples
    )
    if rows > _WORTH_SAYING:
        left_out.append(
            "The 1/n correction takes the noise of the step as isotropic, which may cost "
            f"{100 * rows:.2g} %."
        )
    remainder = found.size**2 + policy.of_correction * found.size + chaos + tilt + rows
    remainder += by_cumulants(found, added / low, policy)
    if (chance := quadratic_chance(problem, geometry, policy)) > _WORTH_SAYING:
        left_out.append(
            "Not included is a random stretch of all neurons by the second-order term of the "
            f"step, which may cost {100 * chance:.2g} %."
        )
    remainder += chance
    found = replace(found, remainder=remainder, left_out=tuple(left_out))
    return _with_mean_ratios(found, limit, strata(problem, where)) if of_mean else found


def _with_mean_ratios(found: Correction, limit: NodeErrors, groups: np.ndarray) -> Correction:
    point = limit.response.point
    solved = limit.solved_means(point.features.mean)
    total = limit.node_test + limit.mean_fluctuation(solved, groups)
    train = total / (1.0 + point.chi + limit.leverage(solved, groups)) ** 2
    return replace(
        found, mean_test=float(point.features.weights @ total / limit.test_error),
        mean_train=float(point.features.weights @ train / limit.train_error),
    )  # fmt: skip


def _step_noise(problem: Problem, geometry: Geometry, neurons: NeuronTypes) -> float:
    """E b²/b₀² − 1: what the step adds to the bulk of a neuron, mostly sampling noise.

    Its rows have the covariance (1/m̃) Σ u² xxᵀ, of Marchenko and Pastur's kind, not the identity.
    """
    share = neurons.counts / neurons.counts.sum()
    size = neurons.bulk_dim if geometry.levels is None else geometry.levels.trace
    before = size * problem.weight_variance
    return max(0.0, float(share @ neurons.bulk**2) / before - 1.0)


def _nonlinear_share(features: NodeFeatures) -> float:
    """Σ e over Σ (e + b²d²): how much of the features, given κ, is neither mean nor linear."""
    noise = features.counts @ features.extra @ features.weights
    linear = (features.counts * features.bulk**2) @ features.slope**2 @ features.weights
    return float(noise / (noise + linear))


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
