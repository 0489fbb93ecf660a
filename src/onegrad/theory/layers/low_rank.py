"""Tables of neurons × nodes as the matrix engine needs them: dense, or of low rank."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from onegrad.compute.backend import Array

_FIRST_RANK = 48
_OVERSAMPLED = 8


class Table(Protocol):
    """T (k × S); its columns are ν or d of the neurons at one node."""

    def outer(self, u: Array) -> Array:
        """T diag(u) Tᵀ (k × k)."""

    def forms(self, matrix: Array) -> Array:
        """T_sᵀ·matrix·T_s of every node (S,), matrix symmetric."""

    def along(self, readout: Array) -> Array:
        """T_sᵀ·readout of every node (S,)."""

    def total(self, u: Array) -> Array:
        """Σ_s u_s T_s (k,)."""


class DenseTable:
    """As it is: O(k²S) for every product."""

    def __init__(self, table: Array) -> None:
        self.table = table

    def outer(self, u: Array) -> Array:
        return np.asarray((self.table * u) @ self.table.T)

    def forms(self, matrix: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->j", self.table, matrix @ self.table))

    def along(self, readout: Array) -> Array:
        return np.asarray(readout @ self.table)

    def total(self, u: Array) -> Array:
        return np.asarray(self.table @ u)


class LowRankTable:
    """T = LRᵀ, L (k × p) orthonormal: O(k²p) for every product.

    Features that are smooth in a few projections have a table of low rank: p is 30 to 150 where
    S is a thousand.
    """

    def __init__(self, left: Array, right: Array) -> None:
        self.left, self.right = left, right

    def outer(self, u: Array) -> Array:
        inner = (self.right.T * u) @ self.right
        return np.asarray((self.left @ inner) @ self.left.T)

    def forms(self, matrix: Array) -> Array:
        inner = self.left.T @ (matrix @ self.left)
        return np.asarray(np.einsum("ij,ij->i", self.right @ inner, self.right))

    def along(self, readout: Array) -> Array:
        return np.asarray(self.right @ (readout @ self.left))

    def total(self, u: Array) -> Array:
        return np.asarray(self.left @ (u @ self.right))


def table_of(table: Array, weights: Array, left_out: float, worth: float = 3.0) -> Table:
    """A table by its range, found by random projections; dense where its rank is not `worth` times
    below its sides.

    left_out : at most this is lost of Σ_s ω_s|T_s|²; far below the ridge it changes nothing,
        because the tables count as TωTᵀ beside λI  [halko2011]
    """
    k, nodes = table.shape
    scaled = table * np.sqrt(weights)
    whole = float(np.sum(scaled**2))
    rng = np.random.default_rng(0)
    rank = _FIRST_RANK
    while worth * (rank + _OVERSAMPLED) < min(k, nodes):
        probe = rng.standard_normal((nodes, rank + _OVERSAMPLED))
        left = np.linalg.qr(scaled @ probe)[0]
        inside = left.T @ scaled
        if whole - float(np.sum(inside**2)) <= max(left_out, 1e-13 * whole):
            return LowRankTable(left, np.ascontiguousarray((left.T @ table).T))
        rank *= 2
    return DenseTable(table)
