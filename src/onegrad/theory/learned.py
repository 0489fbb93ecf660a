"""What was learned: the mean prediction along one direction, and its Hermite coefficients.

Within component c let t be û·x made standard Gaussian. Given t the preactivation of a neuron is
Gaussian, so E_c[f(x)|t] = Σ_i readout_i · E σ(mean + cov_i t + rest_i z) without any further
quadrature (eq. learned). Coefficients are c_j = E[g(t)H_j(t)]/j!, g = Σ_j c_j H_j
with the probabilists' polynomials.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, did_you_mean
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.joint_rules import joint_law
from onegrad.gaussian.polynomials import orthonormal_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import smoothed
from onegrad.problem import Problem
from onegrad.text.display import brief
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.symmetry import angles
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.task import Solution

_ANGLES = 12  # nodes for the angle between a neuron and a direction of a group
_ORDER = 80  # nodes for the coefficients; the functions of t are smooth


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
    if direction not in geometry.directions:
        known = list(geometry.directions)
        raise AssumptionError(
            f'there is no direction "{direction}" here; known are {", ".join(known) or "none"}. '
            f"{did_you_mean(direction, known)}"
        )
    if not 0 <= component < len(geometry.weights):
        raise AssumptionError(
            f"component {component} does not exist: there are {len(geometry.weights)}, from 0."
        )
    grid = np.linspace(-3.0, 3.0, 61)
    nodes, weights = gauss_hermite(_ORDER)
    both = np.concatenate([grid, nodes])
    unit = geometry.directions[direction]
    mean, covariance = geometry.means[component], geometry.covariances[component]
    scale = math.sqrt(float(unit @ covariance @ unit))
    learned = _mean_prediction(learner, component, unit / scale, both)
    target = _mean_label(learner.problem, geometry, component, unit / scale, both)
    polynomials = orthonormal_hermite(degree, nodes) / sqrt_factorial(degree)[:, None]
    size = grid.size
    return LearnedFunction(
        direction, component, grid, float(unit @ mean) + scale * grid,
        learned[:size], target[:size],
        polynomials @ (weights * learned[size:]), polynomials @ (weights * target[size:]),
    )  # fmt: skip


def _mean_prediction(learner: Learner, component: int, unit: Array, t: Array) -> Array:
    """E_c[f | t] = Σ_i readout_i E_z σ(v_i·μ_c + cov_i t + √(v_iᵀΣ_cv_i + b_i² − cov_i²) z): (26).

    cov_i = v_iᵀ Σ_c û with û scaled to ûᵀΣ_cû = 1.
    """
    geometry, activation = learner.geometry, learner.problem.activation
    mean, covariance = geometry.means[component], geometry.covariances[component]
    neurons, r, groups = learner.neurons, geometry.rank, geometry.groups
    v, rest = neurons.vectors[:, :r], neurons.vectors[:, r:]
    variance = ((v @ covariance) * v).sum(axis=1) + (rest**2).sum(axis=1) + neurons.bulk**2
    # Coordinates along a group are lengths: the angle between neuron and û is averaged over.
    used = [(a, g) for a, g in enumerate(groups, start=geometry.single) if unit[a]]
    rules = [angles(size, _ANGLES) for _, size in used]
    total = np.zeros(len(t))
    for picked in itertools.product(range(_ANGLES), repeat=len(used)):
        turned, weight = unit.copy(), 1.0
        for (axis, _), (cosine, w), q in zip(used, rules, picked, strict=True):
            turned[axis] *= cosine[q]
            weight *= w[q]
        cross = v @ covariance @ turned
        left = np.sqrt(np.maximum(variance - cross**2, 1e-300))
        shift = (v @ mean)[:, None] + cross[:, None] * t
        scale = np.broadcast_to(left[:, None], shift.shape)
        total += weight * (learner.readout @ smoothed(activation, shift, scale).value)
    return total


def _mean_label(
    problem: Problem, geometry: Geometry, component: int, unit: Array, t: Array
) -> Array:
    """E_c[y | t] = E_z σ*_c(ξ·μ_c + cov t + √(ξᵀΣ_cξ − cov²) z), cov = ξᵀΣ_cû, or a label."""
    if problem.component_values is not None:
        return np.full(t.shape, problem.component_values[component])
    if problem.joint_link is not None:
        return _mean_joint_label(problem.joint_link, geometry, component, unit, t)
    assert problem.links is not None
    xi, covariance = geometry.teacher, geometry.covariances[component]
    cross = float(xi @ covariance @ unit)
    left = math.sqrt(max(float(xi @ covariance @ xi) - cross**2, 0.0))
    shift = float(xi @ geometry.means[component]) + cross * t
    link = problem.links[component]
    return link(shift) if left < 1e-9 else link.smoothed(shift, left).value


def _mean_joint_label(
    link: JointLink, geometry: Geometry, component: int, unit: Array, t: Array
) -> Array:
    """E_c[g | t]: of Ξκ given t, Gaussian with mean Ξμ + cov t and covariance ΞΣΞᵀ − cov covᵀ."""
    xi, covariance = geometry.teacher, geometry.covariances[component]
    cross = xi @ covariance @ unit
    left = xi @ covariance @ xi.T - np.outer(cross, cross)
    left += 1e-12 * np.trace(xi @ covariance @ xi.T) * np.eye(len(xi))
    centre = xi @ geometry.means[component]
    return np.array([joint_law(link, centre + cross * one, left).mean for one in t.tolist()])
