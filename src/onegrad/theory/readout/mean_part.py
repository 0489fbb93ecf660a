"""The mean part of the readout: systems of the size of the types, or of the rank of their means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.readout.fixed_point import FixedPoint
from onegrad.theory.readout.woodbury import Cholesky, WoodburyFactors, product


class MeanPart:
    """S = diag(1/(c m)) + νWνᵀ − QPQᵀ of (12), (24), to solve with.

    Where ν = A Bᵀ is of low rank (`NodeFeatures.mean_factors`), S = D⁻¹ + U C Uᵀ with
    D = diag(c m), U = (A, Q's factor), C = diag(BᵀWB, −GH), and
    S⁻¹ = D − D U (I + C UᵀDU)⁻¹ C UᵀD.
    """

    def __init__(
        self, point: FixedPoint, blocks: Sequence[WoodburyFactors], weights: Array
    ) -> None:
        self.point, self.weights = point, weights
        f = point.features
        self.factors = f.mean_factors
        if self.factors is None:
            self.system = mean_system(point, blocks, weights)
            return
        a, b = self.factors
        parts, inner = [a], [b.mT @ (weights[..., None] * b)]
        if f.lift is not None:
            parts.append(blocks[0].u * f.lift[..., None])
            inner.append(-blocks[0].gh)
        self.u = np.concatenate(parts, axis=-1)
        self.free = (f.counts * point.gain)[..., None]
        rank = self.u.shape[-1]
        self.c = np.zeros((*a.shape[:-2], rank, rank))
        start = 0
        for part in inner:
            end = start + part.shape[-1]
            self.c[..., start:end, start:end] = part
            start = end
        self.inner = np.eye(rank) + self.c @ (self.u.mT @ (self.free * self.u))

    def readout(self, labels: Array) -> Array:
        """S⁻¹νWȳ."""
        f = self.point.features
        if self.factors is None:
            right = product(f.mean * self.weights[..., None, :], labels)
            return _solve_positive(self.system, right, "the mean part")
        b = self.factors[1]
        right = np.zeros(self.inner.shape[:-1])
        right[..., : b.shape[-1]] = product(b.mT, self.weights * labels)
        found = self._lowered(right[..., None])
        return np.asarray((self.free * (self.u @ found))[..., 0])

    def solve(self, right: Array) -> Array:
        """S⁻¹ of the columns of a matrix, of one problem."""
        if self.factors is None:
            return np.asarray(np.linalg.solve(self.system, right))
        inner = self._lowered(self.c)
        types, rank = self.u.shape
        if types < 2 * rank:
            freed = self.free * self.u
            return np.asarray((np.diag(self.free[:, 0]) - freed @ inner @ freed.T) @ right)
        scaled = self.free * right
        return np.asarray(scaled - self.free * (self.u @ (inner @ (self.u.T @ scaled))))

    def _lowered(self, right: Array) -> Array:
        """(I + C UᵀDU)⁻¹ of columns."""
        try:
            found = np.linalg.solve(self.inner, right)
        except np.linalg.LinAlgError:
            found = np.full_like(right, np.nan)
        if not np.all(np.isfinite(found)):
            raise ConvergenceError(
                "the mean part of the theory is singular here. Use a larger training.ridge"
            )
        return np.asarray(found)


def mean_system(point: FixedPoint, blocks: Sequence[WoodburyFactors], weights: Array) -> Array:
    """S = diag(1/(c m)) + νWνᵀ − QPQᵀ."""
    f, m = point.features, point.gain
    system = (f.mean * weights[..., None, :]) @ f.mean.mT
    index = np.arange(m.shape[-1])
    system[..., index, index] += 1.0 / (f.counts * m)
    if f.lift is not None:
        lifted = blocks[0].u * f.lift[..., None]
        system -= lifted @ blocks[0].gh @ lifted.mT
    return np.asarray(system)


def _solve_positive(matrix: Array, right: Array, what: str) -> Array:
    try:
        return Cholesky(matrix, what).solve(right)
    except ConvergenceError:
        if matrix.ndim > 2:
            raise
        solution = np.asarray(lu_solve(lu_factor(matrix), right))
        if not np.all(np.isfinite(solution)):
            raise ConvergenceError(
                f"{what} of the theory is singular; use a larger ridge"
            ) from None
        return solution
