"""The 1/n correction as a ratio: errors of the free energy over those of its fixed point.

With the lengths of the samples as one more axis of the nodes, at one coarse resolution
(docs/book/chance-and-size.md). Of types of neurons: finite_size.py; of a first layer that is given:
layer_size.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.features import Harmonic, NodeFeatures, features_at
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import Nodes, single_axes
from onegrad.theory.policy import Policy
from onegrad.theory.readout.errors import Correction, NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.size.cumulants import Cumulants
from onegrad.theory.size.free_energy import FreeEnergy, Parameters, Resampling

AT_MOST = 1.0  # largest relative effect that is stated: interpolating errors are known to a factor
DIFFERENCE = 1e-3  # relative step of the central differences by λ and τ: errors of 1e-6
_LARGE = 0.05  # correction beyond which cumulants to first order are not enough (`by_cumulants`)


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


def by_cumulants(found: Correction, added: Array, policy: Policy = Policy()) -> float:
    """What is open of the features' cumulants in a correction above 5 %: they are taken to first
    order, and where little is left unfitted the next order is as large. Of a polynomial of degree
    four at k/m = 0.9 with next to no ridge they make +10 %, networks have +4 (1) %.

    added : by them to test error, training error and objective, relative
    """
    share = policy.of_cumulants * max(0.0, 1.0 - _LARGE / max(found.size, _LARGE))
    return share * float(np.abs(added[:2]).max())


def three(errors: NodeErrors) -> Array:
    """Test error, training error and objective."""
    return np.array([errors.test_error, errors.train_error, errors.train_objective])


def errors_by_part(
    energy: FreeEnergy, ridge: float, difference: float = DIFFERENCE
) -> tuple[Array, Array, Array]:
    """Means of test error, training error and objective without cumulants of the features,
    ∂_τ E L, E L − λ ∂_λ E L, and E L; what these add; and the errors of the fixed point.

    E L by a complex step, exact to rounding; λ and τ by central differences. Eqs. volume and
    free-energy.
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

    step = difference * ridge
    by_ridge = slope([Parameters(ridge + step), Parameters(ridge - step)], step)
    fitted = float(leading.train_objective / leading.test_error)
    step = difference * min(fitted, 1.0 / (1.0 + float(point.chi.max())))
    by_fresh = slope([Parameters(ridge, fresh=step), Parameters(ridge, fresh=-step)], step)
    errors, added = np.stack([by_fresh, objective - ridge * by_ridge, objective], axis=1)
    return errors, added, three(leading)


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
