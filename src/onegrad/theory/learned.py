"""What was learned: the mean prediction along one direction or two, beside the mean label.

Within component c let t be the projections on the directions made standard Gaussian and
uncorrelated. Given t the preactivation of a neuron is Gaussian, so

    E_c[f(x)|t] = Σ_i readout_i · E σ(mean_i + cov_i·t + rest_i z)

without any further quadrature (eq. learned). Along one direction g = Σ_j c_j H_j with the
probabilists' polynomials, c_j = E[g(t)H_j(t)]/j!.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, did_you_mean
from onegrad.gaussian.joint_rules import joint_law
from onegrad.gaussian.polynomials import orthonormal_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import smoothed
from onegrad.problem import Problem
from onegrad.text.display import brief
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.symmetry import angles
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.designs import quasi_gaussian
from onegrad.theory.task import Solution

_ANGLES = 12  # nodes for the angle between a neuron and a direction of a group
_ORDER = 80  # nodes for the coefficients; the functions of t are smooth
_GRID, _REACH = 41, 2.5  # points along a direction of a map, and how far, in standard deviations
_POINTS = 128  # of what labels of several indices depend on beside the two directions of a map


@dataclass(frozen=True)
class LearnedFunction:
    """E_c[f|t] (`learned`) beside E_c[y|t] (`target`) on a grid of t, and their coefficients.

    position : û·x at each t, that is mean + scale·t
    """

    __repr__ = brief

    direction: str
    component: int
    t: Array
    position: Array
    learned: Array
    target: Array
    learned_coefficients: Array
    target_coefficients: Array


@dataclass(frozen=True)
class LearnedMap:
    """E_c[f | x₁, x₂] (`learned`) beside E_c[y | x₁, x₂] (`target`), (41, 41), x₁ along rows.

    first, second : (41,) û₁·x and û₂·x
    """

    __repr__ = brief

    directions: tuple[str, str]
    component: int
    first: Array
    second: Array
    learned: Array
    target: Array


@dataclass(frozen=True)
class Learner:
    """A trained network, seen along the few directions: neurons (in the geometry's basis first) and
    their readout (one entry for each), predicted or of an actual network."""

    problem: Problem
    geometry: Geometry
    neurons: NeuronTypes
    readout: Array

    @classmethod
    def of(cls, solution: Solution) -> Learner:
        """As the theory predicts it."""
        readout = solution.by_node.readout
        return cls(solution.task.problem, solution.geometry, solution.neurons, readout)


def learned_function(
    solution: Solution, direction: str = "teacher", component: int = 0, degree: int = 6
) -> LearnedFunction:
    """The mean prediction over one of the geometry's `directions` within one component
    (eq. learned).

    On 61 points −3 ≤ t ≤ 3; coefficients up to `degree`.
    """
    return learned_by(Learner.of(solution), direction, component, degree)


def learned_by(
    learner: Learner, direction: str = "teacher", component: int = 0, degree: int = 6
) -> LearnedFunction:
    """`learned_function` of any network, also of one that was trained."""
    geometry = learner.geometry
    (unit,) = _units(geometry, [direction], component)
    grid = np.linspace(-3.0, 3.0, 61)
    nodes, weights = gauss_hermite(_ORDER)
    both = np.concatenate([grid, nodes])[:, None]
    scale = math.sqrt(float(unit @ geometry.covariances[component] @ unit))
    whitened = unit[None] / scale
    learned = _mean_prediction(learner, component, whitened, both)
    target = _mean_label(learner.problem, geometry, component, whitened, both)
    polynomials = orthonormal_hermite(degree, nodes) / sqrt_factorial(degree)[:, None]
    size = grid.size
    return LearnedFunction(
        direction, component, grid, float(unit @ geometry.means[component]) + scale * grid,
        learned[:size], target[:size],
        polynomials @ (weights * learned[size:]), polynomials @ (weights * target[size:]),
    )  # fmt: skip


def learned_map(solution: Solution, first: str, second: str, component: int = 0) -> LearnedMap:
    """The mean prediction over two of the geometry's `directions` within one component."""
    geometry = solution.geometry
    units = _units(geometry, [first, second], component)
    if first == second or geometry.groups:
        raise AssumptionError(
            "a map needs two directions, and no groups of spikes that are alike: directions "
            f"{first} and {second}, {len(geometry.groups)} groups"
        )
    seen = units @ geometry.covariances[component] @ units.T
    values = np.linalg.eigvalsh(seen)
    if values[0] < 1e-9 * values[1]:
        raise AssumptionError(f"{first} and {second} are the same direction here")
    root = np.linalg.cholesky(seen)
    grid = np.linspace(-_REACH, _REACH, _GRID)
    steps = grid * np.sqrt(np.diag(seen))[:, None]
    where = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 2)
    whitened = np.asarray(np.linalg.solve(root, units), float)
    t = np.asarray(np.linalg.solve(root, where.T), float).T
    learned = _mean_prediction(Learner.of(solution), component, whitened, t)
    target = _mean_label(solution.task.problem, geometry, component, whitened, t)
    shape, centre = (_GRID, _GRID), units @ geometry.means[component]
    return LearnedMap(
        (first, second), component, centre[0] + steps[0], centre[1] + steps[1],
        learned.reshape(shape), target.reshape(shape),
    )  # fmt: skip


def _units(geometry: Geometry, names: Sequence[str], component: int) -> Array:
    known = list(geometry.directions)
    for name in names:
        if name not in known:
            raise AssumptionError(
                f'there is no direction "{name}" here; known are {", ".join(known) or "none"}. '
                f"{did_you_mean(name, known)}"
            )
    if not 0 <= component < len(geometry.weights):
        raise AssumptionError(
            f"component {component} does not exist: there are {len(geometry.weights)}, from 0."
        )
    return np.stack([geometry.directions[name] for name in names])


def _mean_prediction(learner: Learner, component: int, units: Array, t: Array) -> Array:
    """E_c[f | t] = Σ_i readout_i E_z σ(v_i·μ_c + cov_i·t + √(v_iᵀΣ_cv_i + b_i² − |cov_i|²) z)
    at t (P, q) (eq. learned).

    cov_i = ÛΣ_cv_i with ÛΣ_cÛᵀ = 1, Û the `units` (q, r).
    """
    geometry, activation = learner.geometry, learner.problem.activation
    mean, covariance = geometry.means[component], geometry.covariances[component]
    neurons, r, groups = learner.neurons, geometry.rank, geometry.groups
    v, rest = neurons.vectors[:, :r], neurons.vectors[:, r:]
    variance = ((v @ covariance) * v).sum(axis=1) + (rest**2).sum(axis=1) + neurons.bulk**2
    # Coordinates along a group are lengths: the angle between neuron and û is averaged over.
    used = [(a, g) for a, g in enumerate(groups, start=geometry.single) if np.any(units[:, a])]
    rules = [angles(size, _ANGLES) for _, size in used]
    total = np.zeros(len(t))
    for picked in itertools.product(range(_ANGLES), repeat=len(used)):
        turned, weight = units.copy(), 1.0
        for (axis, _), (cosine, w), q in zip(used, rules, picked, strict=True):
            turned[:, axis] *= cosine[q]
            weight *= w[q]
        cross = v @ covariance @ turned.T
        left = np.sqrt(np.maximum(variance - (cross**2).sum(axis=1), 1e-300))
        shift = (v @ mean)[:, None] + cross @ t.T
        scale = np.broadcast_to(left[:, None], shift.shape)
        total += weight * (learner.readout @ smoothed(activation, shift, scale).value)
    return total


def _mean_label(
    problem: Problem, geometry: Geometry, component: int, units: Array, t: Array
) -> Array:
    """E_c[y | t] = E_z σ*_c(ξ·μ_c + cov·t + √(ξᵀΣ_cξ − |cov|²) z), cov = ÛΣ_cξ, or a label; of
    several indices Ξκ given t is Gaussian with the covariance ΞΣΞᵀ − cov covᵀ."""
    if problem.component_values is not None:
        return np.full(len(t), problem.component_values[component])
    xi, covariance = np.atleast_2d(geometry.teacher), geometry.covariances[component]
    cross = xi @ covariance @ units.T
    left = xi @ covariance @ xi.T - cross @ cross.T
    centre = xi @ geometry.means[component] + t @ cross.T
    if problem.joint_link is None:
        assert problem.links is not None
        link, (shift,), rest = problem.links[component], centre.T, max(float(left[0, 0]), 0.0)
        return link(shift) if rest < 1e-18 else link.smoothed(shift, math.sqrt(rest)).value
    if len(units) == 1:
        left += 1e-12 * np.trace(xi @ covariance @ xi.T) * np.eye(len(xi))
        return np.array([joint_law(problem.joint_link, one, left).mean for one in centre])
    values, vectors = np.linalg.eigh(left)
    z, w = quasi_gaussian(len(xi), _POINTS)
    moved = (z * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(problem.joint_link(centre[:, None, :] + moved) @ w)
