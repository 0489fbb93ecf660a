"""Directions of a matrix: bases of spans, leading singular vectors."""

from __future__ import annotations

import math

import numpy as np

from onegrad.compute.backend import Array, namespace


def span_basis(columns: Array, tolerance: float) -> Array:
    """Orthonormal basis of the span of `columns`, (n, r); singular values ≤ `tolerance` count as 0.

    >>> span_basis(np.array([[2.0, 4.0], [0.0, 0.0]]), 1e-12).shape
    (2, 1)
    """
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > tolerance])


def leading_direction(matrix: Array, iterations: int = 40) -> Array:
    """The leading right singular vector, by power iteration (4·k·n operations each)."""
    xp = namespace(matrix)
    vector: Array = matrix.T @ xp.sum(matrix, axis=1)
    for _ in range(iterations):
        norm = math.sqrt(float(vector @ vector))
        if norm == 0:
            return vector
        vector /= norm
        vector = matrix.T @ (matrix @ vector)
    vector /= math.sqrt(float(vector @ vector))
    return vector
