"""Low-rank algebra of the fixed point: nothing of the size nodes × nodes is ever formed.

Tables are t_is = (U Vᵀ)_is with few columns (`NodeFeatures.blocks`). With w the weights of the
nodes and c m the gains of the types, by the Woodbury identity (docs/book/fixed-point.md)

    Θ = (1/p) Σ_i c_i m_i t_i t_iᵀ,  P = (W⁻¹ + Θ)⁻¹
    G = VᵀWV,  T = (1/p) Uᵀ diag(c m) U,  H = (I + TG)⁻¹,  K = HT
    t_iᵀ P t_j = u_iᵀ GH u_j,  Θ − ΘPΘ = V K Vᵀ,  W⁻¹ P t_i = V H u_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.features import NodeFeatures


@dataclass(frozen=True)
class WoodburyFactors:
    """G, H, K and GH of one block at one (m, w), with its U, V.

    copies, coordinates : c_B and p_B of the block (`Harmonic`)
    """

    copies: float
    coordinates: Array
    u: Array
    v: Array
    h: Array
    k: Array
    gh: Array


def woodbury_factors(features: NodeFeatures, gain: Array, weights: Array) -> list[WoodburyFactors]:
    """Those of the slopes first, then one for each harmonic. Eqs. bulk-matrices and gains."""
    found = []
    for copies, coordinates, u, v in features.blocks:
        g = v.mT @ (weights[..., None] * v)
        share = features.counts * gain / coordinates[..., None]
        inner = (u.mT * share[..., None, :]) @ u
        h = np.asarray(np.linalg.inv(np.eye(inner.shape[-1]) + inner @ g), float)
        k, gh = h @ inner, g @ h
        k, gh = 0.5 * (k + k.mT), 0.5 * (gh + gh.mT)
        found.append(WoodburyFactors(copies, coordinates, u, v, h, k, gh))
    return found


def diagonal(x: Array, inner: Array) -> Array:
    """diag(x inner xᵀ)."""
    return np.einsum("...ij,...ij->...i", x @ inner, x)


def product(matrix: Array, vector: Array) -> Array:
    """matrix @ vector, of one problem or of each in a stack."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def response_kernel(
    features: NodeFeatures, blocks: Sequence[WoodburyFactors], gain: Array
) -> Array:
    """Z⁻¹ = diag(1/(c_i m_i²)) − Σ_B (c_B/p_B) (t_iᵀ P t_j)², entry by entry: eq. response-kernel.

    c_i dm_i = −[Z F dw]_i with F of `response_table`.
    """
    kernel = np.zeros((*gain.shape, gain.shape[-1]))
    for block in blocks:
        square = (block.u @ block.gh @ block.u.mT) ** 2
        kernel -= square / (block.coordinates[..., None, None] / block.copies)
    index = np.arange(gain.shape[-1])
    kernel[..., index, index] += 1.0 / (features.counts * gain**2)
    return np.asarray(kernel)


def response_table(
    blocks: Sequence[WoodburyFactors], extra: Array, factors: Sequence[Array]
) -> Array:
    """F_is = e_is + Σ_B c_B ((W⁻¹P t_i)_s)²: eq. response-table, at nodes with factors V, one per
    block."""
    table = extra.copy()
    for block, v in zip(blocks, factors, strict=True):
        table += block.copies * (block.u @ block.h.mT @ v.mT) ** 2
    return table


class Cholesky:
    """Factors of symmetric positive matrices; LAPACK itself, because matrices are small."""

    def __init__(self, matrix: Array, what: str) -> None:
        self.lower = []
        for one in matrix.reshape(-1, *matrix.shape[-2:]):
            lower, failed = dpotrf(one, lower=1)
            if failed:
                raise ConvergenceError(
                    f"{what} is not positive definite at this fixed point, which is therefore not "
                    "the physical one, or is too close to interpolation. Use a larger ridge."
                )
            self.lower.append(lower)

    def solve(self, right: Array) -> Array:
        """right (T,), or (P, T) with a row for each matrix."""
        if right.ndim == 1:
            return np.asarray(dpotrs(self.lower[0], right, lower=1)[0])
        pairs = zip(self.lower, right, strict=True)
        return np.stack([dpotrs(lower, row, lower=1)[0] for lower, row in pairs])

    def take(self, index: int) -> Cholesky:
        """One problem of a stack."""
        one = object.__new__(Cholesky)
        one.lower = [self.lower[index]]
        return one
