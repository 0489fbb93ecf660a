"""The 1/n correction of the conditional theory: docs/book/chance-and-size.md.

The errors of the free energy (free_energy.py), with the lengths of the samples as one more axis of
the nodes, over those of the fixed point, both at one coarse resolution. The ratio multiplies the
fine answer of the fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.features import Harmonic, NodeFeatures, features_at
from onegrad.theory.neurons.quadratic_chance import quadratic_chance
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import Nodes, data_nodes, single_axes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.open import Decision
from onegrad.theory.policy import Policy
from onegrad.theory.readout.errors import Correction, NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.readout.moments import LabelLaw
from onegrad.theory.resolution import fluctuation, level_for, strata
from onegrad.theory.size.cumulants import Cumulants
from onegrad.theory.size.fluctuations import Resampling
from onegrad.theory.size.free_energy import FreeEnergy, Parameters
from onegrad.theory.size.size_bound import AT_MOST, finite_size_bound
from onegrad.theory.task import Solution, Task

_DIFFERENCE = 1e-3  # relative step of the central differences by λ and τ: errors of 1e-6
# Relative error left by few neurons without a linear part, over (their share)⁴/k
_EVEN = 4.0
# Relative error left by heavy tails: (this × excess kurtosis/min(k, m))²
_TAILS = 0.2
_LARGE = 0.05  # correction beyond which cumulants to first order are not enough (`by_cumulants`)
_USUAL = 3.1  # excess kurtosis of gelu, the largest of the usual activations
_TILT = 0.003  # relative effect of the tilt on the ratio: 0.2 to 0.6 %
_LEAST_FLATNESS = 1e-6  # lower bound on the mean softness c, for losses with a kink
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
    flatness = max(1.0 / curvature - float(weights @ point.chi), _LEAST_FLATNESS)
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
        for step in (0.0, _DIFFERENCE)
    ]  # fmt: skip
    return math.log(losses[1] / losses[0]) / math.log1p(_DIFFERENCE) if losses[0] > 0 else 0.0


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


class NoCorrection(NamedTuple):
    """Why there is none, and how large it would have been; 0 where that is not known."""

    reason: str
    seen: float = 0.0


def attempted(
    compute: Callable[[], Correction | NoCorrection], largest: float
) -> Correction | NoCorrection:
    """The correction, unless it is larger than an expansion can be, or does not exist."""
    try:
        found = compute()
    except ConvergenceError:
        return NoCorrection("its equations have no solution at its coarse resolution")
    except AssumptionError:
        return NoCorrection("no types of neurons exist at its coarse resolution")
    if isinstance(found, NoCorrection) or found.size < largest:
        return found
    return NoCorrection(f"it would be {100 * found.size:.0f} %", min(found.size, AT_MOST))


def parts_of_errors(
    problem: Problem, features: NodeFeatures, where: Nodes, beyond: Cumulants, neurons: bool
) -> tuple[Array, Array, Array]:
    """`errors_by_part` of features at nodes that are there with either length (`with_lengths`).

    neurons : whether it is left to chance which neurons are drawn
    """
    component = np.tile(where.component, 2)
    fixed = getattr(problem.data, "fixed_counts", False)
    which = Resampling(component if fixed else 0 * component, neurons=neurons)
    energy = FreeEnergy.of(features, float(problem.samples), which, beyond)
    return errors_by_part(energy, problem.effective_ridge)


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
    plain = _three(limit)
    if not np.all(plain[:2] > 0):  # nothing to learn: the errors are zero
        return Correction()
    features = with_lengths(problem, geometry, neurons, where)
    beyond = cumulants_of(problem, geometry, neurons, where)
    # first the fluctuations at low rank, then the effect of lengths
    errors, added, low = parts_of_errors(problem, features, where, beyond, task.neurons is None)
    errors = errors + added
    found = Correction(*(errors / low * _leading(features, samples, ridge) / plain).tolist())
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
    tails = (_TAILS * _excess(problem.activation) / min(problem.width, samples)) ** 2
    remainder = found.size**2 + policy.of_correction * found.size + chaos + tails + tilt + rows
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


def by_cumulants(found: Correction, added: Array, policy: Policy = Policy()) -> float:
    """What is open of the features' cumulants in a correction above 5 %: they are taken to first
    order, and where little is left unfitted the next order is as large. Of a polynomial of degree
    four at k/m = 0.9 with next to no ridge they make +10 %, networks have +4 (1) %.

    added : by them to test error, training error and objective, relative
    """
    share = policy.of_cumulants * max(0.0, 1.0 - _LARGE / max(found.size, _LARGE))
    return share * float(np.abs(added[:2]).max())


def _leading(features: NodeFeatures, samples: float, ridge: float) -> Array:
    """Test error, training error and objective of the fixed point."""
    return _three(errors_of(solve_fixed_point(features, samples, ridge)))


def _three(errors: NodeErrors) -> Array:
    return np.array([errors.test_error, errors.train_error, errors.train_objective])


def _step_noise(problem: Problem, geometry: Geometry, neurons: NeuronTypes) -> float:
    """E b²/b₀² − 1: what the step adds to the bulk of a neuron, mostly sampling noise.

    Its rows have the covariance (1/m̃) Σ u² xxᵀ, of Marchenko and Pastur's kind, not the identity.
    """
    share = neurons.counts / neurons.counts.sum()
    size = neurons.bulk_dim if geometry.levels is None else geometry.levels.trace
    before = size * problem.weight_variance
    return max(0.0, float(share @ neurons.bulk**2) / before - 1.0)


def _excess(activation: Activation) -> float:
    """Excess kurtosis of σ(Z) beyond that of the usual activations (2.4 for relu, 3.1 for gelu; 12
    for a parabola). With it the leverage of a sample fluctuates more than that of Gaussian
    features, by κ₄/k."""
    z, weight = gauss_hermite(80)
    value = activation(z)
    value = value - weight @ value
    square = float(weight @ value**2)
    return max(0.0, float(weight @ value**4) / square**2 - 3.0 - _USUAL) if square > 0 else 0.0


def _nonlinear_share(features: NodeFeatures) -> float:
    """Σ e over Σ (e + b²d²): how much of the features, given κ, is neither mean nor linear."""
    noise = features.counts @ features.extra @ features.weights
    linear = (features.counts * features.bulk**2) @ features.slope**2 @ features.weights
    return float(noise / (noise + linear))


def with_lengths(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, where: Nodes
) -> NodeFeatures:
    """Features at nodes that know the length of a sample's bulk, x_⊥ = ρ·N(0, I): b_i → b_i ρ.

    Given its length x_⊥ is no Gaussian vector, and z has fourth moments 6/n' below 3. Without that
    the mean over lengths would not be the Gaussian one; a shift gives ν, d and the second moment
    the means that they have, E_ρ ν = ν, E_ρ[ρ·ρd] = d.
    """
    lengths = sample_lengths(neurons.effective_dim)
    alone = features_at(problem, geometry, neurons, where)
    parts = [
        features_at(problem, geometry, replace(neurons, bulk=neurons.bulk * rho), where)
        for rho in lengths
    ]
    means = np.stack([part.mean for part in parts])
    means += alone.mean - means.mean(axis=0)
    slopes = np.stack([rho * part.slope for rho, part in zip(lengths, parts, strict=True)])
    slopes += alone.slope - np.tensordot(lengths, slopes, 1) / 2
    extras = np.stack([part.extra for part in parts])
    scale = alone.bulk[:, None] ** 2
    second = [
        part.mean**2 + scale * part.slope**2 + part.extra + _squares(part.harmonics)
        for part in (
            alone,
            *(
                replace(part, mean=mean, slope=slope)
                for part, mean, slope in zip(parts, means, slopes, strict=True)
            ),
        )
    ]
    extras += second[0] - (second[1] + second[2]) / 2
    harmonics = tuple(
        pair[0]._replace(table=np.concatenate([h.table for h in pair], axis=1))
        for pair in zip(*(part.harmonics for part in parts), strict=True)
    )
    return replace(
        alone,
        mean=np.concatenate(means, axis=1),
        slope=np.concatenate(slopes, axis=1),
        extra=np.concatenate(extras, axis=1),
        weights=np.tile(alone.weights, 2) / 2,
        labels=np.tile(alone.labels, 2),
        noise=np.tile(alone.noise, 2),
        harmonics=harmonics,
    )


def _squares(harmonics: Sequence[Harmonic]) -> Array:
    return np.asarray(sum((h.copies * h.table**2 for h in harmonics), np.zeros(())))


def cumulants_of(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, where: Nodes
) -> Cumulants:
    """Of features with these neurons and nodes, each node twice (`with_lengths`).

    What a group of directions adds to a preactivation counts as Gaussian.
    """
    axes = single_axes(geometry, neurons.vectors.shape[1])
    shift = neurons.vectors[:, axes] @ where.kappa[:, axes].T
    square = np.repeat(neurons.bulk[:, None] ** 2, shift.shape[1], axis=1)
    for axis, size in enumerate(geometry.groups, start=geometry.single):
        square += np.outer(neurons.vectors[:, axis], where.kappa[:, axis]) ** 2 / size
    whole = float(neurons.bulk_dim) if geometry.levels is None else geometry.levels.trace
    lengths = np.minimum(1.0, whole * problem.weight_variance / neurons.bulk**2)
    found = Cumulants.of(problem.activation, shift, np.sqrt(square), lengths, neurons.effective_dim)
    return replace(found, shares=neurons.shares)


def sample_lengths(bulk_dim: float) -> Array:
    """ρ² = |x_⊥|²/n' has mean 1 and variance 2/n': ρ = √(1 ± √(2/n')), half of the samples each."""
    return np.sqrt(1.0 + math.sqrt(2.0 / bulk_dim) * np.array([-1.0, 1.0]))


def errors_at_this_size(energy: FreeEnergy, ridge: float) -> tuple[Array, Array]:
    """Means of test error, training error and objective, and those of the fixed point. Eqs. volume
    and free-energy."""
    errors, added, low = errors_by_part(energy, ridge)
    return errors + added, low


def errors_by_part(energy: FreeEnergy, ridge: float) -> tuple[Array, Array, Array]:
    """Means of test error, training error and objective without cumulants of the features,
    ∂_τ E L, E L − λ ∂_λ E L, and E L; what these add; and the errors of the fixed point.

    E L by a complex step, exact to rounding; λ and τ by central differences.
    """
    point = solve_fixed_point(energy.features, energy.samples, ridge)
    leading = errors_of(point)
    fields = energy.stationary(*energy.start(point), Parameters(ridge))
    objective = energy.objective_parts(*fields, Parameters(ridge))

    def slope(parameters: Sequence[Parameters], step: float) -> Array:
        up, down = parameters
        above = energy.stationary(*fields, up)
        x, y = (np.maximum(2 * at - a, 0.5 * at) for at, a in zip(fields, above, strict=True))
        below = energy.stationary(x, y, down)
        change = energy.objective_parts(*above, up) - energy.objective_parts(*below, down)
        return np.asarray(change / (2 * step))

    step = _DIFFERENCE * ridge
    by_ridge = slope([Parameters(ridge + step), Parameters(ridge - step)], step)
    fitted = float(leading.train_objective / leading.test_error)
    step = _DIFFERENCE * min(fitted, 1.0 / (1.0 + float(point.chi.max())))
    by_fresh = slope([Parameters(ridge, fresh=step), Parameters(ridge, fresh=-step)], step)
    errors, added = np.stack([by_fresh, objective - ridge * by_ridge, objective], axis=1)
    return errors, added, _three(leading)
