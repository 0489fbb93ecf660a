"""Ridge regression on features of single precision, to the accuracy of the features themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy.linalg import LinAlgError

from onegrad.backend import namespace, pieces, positive_solver
from onegrad.errors import ConvergenceError
from onegrad.hermite import Array

_STEPS = 20
_WANTED = 1e-7  # of the size of the solution: what the features are rounded to


def refined(gram: Any, multiply: Callable[[Any], Any], right: Array, shift: float) -> Array:
    """(K + shift)⁻¹·right in double precision, for K = ΦᵀΦ or ΦΦᵀ; `multiply` is v ↦ Kv.

    `gram` is K + shift in single precision, which is overwritten: its Cholesky factor alone
    would lose ‖K‖/shift·6e-8 of the solution, everything at a small ridge. Each step of
    refinement multiplies with the features in double precision: 4mk operations, in pieces.
    Raises ConvergenceError where the factor is too rough for the steps to converge.
    """
    advice = ConvergenceError(
        f"single precision is not enough for this ridge (ridge·m = {shift:.3g}). Use "
        'compare.dtype = "float64", or a larger ridge'
    )
    try:
        solve = positive_solver(gram)
    except LinAlgError:
        raise advice from None
    single = gram.dtype
    xp = namespace(gram)
    solution = xp.zeros_like(right)
    residual, previous = right, math.inf
    for _ in range(_STEPS):
        step = xp.astype(solve(xp.astype(residual, single)), right.dtype)
        solution += step
        size = math.sqrt(float(step @ step))
        if size <= _WANTED * math.sqrt(float(solution @ solution)):
            return solution
        if not size < 0.7 * previous:
            break
        previous = size
        residual = right - multiply(solution) - shift * solution
    raise advice


def times(features: Any, vector: Any) -> Any:
    """Φv in double precision."""
    xp = namespace(features)
    result = xp.empty(features.shape[0], dtype=vector.dtype, device=vector.device)
    for rows in pieces(features):
        result[rows] = xp.astype(features[rows], vector.dtype) @ vector
    return result


def transposed_times(features: Any, vector: Any) -> Any:
    """Φᵀv in double precision."""
    xp = namespace(features)
    result = xp.zeros(features.shape[1], dtype=vector.dtype, device=vector.device)
    for rows in pieces(features):
        result += vector[rows] @ xp.astype(features[rows], vector.dtype)
    return result
