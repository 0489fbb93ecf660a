"""A neuron's own share of the initial output, in the residual that its step follows.

f₀ has a_iσ(w_i·x) in it, and with it the step of neuron i a term −η a_i² E[σσ'x], of relative size
η E a² and of one sign for all neurons. Its linear part is known from W₀ᵀa (eq. initial-output); the
rest counts as noise in u, which knows nothing of w_i.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import centred_moments
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.population import label_means
from onegrad.theory.nodes.rules import QuadratureLevel

_ORDER = 12  # nodes of the rule along the bulk
# Level of the rule over κ: an effect of order η E a² needs no finer one
_LEVEL = QuadratureLevel.at(1)
# The sample of a step has this many times fewer nodes in κ than fresh data; a neuron's share of
# the initial output as many times fewer again
SHARE = 4
_ENTRIES = 1_000_000  # table entries held at once


class OwnMoments(NamedTuple):
    """Means over a sample of the step with ψ = σ(p) − d̄(κ)p and ū = E[u|κ]: eq. own-output."""

    push: Array  # (T, r) E[ψσ'κ]
    stretch: Array  # (T,) E[(ψσ')']
    once: Array  # (T, 2) E[ūψσ'], E[ūψσ'²]
    twice: Array  # (T, 2) E[ψ²σ'], E[ψ²σ'²]


def own_moments(problem: Problem, geometry: Geometry, start: Array, bulk: Array) -> OwnMoments:
    """Of neurons before the step, p = f⁰·κ + b z (eq. own-output).

    start : (T, r') coordinates of neurons before the step; along those after the r of the geometry
        data are N(0, 1), like the bulk. ψ lacks ν̄(κ) too where all a_i are equal.
    """
    r, activation = geometry.rank, problem.activation
    variance = problem.weight_variance
    rest = (geometry.dim - r) * variance
    scale = np.sqrt(bulk**2 + np.einsum("ti,ti->t", start[:, r:], start[:, r:]))
    z, weight = gauss_hermite(_ORDER)
    count = len(start)
    push, stretch = np.zeros((count, r)), np.zeros(count)
    once, twice = np.zeros((count, 2)), np.zeros((count, 2))
    integrand = Integrand(np.eye(r) * variance / rest, None, None)
    level = replace(_LEVEL, most=_LEVEL.most // (SHARE * int(np.count_nonzero(geometry.weights))))
    for c, share in enumerate(geometry.weights):
        if share == 0:
            continue
        kappa, omega = component_nodes(geometry.means[c], geometry.roots[c], integrand, level)
        spread = np.sqrt(rest + variance * np.einsum("si,si->s", kappa, kappa))
        untrained = centred_moments(activation, spread)
        mean = untrained.value[:, None] if problem.readout_std == 0 else 0.0
        output = problem.width * problem.readout_mean * untrained.value
        residual = label_means(problem, geometry, c, kappa) - output
        step = max(1, math.floor(_ENTRIES / (len(kappa) * _ORDER)))
        for rows in (slice(a, a + step) for a in range(0, count, step)):
            p = (start[rows, :r] @ kappa.T)[..., None] + scale[rows, None, None] * z
            psi, slope = (
                activation(p) - mean - untrained.slope[:, None] * p,
                activation.derivative(p),
            )
            own = psi * slope
            push[rows] += share * ((own @ weight) * omega) @ kappa
            stretch[rows] += share * ((own @ (weight * z)) @ omega) / scale[rows]
            first = [own @ weight, (own * slope) @ weight]
            second = [(psi * own) @ weight, own**2 @ weight]
            once[rows] += share * np.stack([x @ (omega * residual) for x in first], axis=1)
            twice[rows] += share * np.stack([x @ omega for x in second], axis=1)
    return OwnMoments(push, stretch, once, twice)
