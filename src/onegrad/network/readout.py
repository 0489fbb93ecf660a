"""Ridge regression: minimise (1/m)‖y − Φa‖² + λ‖a‖² over a."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dsyrk

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array


@dataclass(frozen=True)
class Readout:
    """The minimiser and its errors: mean squared residual, and that plus λ‖a‖²."""

    ridge: float
    coefficients: Array
    train_error: float
    train_objective: float


class RidgeSolver:
    """The minimisers for given features (m × k) at any number of ridges, from one Gram matrix.

    In the primal (k ≤ m) or the dual (k > m) form. The first two ridges are solved by Cholesky
    (min(m, k)³/3 operations each); from the third on one eigendecomposition serves all. Cost of
    the Gram matrix: mk·min(m, k), a symmetric product. Memory beside the features: 8·min(m, k)²
    bytes, and as much again while ridges are still to come.
    """

    def __init__(self, features: Array, y: Array) -> None:
        self.features = features
        self.y = y
        self._gram: Array | None = None
        self._solved = 0
        self._spectrum: Spectrum | None = None

    def fit(self, ridge: float, last: bool = False) -> Readout:
        """`last`: no other ridge will be asked for, so that the Gram matrix may be overwritten."""
        if self._spectrum is None and self._solved < 2:
            self._solved += 1
            return self._cholesky(ridge, last)
        if self._spectrum is None:
            self._spectrum = Spectrum(self.features, self.y)
            self._gram = None
        return self._spectrum.fit(ridge)

    def _cholesky(self, ridge: float, last: bool) -> Readout:
        features, y = self.features, self.y
        m, k = features.shape
        if self._gram is None:
            self._gram = lower_gram(features, dual=k > m)
        gram = self._gram if last else self._gram.copy(order="F")
        if last:
            self._gram = None
        if k > m:
            dual = fit_dual(gram, y, ridge)
            a = features.T @ dual.coefficients
            return Readout(ridge, a, dual.train_error, dual.train_objective)
        a = _solve(gram, features.T @ y, m * ridge)
        error = float(np.mean((y - features @ a) ** 2))
        return Readout(ridge, a, error, error + ridge * float(a @ a))


def lower_gram(features: Array, dual: bool) -> Array:
    """The lower triangle of ΦᵀΦ, or of ΦΦᵀ (dual), in the order in which LAPACK works in place.

    Half the operations of a general product; the upper triangle is zero.
    """
    if features.flags.c_contiguous:
        return np.asarray(dsyrk(1.0, features.T, trans=int(dual), lower=1))
    return np.asarray(dsyrk(1.0, features, trans=int(not dual), lower=1))


def fit_readout(features: Array, y: Array, ridge: float) -> Readout:
    """The minimiser for one ridge: `RidgeSolver`."""
    return RidgeSolver(features, y).fit(ridge, last=True)


def fit_dual(gram: Array, y: Array, ridge: float) -> Readout:
    """The dual coefficients α = (K + mλ)⁻¹y for a kernel matrix K = ΦΦᵀ, which is overwritten.

    Only the lower triangle of K is read.
    The residual is mλ·α, without cancellation; ‖a‖² = αᵀKα.
    """
    m = len(y)
    alpha = _solve(gram, y, m * ridge)
    error = float(np.mean((m * ridge * alpha) ** 2))
    # y'α = (mλ)‖α‖² + α'Kα, so objective = mλ²‖α‖² + λα'Kα = λ·y'α
    return Readout(ridge, alpha, error, ridge * float(y @ alpha))


def _solve(gram: Array, right: Array, shift: float) -> Array:
    diagonal = np.einsum("ii->i", gram)
    diagonal += shift
    try:
        # a feature that is not finite makes its own entry of the diagonal so
        if not np.isfinite(diagonal).all():
            raise ValueError
        factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
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
    return np.asarray(cho_solve(factor, right, check_finite=False))


class Spectrum:
    """The singular value decomposition of the features, through the smaller Gram matrix."""

    def __init__(self, features: Array, y: Array) -> None:
        m, k = features.shape
        if k <= m:
            values, right = eigh(features.T @ features)
            left, right_t = features @ right, right.T
        else:
            values, left = eigh(features @ features.T)
            right_t = left.T @ features
        # directions of zero singular value carry nothing; rounding there must not be amplified
        kept = values > values[-1] * 1e-14
        self.values = values[kept]
        self._scale = np.sqrt(self.values)
        self._left, self._right_t = left[:, kept], right_t[kept]
        if k <= m:
            self._left /= self._scale
        else:
            self._right_t /= self._scale[:, None]
        self.y = y
        self._projected = self._left.T @ y

    def fit(self, ridge: float) -> Readout:
        shrink = self._shrink(ridge)
        a = self._right_t.T @ (shrink / self._scale * self._projected)
        error = float(np.mean(self._residual(shrink) ** 2))
        return Readout(ridge, a, error, error + ridge * float(a @ a))

    def leave_one_out(self, ridge: float) -> float:
        """Mean of (r_i/(1 − H_ii))², H = Φ(ΦᵀΦ + mλ)⁻¹Φᵀ: exact, without refitting."""
        shrink = self._shrink(ridge)
        leverage = (self._left**2) @ shrink
        return float(np.mean((self._residual(shrink) / np.maximum(1 - leverage, 1e-12)) ** 2))

    def _shrink(self, ridge: float) -> Array:
        return self.values / (self.values + len(self.y) * ridge)

    def _residual(self, shrink: Array) -> Array:
        return np.asarray(self.y - self._left @ (shrink * self._projected))
