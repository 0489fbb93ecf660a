"""Directions of a matrix: bases of spans, leading singular vectors."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh

from onegrad.compute.backend import Array, namespace


def span_basis(columns: Array, tolerance: float) -> Array:
    """Orthonormal basis of the span of `columns`, (n, r); singular values ≤ `tolerance` count as 0.

    >>> span_basis(np.array([[2.0, 4.0], [0.0, 0.0]]), 1e-12).shape
    (2, 1)
    """
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > tolerance])


def leading_direction(matrix: Array, iterations: int = 40) -> Array:
    """The leading right singular vector, by power iteration (4·k·n operations each), which ends
    when one of them moves it by nothing but rounding."""
    xp = namespace(matrix)
    rounding = 4 * float(xp.finfo(matrix.dtype).eps)
    vector: Array = matrix.T @ xp.sum(matrix, axis=1)
    for _ in range(iterations + 1):
        norm = math.sqrt(float(vector @ vector))
        if norm == 0:
            return vector
        vector /= norm
        before, vector = vector, matrix.T @ (matrix @ vector)
        along = float(before @ vector)
        off = vector - along * before  # how far it turns, times its length
        if math.sqrt(float(off @ off)) <= rounding * along:
            return before
    return before


def outlying_directions(matrix: Array, most: int = 4) -> Array:
    """Right singular directions (n, q ≤ `most`) above the edge of the bulk, strongest first.

    The bulk is taken for one of independent entries, whose median singular value tells its edge:
    √(λ₊/λ_median) of the Marchenko–Pastur law of that shape. Rows of unequal length have a wider
    bulk, and some of its directions come along, at most `most` in all. Eigenvalues of the
    smaller Gram matrix, O(kn·min(k, n)).

    >>> rng = np.random.default_rng(0)
    >>> noise, u, v = rng.standard_normal((80, 100)), rng.standard_normal(80), np.eye(100)[3]
    >>> found = outlying_directions(noise + 5 * np.outer(u, v))
    >>> found.shape[1], bool(abs(found[3, 0]) > 0.9)
    (1, True)
    """
    rows, columns = matrix.shape
    small = min(rows, columns)
    if small < 2 or not np.any(matrix):
        return np.zeros((columns, 0))
    gram = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    values = eigh(gram, eigvals_only=True, check_finite=False)
    ratio = small / max(rows, columns)
    edge = (1 + math.sqrt(ratio)) ** 2 / median_of_bulk(ratio) * float(np.median(values))
    count = min(most, int(np.sum(values > _ABOVE * edge)))
    if count == 0:
        return np.zeros((columns, 0))
    largest = [small - count, small - 1]
    leading = eigh(gram, subset_by_index=largest, check_finite=False)[1][:, ::-1]
    if rows <= columns:
        leading = matrix.T @ leading / np.sqrt(values[::-1][:count])
    return np.asarray(leading)


# Factor over the edge of squared singular values: at finite size the bulk leaks over it
_ABOVE = 1.1


@lru_cache(maxsize=64)
def median_of_bulk(ratio: float) -> float:
    """Median of the Marchenko–Pastur law with γ = `ratio` and unit variance, of its positive part
    if γ > 1."""
    gamma, scale = (ratio, 1.0) if ratio <= 1 else (1 / ratio, ratio)
    low, high = (1 - math.sqrt(gamma)) ** 2, (1 + math.sqrt(gamma)) ** 2
    angle = (np.arange(20_000) + 0.5) * math.pi / 20_000  # λ = middle − half·cos(angle)
    value = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    mass = np.cumsum(np.sin(angle) ** 2 / value)  # density × dλ, up to a constant
    return float(scale * np.interp(0.5, mass / mass[-1], value))
