"""What features are beyond their Gaussian equivalent, to order one in the free energy.

Given κ, a feature is σ = ν + b d z + g(z) with z standard Gaussian and g orthogonal to 1 and z. The
conditional Gaussian model puts independent noise of variance e = E g² in the place of g(z). Four
things are lost with that, all of the order of the fluctuations: docs/book/chance-and-size.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gauss_hermite

_ORDER = 32  # nodes of the rule over z: these moments are needed to a few percent


class Local(NamedTuple):
    """One entry of the feature matrix and its row and column, at a stationary point of S.

    slopes : (T, S) W⁻¹P t_i, what is left of b_i d_is once other neurons and samples respond
    felt : (T, S) ν − C Ω ν, the same for ν
    types : (T,) m̂_i²/c_i; nodes : (S,) ŵ_s²/(m ω_s)
    linear_types, linear_nodes : (T,) b_i² d_iᵀPd_i, (S,) n'[Θ − ΘPΘ]_ss
    gains : (T,) m̂_i; weights : (S,) ŵ_s
    """

    slopes: Array
    felt: Array
    types: Array
    nodes: Array
    linear_types: Array
    linear_nodes: Array
    gains: Array
    weights: Array


@dataclass(frozen=True)
class Cumulants:
    """Moments of g at every type and node, and the lengths that nodes and types know.

    third : E g³, 3 E[z g²], 3 E[z² g], (T, S) each; the powers of a slope that go with them are
        0, 1, 2
    fourth : E g⁴ − 3e², 4 E[z g³], 6 E[(z² − 1) g²], 4 E[z³ g] with powers 0 to 3
    curvature : (T, S) b² E σ''/√2, the part of g that is quadratic in the bulk
    lengths : (T,) share of b_i² whose fluctuation is an axis of the types
    bulk_dim : n'; of a bulk that is not flat the number of equal coordinates whose lengths
        fluctuate as its own do
    shares : (T, J) of b_i² in each block of a bulk that is not flat
    """

    third: tuple[Array, ...]
    fourth: tuple[Array, ...]
    curvature: Array
    lengths: Array
    bulk_dim: float
    shares: Array | None = None

    @classmethod
    def of(
        cls, activation: Activation, shift: Array, scale: Array, lengths: Array, bulk_dim: float
    ) -> Cumulants:
        """shift, scale : (T, S) of the preactivation given κ; nodes come twice, once for either
        length of the sample, between which the moments do not differ to this order."""
        z, weight = gauss_hermite(_ORDER)
        g = activation(shift[..., None] + scale[..., None] * z)
        slope = g @ (weight * z)
        curved = g @ (weight * (z**2 - 1))
        g = g - (g @ weight)[..., None] - slope[..., None] * z
        square = g * g
        noise, cube = square @ weight, square * g
        third = (cube @ weight, 3 * (square @ (weight * z)), 3 * curved)
        fourth = (
            (square * square) @ weight - 3 * noise**2,
            4 * (cube @ (weight * z)),
            6 * (square @ (weight * (z**2 - 1))),
            4 * (g @ (weight * z**3)),
        )
        return cls(
            tuple(np.tile(part, 2) for part in third), tuple(np.tile(part, 2) for part in fourth),
            np.tile(curved / math.sqrt(2), 2), lengths, bulk_dim,
        )  # fmt: skip

    def energy(self, local: Local) -> complex:
        """What F gains, with t = `slopes` and n'₂ = n'(n'+1)/2 − 1 traceless quadratic forms,

            −½ Σ_is (m̂_i²/c_i) (ŵ_s²/(mω_s)) [κ₄(t) + 4 felt κ₃(t)]      one entry  (eq. cumulants)
            −(1/2n'₂) Σ_ij m̂_i m̂_j (Σ_s ŵ_s q_is q_js)²                  quadratic forms
                (eq. quadratic-forms)
            +(1/n') Σ_s (ŵ_s²/(mω_s)) X_s² + (1/n') Σ_i (m̂_i²/c_i) x_i²   lengths  (eq. lengths)

        The last are lengths that the linear part has twice: those of the Gaussian vectors x_⊥ and
        w_⊥ themselves, and the axes of nodes and types.
        """
        t = local.slopes
        third = self.third[0] + t * (self.third[1] + t * self.third[2])
        fourth = self.fourth[2] + t * self.fourth[3]
        fourth = self.fourth[0] + t * (self.fourth[1] + t * fourth)
        total = -0.5 * (local.types @ (fourth + 4 * local.felt * third) @ local.nodes)
        forms = 0.5 * self.bulk_dim * (self.bulk_dim + 1) - 1
        quadratic = (self.curvature * local.weights) @ self.curvature.T
        total -= local.gains @ quadratic**2 @ local.gains / (2 * forms)
        known = self.lengths * local.linear_types
        total += (local.nodes @ local.linear_nodes**2 + local.types @ known**2) / self.bulk_dim
        return complex(total)
