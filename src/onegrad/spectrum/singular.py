"""Singular values of a matrix that somebody has: all of them, or the leading ones."""

from __future__ import annotations

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError

_DENSE = 600  # smaller dimension up to which a full decomposition is the faster one


def all_singular_values(matrix: Array) -> Array:
    """Every singular value, largest first; O(n·N·min(n, N))."""
    return np.asarray(svd(matrix, compute_uv=False, check_finite=True))


def leading_singular(matrix: Array, count: int) -> tuple[Array, Array, Array]:
    """(U, s, Vᵀ) of the `count` largest singular values, largest first.

    Lanczos iterations (`scipy.sparse.linalg.svds`) once the smaller dimension exceeds 600:
    O(count·n·N) instead of O(n·N·min(n, N)), from a fixed starting vector.
    """
    small = min(matrix.shape)
    if not 1 <= count <= small:
        raise AssumptionError(f"count = {count} must lie in 1…{small}, the smaller dimension")
    if small <= _DENSE or count > small // 4:
        u, s, vt = svd(matrix, full_matrices=False)
        return u[:, :count], s[:count], vt[:count]
    start = np.random.default_rng(0).standard_normal(small)
    try:
        u, s, vt = (np.asarray(part, float) for part in svds(matrix, k=count, v0=start))
    except Exception as error:  # ARPACK raises its own kinds of errors
        raise ConvergenceError(
            f"the {count} leading singular values did not converge ({error}); ask for fewer, or "
            "use all_singular_values"
        ) from error
    order = np.argsort(s)[::-1]
    return u[:, order], s[order], vt[order]
