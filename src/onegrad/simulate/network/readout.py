"""Ridge regression: minimise (1/m)‖y − Φa‖² + λ‖a‖² over a."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.linalg import LinAlgError

from onegrad.compute.backend import Array, lower_gram, namespace, positive_solver, shift_diagonal
from onegrad.errors import ConvergenceError
from onegrad.simulate.network.refine import (
    ROUNDED,
    Multiply,
    conjugate_solution,
    gram_times,
    refined,
    rounded_solution,
    times,
    transposed_times,
)

COPIED = 1 << 24  # bytes of features in double precision that are made to refine readouts
_LAST_STEP = 1e-2  # last step over the solution: in single precision its image is exact to 1e-9
_SOUND = 0.1  # largest bound on rounding errors for which conjugate gradients are tried


@dataclass(frozen=True)
class Readout:
    """The minimiser and its errors: mean squared residual, and the mean loss plus λ‖a‖².

    train_loss : the mean loss, where it is another one than the squared residual
    magnified : bound of what rounding of the features changes of Φa, 6e-8·tr K/(mλ), where they are
        of single precision
    """

    ridge: float
    coefficients: Array
    train_error: float
    train_objective: float
    train_loss: float | None = None
    magnified: float = 0.0

    @property
    def loss(self) -> float:
        """The mean loss of the training samples, without penalty."""
        return self.train_error if self.train_loss is None else self.train_loss


class RidgeSolver:
    """The minimisers for given features (m × k) at any number of ridges, from one Gram matrix.

    In the primal (k ≤ m) or the dual (k > m) form. The first two ridges are solved by Cholesky
    (min(m, k)³/3 operations each); from the third on one eigendecomposition serves all. Cost of
    the Gram matrix: mk·min(m, k), a symmetric product; half of both where there is one ridge only
    and it is large enough for single precision (`rounded_solution`). Memory beside the features:
    8·min(m, k)² bytes, and as much again while ridges are still to come. Features of single
    precision are solved by Cholesky at every ridge, refined in double precision; by conjugate
    gradients, without a Gram matrix, where there is one ridge only.
    """

    def __init__(self, features: Array, y: Array) -> None:
        xp = namespace(features)
        self.features = features
        self.single = features.dtype != xp.float64
        self.y = xp.astype(y, xp.float64, copy=False)
        self._gram: Array | None = None
        self._seen: tuple[Array, Array] | None = None
        self._solved = 0
        self._spectrum: Decomposition | None = None

    def fit(self, ridge: float, last: bool = False) -> Readout:
        """The minimiser at this ridge; `last`: no other one follows, the Gram matrix may go
        (eq. readout)."""
        if self.single or (self._spectrum is None and self._solved < 2):
            self._solved += 1
            return self._cholesky(ridge, last)
        if self._spectrum is None:
            self._spectrum = Decomposition(self.features, self.y)
            self._gram = None
        return self._spectrum.fit(ridge)

    def coefficients(self, ridge: float, last: bool = False) -> Array:
        """The minimisers for labels y in columns (m × r, double precision): k × r."""
        if self._dual:
            return self._back(self._solution(self.y, ridge, last))
        return self._solution(self._back(self.y), ridge, last)

    def _cholesky(self, ridge: float, last: bool) -> Readout:
        y = self.y
        if self._dual:
            alpha = self._solution(y, ridge, last)
            dual = dual_readout(alpha, y, ridge)
            errors = dual.train_error, dual.train_objective
            return Readout(ridge, self._image(alpha), *errors, magnified=self._magnified(ridge))
        a = self._solution(self._back(y), ridge, last)
        error = _mean_square(y - self._image(a))
        objective = error + ridge * _dot(a, a)
        return Readout(ridge, a, error, objective, magnified=self._magnified(ridge))

    def _magnified(self, ridge: float) -> float:
        if not self.single:
            return 0.0
        return ROUNDED * self._trace / (self.features.shape[0] * ridge)

    @cached_property
    def _trace(self) -> float:
        xp = namespace(self.features)
        numbers = xp.reshape(self.features, (-1,))
        return float(xp.vecdot(numbers, numbers))

    @property
    def _dual(self) -> bool:
        m, k = self.features.shape
        return bool(k > m)

    def _solution(self, right: Array, ridge: float, last: bool) -> Array:
        """(K + mλ)⁻¹·right, where K = ΦᵀΦ, or ΦΦᵀ in the dual form."""
        features, dual = self.features, self._dual
        m, k = features.shape
        shift = m * ridge

        def multiply(v: Array) -> Array:
            once = self.single and self._double is None and isinstance(features, np.ndarray)
            product: Array | None = None
            if once:
                image, product = gram_times(features, v, dual)
            else:
                image = self._back(v) if dual else self._times(v)
            if self.single:  # a copy: refinement goes on in place
                self._seen = namespace(v).asarray(v, copy=True), image
            if product is not None:
                return product
            return self._times(image) if dual else self._back(image)

        if last and self._gram is None:
            solution = None
            if self.single and self._magnified(ridge) <= _SOUND:
                solution = conjugate_solution(features, right, shift, dual, multiply)
            elif not self.single:
                solution = rounded_solution(features, right, shift, dual, multiply)
            if solution is not None:
                return solution
        if self._gram is None:
            room = None
            if isinstance(features, np.ndarray):
                room = np.empty((min(m, k),) * 2, features.dtype)
            self._gram = lower_gram(features, dual, room)
        gram = self._gram if last else namespace(self._gram).asarray(self._gram, copy=True)
        if last:
            self._gram = None
        return solve_shifted(gram, right, shift, multiply if self.single else None)

    @cached_property
    def _double(self) -> Array | None:
        """Features of single precision in double, for products with vectors; None where they are
        large: then piece by piece."""
        features = self.features
        if not isinstance(features, np.ndarray) or 8 * features.size > COPIED:
            return None
        return features.astype(np.float64)

    def _image(self, v: Array) -> Array:
        """Φᵀv (dual) or Φv of a solution, in double precision. It was `_seen` before its last step,
        whose own image need not be."""
        features, known = self.features, self._seen
        self._seen = None
        if known is not None and isinstance(features, np.ndarray):
            step = v - known[0]
            if float(np.linalg.norm(step)) <= _LAST_STEP * float(np.linalg.norm(v)):
                step = step.astype(features.dtype)
                return np.asarray(known[1] + (features.T @ step if self._dual else features @ step))
        return self._back(v) if self._dual else self._times(v)

    def _times(self, v: Array) -> Array:
        """Φv."""
        features = self._double if self.single else self.features
        return times(self.features, v) if features is None else features @ v

    def _back(self, v: Array) -> Array:
        """Φᵀv."""
        features = self._double if self.single else self.features
        return transposed_times(self.features, v) if features is None else features.T @ v


def _mean_square(x: Array) -> float:
    return _dot(x, x) / x.shape[0]


def _dot(x: Array, y: Array) -> float:
    """xᵀy, summed over columns where there are several outputs."""
    return float(x @ y) if x.ndim == 1 else float(namespace(x).sum(x * y))


def fit_dual(gram: Array, y: Array, ridge: float) -> Readout:
    """The dual coefficients α = (K + mλ)⁻¹y for a kernel matrix K = ΦΦᵀ, which is overwritten.

    Only the lower triangle of K is read.
    """
    return dual_readout(solve_shifted(gram, y, y.shape[0] * ridge), y, ridge)


def dual_readout(alpha: Array, y: Array, ridge: float) -> Readout:
    """The errors of dual coefficients: the residual is mλ·α, without cancellation; ‖a‖² = αᵀKα."""
    m = y.shape[0]
    error = _mean_square(m * ridge * alpha)
    # y'α = (mλ)‖α‖² + α'Kα, so objective = mλ²‖α‖² + λα'Kα = λ·y'α
    return Readout(ridge, alpha, error, ridge * _dot(y, alpha))


def solve_shifted(
    gram: Array, right: Array, shift: float, multiply: Multiply | None = None
) -> Array:
    """(gram + shift)⁻¹·right by Cholesky, for a vector or, in double precision, for columns.

    The matrix is overwritten and only its lower triangle is read. For a matrix of single
    precision `multiply`, v ↦ gram·v, serves to refine the solution.
    """
    xp = namespace(gram)
    shift_diagonal(gram, shift)
    # a feature that is not finite makes its own entry of the diagonal so
    if not xp.all(xp.isfinite(xp.linalg.diagonal(gram))):
        raise ConvergenceError(
            "the features overflowed: a polynomial model of high degree under a large step or "
            "spread. Lower compare.degree, or use the conditional-gaussian model"
        )
    try:
        if multiply is not None:
            return refined(gram, multiply, right, shift)
        solution: Array = positive_solver(gram)(right)
        return solution
    except LinAlgError:
        raise ConvergenceError(
            f"the ridge system is singular to working precision (ridge·m = {shift:.3g}). "
            "Use a larger ridge, 1e-9 of the mean squared feature or more"
        ) from None


class Decomposition:
    """The singular value decomposition of the features, through the smaller Gram matrix."""

    def __init__(self, features: Array, y: Array) -> None:
        xp = namespace(features)
        m, k = features.shape
        if k <= m:
            values, right = xp.linalg.eigh(features.T @ features)
            left, right_t = features @ right, right.T
        else:
            values, left = xp.linalg.eigh(features @ features.T)
            right_t = left.T @ features
        # directions of zero singular value carry nothing; rounding there must not be amplified
        dropped = int(xp.count_nonzero(values <= values[-1] * 1e-14))
        self.values = values[dropped:]
        self._scale = xp.sqrt(self.values)
        self._left, self._right_t = left[:, dropped:], right_t[dropped:, :]
        if k <= m:
            self._left /= self._scale
        else:
            self._right_t /= self._scale[:, None]
        self.y = y
        self._projected = self._left.T @ y

    def fit(self, ridge: float) -> Readout:
        """The minimiser at this ridge: O(mk) operations."""
        shrink = self._shrink(ridge)
        a = self._right_t.T @ _rows(shrink / self._scale, self._projected)
        error = _mean_square(self._residual(shrink))
        return Readout(ridge, a, error, error + ridge * _dot(a, a))

    def leave_one_out(self, ridge: float) -> float:
        """Mean of (r_i/(1 − H_ii))², H = Φ(ΦᵀΦ + mλ)⁻¹Φᵀ: exact, without refitting."""
        shrink = self._shrink(ridge)
        leverage = (self._left**2) @ shrink
        left = namespace(leverage).maximum(1 - leverage, 1e-12)
        residual = self._residual(shrink)
        return _mean_square(residual / (left if residual.ndim == 1 else left[:, None]))

    def _shrink(self, ridge: float) -> Array:
        return self.values / (self.values + self.y.shape[0] * ridge)

    def _residual(self, shrink: Array) -> Array:
        residual: Array = self.y - self._left @ _rows(shrink, self._projected)
        return residual


def _rows(scale: Array, x: Array) -> Array:
    """Rows of x, entries of a vector or rows of a matrix, times the scales."""
    scaled: Array = scale * x if x.ndim == 1 else scale[:, None] * x
    return scaled
