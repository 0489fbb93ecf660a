"""K̃ = ΦΦᵀ/(mλ) as readouts with any convex loss need it: products, and solutions with I + sK̃s.

In the form that is smaller: of samples (m × m) or of features (k × k).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError

_ROUNDING = 1e-15  # rounding error per row, over the largest entry


class System(Protocol):
    """A positive matrix K̃ (m × m), given or by its factors; shift = mλ."""

    shift: float

    def times(self, v: Array) -> Array:
        """K̃v."""

    def solver(self, s: Array) -> Solver:
        """For (I + sK̃s)⁻¹, s (m,) a diagonal."""

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """K̃ at some rows and columns."""

    def root(self) -> Array:
        """Features with ΦΦᵀ = mλ·K̃."""


class Solver(Protocol):
    """v ↦ (I + sK̃s)⁻¹v."""

    def __call__(self, v: Array) -> Array: ...


class KernelSystem:
    """By K = ΦΦᵀ: m³/3 operations for a solver, memory 8m² bytes beside K."""

    def __init__(self, gram: Array, shift: float) -> None:
        self.gram, self.shift = gram, shift

    def times(self, v: Array) -> Array:
        return np.asarray(self.gram @ v) / self.shift

    def solver(self, s: Array) -> Solver:
        matrix = self.gram * (s / self.shift)[:, None]
        matrix *= s
        matrix.flat[:: len(s) + 1] += 1.0
        cholesky = factor(matrix)
        return lambda v: np.asarray(cho_solve(cholesky, v, check_finite=False))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        return np.asarray(self.gram[np.ix_(rows, columns)] / self.shift)

    def root(self) -> Array:
        """Cholesky's factor, of K plus what rounding leaves of it."""
        matrix = self.gram.copy()
        matrix.flat[:: len(matrix) + 1] += _ROUNDING * len(matrix) * float(self.gram.max())
        return np.asarray(np.tril(factor(matrix)[0]))


class FeatureSystem:
    """By Φ (m × k), for k ≤ m: mk² + k³/3 operations for a solver."""

    def __init__(self, features: Array, shift: float) -> None:
        self.features, self.shift = features, shift

    def times(self, v: Array) -> Array:
        return np.asarray(self.features @ (self.features.T @ v)) / self.shift

    def solver(self, s: Array) -> Solver:
        scaled = self.features * s[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += self.shift
        cholesky = factor(matrix)

        def solve(v: Array) -> Array:
            return np.asarray(v - scaled @ cho_solve(cholesky, scaled.T @ v, check_finite=False))

        return solve

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        return np.asarray(self.features[rows] @ self.features[columns].T / self.shift)

    def root(self) -> Array:
        return self.features


def factor(matrix: Array) -> tuple[Array, bool]:
    """Cholesky's, of a positive matrix, which is overwritten."""
    try:
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=True)
    except (LinAlgError, ValueError):
        raise ConvergenceError(
            "the equations of the readout are singular to working precision, or the features "
            "overflowed. Use a larger training.ridge, or a smaller rate or spread"
        ) from None
