"""Ridge regression through a Cholesky factor of single precision, refined to what is wanted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from onegrad.compute.backend import (
    Array,
    lower_gram,
    namespace,
    pieces,
    positive_solver,
    shift_diagonal,
)
from onegrad.errors import ConvergenceError

_STEPS = 20
_MARGIN = 10.0  # safety factor on the predicted size of the next step
_WANTED = 1e-7  # wanted relative error: the rounding of single-precision features
_DOUBLE = 1e-12  # relative size of the last step in double precision: the next one is rounding
WORTH_ROUNDING = 512  # unknowns from which single precision is faster
ROUNDED = float(np.finfo(np.float32).eps) / 2  # relative error of a rounded number, at most
_CONTRACTION = 1e-3  # largest estimated contraction factor for which refinement is tried
_REDUCTION = 1e-4  # reduction of the residual after which single-precision iterations restart
_SPARE = 0.5  # share of the allowed residual that leaves room for its rounding
_RESTARTS = 5
_FEWEST_ITERATIONS = 24
_BLOCK = 1 << 18  # single-precision numbers converted to double at once
# The features' mean is deflated if its eigenvalue exceeds this multiple of the shift
_OUTSTANDING = 100.0
_MET = 10.0  # eigenvalue after deflation, in units of the shift

Multiply = Callable[[Any], Any]


def rounded_solution(
    features: Any, right: Array, shift: float, dual: bool, multiply: Multiply
) -> Array | None:
    """(K + shift)⁻¹·right in double precision, K = ΦᵀΦ or ΦΦᵀ (dual), at half the cost of it.

    The Gram matrix and its Cholesky factor are of single precision; three or four steps of
    refinement, 4mk operations each, make up for it, to the accuracy of a factor of double
    precision. None where that does not pay (few unknowns, other libraries than NumPy) or may not
    converge: the error of the factor, at most 6e-8·tr K/shift, must be small. Memory
    8·min(m, k)² bytes, as much as one Gram matrix of double precision.
    """
    if not isinstance(features, np.ndarray) or min(features.shape) < WORTH_ROUNDING:
        return None
    single = np.dtype(np.float32)
    trace = float(np.einsum("ij,ij->", features, features))
    if not ROUNDED * trace <= _CONTRACTION * shift:
        return None
    side, length = sorted(features.shape)
    room = np.empty((side, side), single)
    for start in range(0, length, side):
        part = slice(start, start + side)
        rounded = (features[:, part] if dual else features[part]).astype(single)
        gram = lower_gram(rounded, dual, room, add=start > 0)
        del rounded
    shift_diagonal(gram, shift)
    try:
        return refined(gram, multiply, right, shift, _DOUBLE)
    except ConvergenceError:
        return None


def conjugate_solution(
    features: Any, right: Array, shift: float, dual: bool, multiply: Multiply
) -> Array | None:
    """(K + shift)⁻¹·right for features of single precision, K = ΦᵀΦ or ΦΦᵀ (dual), without K.

    Conjugate gradients in single precision [hestenes1952], begun again from the residual in double
    until their own residual r has ‖r‖ ≤ 1e-7·shift·‖x‖: no eigenvalue of K + shift is below shift,
    so that x is then known to 1e-7 of itself, and what rounding adds to the last step alone. An
    iteration multiplies with Φ and with Φᵀ, 4mk operations, and some 2·√(‖K‖/shift) of them gain
    four digits, large eigenvalues that stand alone not counted: at the ridges of the published
    figures a tenth of the operations of a Gram matrix and its factor. That of the features' mean
    is taken away beforehand (`_mean_direction`). None where that does not pay (other libraries
    than NumPy, an ill-conditioned K): after side/16 iterations it is given up.
    """
    if not isinstance(features, np.ndarray) or right.ndim != 1:
        return None
    most = _FEWEST_ITERATIONS + min(features.shape) // 16
    mean = _mean_direction(features, shift, dual)
    solution, residual = np.zeros_like(right), right
    for _ in range(_RESTARTS):
        left, size = float(np.linalg.norm(residual)), float(np.linalg.norm(solution))
        if left == 0:
            return solution
        reduction = max(_REDUCTION, _SPARE * _WANTED * shift * size / left)
        rounded = residual.astype(features.dtype)
        step = _conjugate_gradients(features, rounded, shift, dual, (reduction, most), mean)
        if step is None:
            return None
        solution = solution + step
        if reduction * left <= _WANTED * shift * float(np.linalg.norm(solution)):
            return solution
        residual = right - multiply(solution) - shift * solution
    return None


def _mean_direction(features: Any, shift: float, dual: bool) -> tuple[Array, float] | None:
    """The direction u of K's largest eigenvalue θ where features have a mean, and 1 − c·shift/θ.

    An activation with a mean makes θ a hundred times the next eigenvalue. Rounded conjugate
    gradients find it again and again, which costs them a quarter of their iterations;
    preconditioned by I − (1 − c·shift/θ)uuᵀ they meet c·shift instead, among the others.
    """
    back = features.T
    ones = np.ones(min(features.shape), features.dtype)
    image = back @ ones if dual else features @ ones
    if not float(image @ image) > _OUTSTANDING * shift * ones.size:
        return None
    direction = features @ image if dual else back @ image
    direction /= np.linalg.norm(direction)
    image = back @ direction if dual else features @ direction
    largest = float(image @ image)
    return (direction, 1 - _MET * shift / largest) if math.isfinite(largest) else None


def _conjugate_gradients(
    features: Any,
    right: Array,
    shift: float,
    dual: bool,
    ends: tuple[float, int],
    mean: tuple[Array, float] | None = None,
) -> Array | None:
    """To a residual of so much of `right`; None where so many iterations are not enough, or
    numbers overflow. `mean` : of `_mean_direction`, the preconditioner."""
    reduction, most = ends
    kind, back = features.dtype.type, features.T

    def conditioned(vector: Array) -> Array:
        if mean is None:
            return vector
        return np.asarray(vector - kind(mean[1] * float(mean[0] @ vector)) * mean[0])

    solution, residual = np.zeros_like(right), right.copy()
    square = float(residual @ residual)
    goal, near = reduction**2 * square, conditioned(residual)
    direction, size = near.copy(), float(residual @ near)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(most):
            if square <= goal:
                return solution
            image = features @ (back @ direction) if dual else back @ (features @ direction)
            image += kind(shift) * direction
            curvature = float(direction @ image)
            if not 0 < curvature < math.inf:
                return None
            length = kind(size / curvature)
            solution += length * direction
            residual -= length * image
            near = conditioned(residual)
            before, size = size, float(residual @ near)
            square = size if mean is None else float(residual @ residual)
            direction *= kind(size / before)
            direction += near
    return solution if square <= goal else None


def gram_times(features: Any, vector: Array, dual: bool) -> tuple[Array, Array]:
    """Φv and ΦᵀΦv, or Φᵀv and ΦΦᵀv (dual), in double precision from one reading of Φ, NumPy's."""
    rows = features.T if dual else features
    image = np.empty(rows.shape[0])
    step = max(1, _BLOCK // rows.shape[1])
    total, room = np.zeros_like(vector), np.empty_like(rows[:step], dtype=np.float64)
    for start in range(0, rows.shape[0], step):
        block = slice(start, start + step)
        part = room[: len(image[block])]
        np.copyto(part, rows[block])
        image[block] = part @ vector
        total += image[block] @ part
    return image, total


def refined(
    gram: Any, multiply: Multiply, right: Array, shift: float, wanted: float = _WANTED
) -> Array:
    """(K + shift)⁻¹·right in double precision, for K = ΦᵀΦ or ΦΦᵀ; `multiply` is v ↦ Kv.

    `gram` is K + shift in single precision, which is overwritten: its Cholesky factor alone
    would lose ‖K‖/shift·6e-8 of the solution, everything at a small ridge. Each step of
    refinement multiplies with the features in double precision: 4mk operations, in pieces.
    Raises ConvergenceError where the factor is too rough for the steps to converge.
    """
    too_rough = ConvergenceError(
        f"single precision is not enough for this ridge (ridge·m = {shift:.3g}). Use "
        'compare.dtype = "float64", or a larger ridge'
    )
    try:
        solve = positive_solver(gram)
    except LinAlgError:
        raise too_rough from None
    xp = namespace(right)
    solution = xp.zeros_like(right)
    residual, previous = right, math.inf
    for _ in range(_STEPS):
        step = xp.astype(solve(xp.astype(residual, gram.dtype)), right.dtype)
        solution += step
        size = float(xp.linalg.vector_norm(step))
        # each step is the last one times about the same factor: what the next one would add
        left = size * size / previous if math.isfinite(previous) else size
        if min(size, _MARGIN * left) <= wanted * float(xp.linalg.vector_norm(solution)):
            return solution
        if not size < 0.7 * previous:
            break
        previous = size
        residual = right - multiply(solution) - shift * solution
    raise too_rough


def times(features: Any, vector: Any) -> Any:
    """Φv in double precision."""
    xp = namespace(features)
    shape = (features.shape[0], *vector.shape[1:])
    result = xp.empty(shape, dtype=vector.dtype, device=vector.device)
    for rows in pieces(features):
        result[rows] = xp.astype(features[rows], vector.dtype) @ vector
    return result


def transposed_times(features: Any, vector: Any) -> Any:
    """Φᵀv in double precision."""
    xp = namespace(features)
    shape = (features.shape[1], *vector.shape[1:])
    total = xp.zeros(shape, dtype=vector.dtype, device=vector.device)
    for rows in pieces(features):
        part = xp.astype(features[rows], vector.dtype)
        total += vector[rows] @ part if vector.ndim == 1 else part.T @ vector[rows]
    return total
