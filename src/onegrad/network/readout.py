"""Ridge regression: minimise (1/m)‖y − Φa‖² + λ‖a‖² over a."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array


@dataclass(frozen=True)
class Readout:
    """The minimiser and its errors: mean squared residual, and that plus λ‖a‖²."""

    ridge: float
    coefficients: Array
    train_error: float
    train_objective: float


def fit_readout(features: Array, y: Array, ridge: float) -> Readout:
    """The minimiser by Cholesky, in the primal (k ≤ m) or the dual (k > m) form.

    Cost: mk·min(m, k) for the Gram matrix (a symmetric product) and min(m, k)³/3 to factor it;
    memory 8·min(m, k)² bytes beside the features (m × k).
    """
    m, k = features.shape
    if k <= m:
        gram = features.T @ features
        a = _solve(gram, features.T @ y, m * ridge)
        error = float(np.mean((y - features @ a) ** 2))
        return Readout(ridge, a, error, error + ridge * float(a @ a))
    dual = fit_dual(features @ features.T, y, ridge)
    return Readout(ridge, features.T @ dual.coefficients, dual.train_error, dual.train_objective)


def fit_dual(gram: Array, y: Array, ridge: float) -> Readout:
    """The dual coefficients α = (K + mλ)⁻¹y for a kernel matrix K = ΦΦᵀ, which is overwritten.

    The residual is mλ·α, without cancellation; ‖a‖² = αᵀKα.
    """
    m = len(y)
    alpha = _solve(gram, y, m * ridge)
    error = float(np.mean((m * ridge * alpha) ** 2))
    # y'α = (mλ)‖α‖² + α'Kα, so objective = mλ²‖α‖² + λα'Kα = λ·y'α
    return Readout(ridge, alpha, error, ridge * float(y @ alpha))


def _solve(gram: Array, right: Array, shift: float) -> Array:
    gram.flat[:: len(gram) + 1] += shift
    try:
        factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=True)
    except LinAlgError:
        raise ConvergenceError(
            f"the ridge system is singular to working precision (ridge·m = {shift:.3g}). "
            "Use a larger ridge, 1e-9 of the mean squared feature or more"
        ) from None
    except ValueError:
        raise ConvergenceError(
            "the features overflowed: a polynomial model of high degree under a large step or "
            "spread. Lower compare.degree, or use the conditional-gaussian model"
        ) from None
    return np.asarray(cho_solve(factor, right))


def fit_path(features: Array, y: Array, ridges: Sequence[float]) -> tuple[list[Readout], Array]:
    """The minimisers for many ridges from one eigendecomposition, and their leave-one-out errors.

    The leave-one-out error is the mean of (r_i/(1 − H_ii))², H = Φ(ΦᵀΦ + mλ)⁻¹Φᵀ: exact, at no
    extra cost. Always through the m × m or k × k Gram matrix, whichever is smaller.
    """
    m, k = features.shape
    if k <= m:
        values, right = eigh(features.T @ features)
        left = features @ right
        scale = np.sqrt(np.maximum(values, np.finfo(float).tiny))
        left /= scale
        right_t = right.T
    else:
        values, left = eigh(features @ features.T)
        scale = np.sqrt(np.maximum(values, np.finfo(float).tiny))
        right_t = (left.T @ features) / scale[:, None]
    # directions of zero singular value carry nothing; rounding there must not be amplified
    kept = values > values[-1] * 1e-14 if len(values) else values > 0
    values, left, right_t, scale = values[kept], left[:, kept], right_t[kept], scale[kept]
    projected = left.T @ y
    path, left_out = [], []
    for ridge in ridges:
        shrink = values / (values + m * ridge)
        a = right_t.T @ (shrink / scale * projected)
        rest = y - left @ (shrink * projected)
        leverage = (left**2) @ shrink
        error = float(np.mean(rest**2))
        path.append(Readout(ridge, a, error, error + ridge * float(a @ a)))
        left_out.append(float(np.mean((rest / np.maximum(1 - leverage, 1e-12)) ** 2)))
    return path, np.array(left_out)
