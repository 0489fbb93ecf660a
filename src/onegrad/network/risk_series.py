"""Second and higher orders of E[Σ_i a_iσ(z_i)]²: what orders 0 and 1 of Mehler's series leave.

For jointly Gaussian z of means s, variances q and correlations ρ,
E σ(z_i)σ(z_j) = Σ_r ĉ_r(s_i, q_i)ĉ_r(s_j, q_j)ρ_ij^r, exact also for s ≠ 0 (`Expansion`). Orders 0
and 1 need no k × k matrix and the diagonal is exact, so only Σ_{i≠j} Σ_{r≥2} is left here. Where
the features are Gaussian given some projections κ of x (conditional Gaussian model), ρ^r is
replaced by its first-order expansion around the part ρ^κ of the correlation that κ makes:
(ρ^κ)^r + r(ρ^κ)^{r−1}(ρ − ρ^κ).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from onegrad.activation import Activation
from onegrad.hermite import Array, gaussian_mean
from onegrad.network.gram import precision
from onegrad.pair_moments import ERF, RELU, Expansion, expand

ORDERS = (16, 40, 120, 240)  # to which an expansion is taken, one after the other, while it must
_TOLERANCE = 1e-5  # of the part of the risk that is known before the pairs
_CLOSED_FROM = 12  # orders; fewer are faster than the inverse sines of the closed forms
_CACHED = 1 << 16  # correlations worked on at once; they should stay in the cache


class Sum(NamedTuple):
    """A sum, an estimate of its error, and how it was computed (order 0: in closed form)."""

    value: float
    error: float
    order: int


class Series:
    """The expansion of σ(s_i + b_iZ), taken to higher order on demand."""

    def __init__(self, activation: Activation, shift: Array, scale: Array) -> None:
        self.activation, self.shift, self.scale = activation, shift, scale
        self._expansion: Expansion | None = None

    def upto(self, order: int) -> Expansion:
        """To `order` at least."""
        if self._expansion is None or self._expansion.order < order:
            order = max(order, ORDERS[0])
            self._expansion = expand(self.activation, self.shift, self.scale, order)
        return self._expansion

    @property
    def closed(self) -> Closed | None:
        """The sum over all orders r ≥ 2, where it has a name: centred relu and erf."""
        if np.any(self.shift):
            return None
        b = self.scale
        if self.activation.function is RELU.function:
            inverse = np.divide(1.0, b, out=np.zeros_like(b), where=b > 0)
            return Closed(inverse, b / math.sqrt(2 * math.pi), _relu_beyond, _relu_slope)
        if self.activation.function is ERF.function:
            root = np.sqrt(2 / (1 + 2 * b**2))
            return Closed(root, np.full_like(b, math.sqrt(2 / math.pi)), _erf_beyond, _erf_slope)
        return None


@dataclass(frozen=True)
class Closed:
    """Σ_{r≥2} of the series is amplitude_i·amplitude_j·beyond(K_ij·scale_i·scale_j)."""

    scale: Array
    amplitude: Array
    beyond: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]

    def __call__(self, x: np.ndarray, rest: np.ndarray | None) -> np.ndarray:
        value = self.beyond(x)
        if rest is not None:
            value += self.slope(x) * rest
        return value


def _relu_beyond(x: np.ndarray) -> np.ndarray:
    """√(1−x²) + x·asin x − 1  [cho2009]."""
    value = np.arcsin(x)
    value *= x
    root = x * x
    np.subtract(1, root, out=root)
    np.sqrt(root, out=root)
    root -= 1
    value += root
    return value


def _relu_slope(x: np.ndarray) -> np.ndarray:
    return np.arcsin(x)


def _erf_beyond(x: np.ndarray) -> np.ndarray:
    """asin x − x  [williams1998]."""
    value = np.arcsin(x)
    value -= x
    return value


def _erf_slope(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / np.sqrt(1 - x * x) - 1)


class PairSum:
    """Σ_{i≠j} a_ia_j Σ_{r≥2} ĉ_riĉ_rj ρ_ij^r for one component, from blocks of ŴŴᵀ.

    K = ŴŴᵀ + structure·structureᵀ is the covariance of the preactivations; `along`, if given, is
    the k × r root of the part of it that κ makes. The order R is chosen on the first rows so that
    the rest, at most max_i Σ_{j≠i}|ρ_ij|^{R+1} · Σ_i a_i²Σ_{r>R}ĉ_ri² (Schur's test), does not
    count beside `known`, a lower bound of the risk; the same bound over all rows, or the last
    terms if they say less, estimates the error. Where R would be large and a closed form exists,
    that is used. Cost: k²(R + 5) elementwise operations and k²R multiplications in products with
    vectors, halved by symmetry; memory a few arrays of 2¹⁶ entries.
    """

    def __init__(
        self,
        series: Series,
        readout: Array,
        variance: Array,
        structure: Array,
        along: Array | None,
        known: float,
        dtype: np.dtype | None = None,
    ) -> None:
        k = len(readout)
        self.series, self.readout, self.known = series, readout, known
        self.dtype = dtype = np.dtype(dtype or precision(k))
        scale = np.divide(1.0, np.sqrt(variance), out=np.zeros(k), where=variance > 0)
        self._scale = scale.astype(dtype)
        self._structure = _padded(structure, dtype)
        self._along = None if along is None else _padded(along, dtype)
        self._closed: Closed | None = None
        self._outer = np.zeros((0, k), dtype)  # a_i·ĉ_ri, or the amplitudes of the closed form
        self._active = np.zeros(0, bool)  # orders that are not zero by symmetry
        self._terms = np.zeros(0)
        self._row_sums = np.zeros(k)

    @property
    def needed(self) -> bool:
        """Whether there is anything beyond order 1."""
        expansion = self.series.upto(1)
        beyond, all_of_it = self.readout**2 @ np.stack([expansion.tail(1), expansion.energy], 1)
        return bool(beyond > 1e-13 * all_of_it)

    def add(self, start: int, gram: np.ndarray) -> None:
        """Rows start… of the upper triangle: gram = (ŴŴᵀ)[start:stop, start:]."""
        step = max(16, _CACHED // gram.shape[1])
        for i in range(0, len(gram), step):
            piece = gram[i : i + step, i:]
            rows = slice(start + i, start + i + len(piece))
            if not len(self._outer):
                self._choose(*self._arguments(rows, piece))
            x, rest = self._arguments(rows, piece)
            right = 2 * self._outer[:, rows.start :]
            right[:, : len(x)] /= 2
            if self._closed is not None:
                term = self._closed(x, rest) @ right[0]
                self._terms[0] += float(self._outer[0, rows].astype(float) @ term)
            else:
                self._add_series(rows, x, rest, right)

    def _arguments(self, rows: slice, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """ρ of these rows with themselves and all later neurons, without the diagonal."""
        columns = slice(rows.start, None)
        x = self._structure[rows] @ self._structure[columns].T
        x += gram
        self._normalise(x, rows, columns)
        if self._along is None:
            return x, None
        near = self._along[rows] @ self._along[columns].T
        self._normalise(near, rows, columns)
        x -= near
        return near, x

    def _normalise(self, block: np.ndarray, rows: slice, columns: slice) -> None:
        block *= self._scale[columns]
        block *= self._scale[rows, None]
        block.flat[:: block.shape[1] + 1] = 0
        if self._closed is not None:
            np.clip(block, -1, 1, out=block)

    def _add_series(
        self, rows: slice, x: np.ndarray, rest: np.ndarray | None, right: np.ndarray
    ) -> None:
        order, kernels = len(self._outer) - 1, _kernels(x, rest)
        for r in range(2, order + 1):
            kernel = next(kernels)
            if self._active[r]:
                term = kernel @ right[r]
                self._terms[r] += float(self._outer[r, rows].astype(float) @ term)
        last = np.abs(next(kernels))
        self._row_sums[rows] += last @ np.ones(last.shape[1], last.dtype)
        self._row_sums[rows.stop :] += np.ones(len(x), last.dtype) @ last[:, len(x) :]

    def _choose(self, x: np.ndarray, rest: np.ndarray | None) -> None:
        """The order, from the first rows; or the closed form."""
        squares = self.readout**2
        sums = [math.inf, math.inf]  # of |ρ|^r over a row
        kernels = _kernels(x, rest)
        for most in ORDERS:
            expansion = self.series.upto(most)
            kept = np.cumsum(expansion.coefficients**2 @ squares)
            left = np.maximum(float(squares @ expansion.energy) - kept, 0.0)  # beyond order r
            goal = _TOLERANCE * (self.known + float(left[1]))
            while len(sums) <= most:
                sums.append(1.5 * float(np.abs(next(kernels)).sum(axis=1).max()))
                if sums[-1] * left[len(sums) - 2] <= goal:
                    break
            if sums[-1] * left[len(sums) - 2] <= goal:
                break
        order = len(sums) - 2
        closed = self.series.closed
        if closed is not None and order > _CLOSED_FROM:
            self._closed = closed
            self._scale = closed.scale.astype(self.dtype)
            self._outer = (self.readout * closed.amplitude)[None].astype(self.dtype)
        else:
            outer = self.readout * expansion.coefficients[: order + 1]
            self._outer = outer.astype(self.dtype)
            self._active = np.abs(outer).max(axis=1) > 1e-10 * np.abs(outer).max()
        self._terms = np.zeros(len(self._outer))

    def result(self) -> Sum:
        """The sum over all rows that were added."""
        value = float(self._terms.sum())
        # each pair is rounded by itself: the errors add up like the squares of a_i·ĉ_ri
        squares = float(np.sum(self._outer.astype(float) ** 2))
        rounding = float(np.finfo(self.dtype).eps) * (float(np.abs(self._terms).sum()) + squares)
        if self._closed is not None or not len(self._outer):
            return Sum(value, rounding, 0)
        order = len(self._terms) - 1
        tail = self.series.upto(order).tail(order)
        bound = float(self._row_sums.max() * (self.readout**2 @ tail))
        # terms that decay like r^{−3} or faster add up to less than order/2 times the last
        last = order / 2 * float(np.abs(self._terms[-3:]).max()) if order > 6 else math.inf
        return Sum(value, min(bound, last) + rounding, order)


def _padded(columns: Array, dtype: np.dtype) -> np.ndarray:
    """With two columns at least: products over a single one leave BLAS and are slow."""
    missing = max(0, 2 - columns.shape[1])
    return np.pad(columns, ((0, 0), (0, missing))).astype(dtype)


def _kernels(x: np.ndarray, rest: np.ndarray | None) -> Iterator[np.ndarray]:
    """ρ^r for r = 2, 3, …; or x^r + r·x^{r−1}·rest. The next one overwrites the last."""
    if rest is None:
        power = kernel = x * x
    else:
        power, kernel = x.copy(), np.empty_like(x)
    small = np.finfo(x.dtype).tiny ** 0.5
    for r in itertools.count(2):
        if rest is not None:
            np.multiply(rest, r, out=kernel)
            kernel += x
            kernel *= power
        yield kernel
        power *= x
        if r % 8 == 0:  # numbers on their way to underflow count for nothing and are slow
            power[np.abs(power) < small] = 0


def cross_sum(
    single: Series, many: Series, factors: Array, x: Array, rest: Array | None, goal: float
) -> Sum:
    """Σ_i factors_i·E g(t)σ(z_i) beyond order 1, for one g(t) (the label, say) and k neurons.

    x are the correlations of t with the z_i, or their part through κ, and `rest` the remainder.
    Closed forms where both functions are relu, or both erf; else the series, taken to the order
    whose tail is below `goal`; the neurons for which no order is enough are integrated over t.
    """
    one, other = single.closed, many.closed
    if one is not None and other is not None and one.beyond is other.beyond:
        # the closed forms take K·scale_i·scale_j; x is K/(b_t·b_i)
        stretch = one.scale * single.scale * other.scale * many.scale
        far = None if rest is None else rest * stretch
        beyond = one(np.clip(x * stretch, -1, 1), far) * one.amplitude * other.amplitude
        return Sum(float(factors @ beyond), 0.0, 0)
    if min(np.max(s.upto(1).tail(1) / s.upto(1).energy.max()) for s in (single, many)) < 1e-14:
        return Sum(0.0, 0.0, 0)  # one of them is linear
    for most in (2, 3, 4, 6, 8, 12, *ORDERS):
        left, right = single.upto(most), many.upto(most)
        bound = np.abs(x) ** (most + 1)
        if rest is not None:
            bound += (most + 1) * np.abs(x) ** most * np.abs(rest)
        bound *= np.sqrt(left.tail(most) * right.tail(most)) * np.abs(factors)
        if bound.sum() <= goal:
            break
    r = np.arange(2, most + 1)[:, None]
    powers = x ** (r - 1)
    kernel = powers * x if rest is None else powers * (x + r * rest)
    beyond = np.sum(left.coefficients[2 : most + 1] * right.coefficients[2 : most + 1] * kernel, 0)
    error = float(bound.sum())
    rough = np.flatnonzero(bound > goal / len(bound))
    if error > goal and rest is None:
        exact, off = _integrated(single, many, x, rough)
        beyond[rough] = exact - sum(
            left.coefficients[j] * right.coefficients[j, rough] * x[rough] ** j for j in (0, 1)
        )
        bound[rough] = off * np.abs(factors[rough])
        error = float(bound.sum())
    return Sum(float(factors @ beyond), error, most)


def _integrated(single: Series, many: Series, x: Array, which: np.ndarray) -> tuple[Array, Array]:
    """E g(s + bU)σ(s_i + b_iV), corr(U, V) = x_i, by panels over U split at the kinks of g."""
    g, s, b = single.activation, float(single.shift[0]), float(single.scale[0])
    shift, scale, x = many.shift[which], many.scale[which], x[which]
    inner = sorted((kink - s) / b for kink in g.kinks) if b > 0 else []
    edges = np.array([-9.0, *(e for e in inner if abs(e) < 9), 9.0])
    unit, unit_weights = roots_legendre(16)
    previous = np.full(len(which), np.inf)
    off = previous
    for panels in (2, 4, 8, 16, 32, 64):
        fine = np.unique(
            np.concatenate([np.linspace(*ends, panels + 1) for ends in itertools.pairwise(edges)])
        )
        half = np.diff(fine) / 2
        u = ((fine[:-1] + half)[:, None] + half[:, None] * unit).ravel()
        w = (half[:, None] * unit_weights).ravel() * np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi)
        current = _given(many.activation, shift, scale, x, u) @ (w * g(s + b * u))
        off = np.abs(current - previous)
        previous = current
        if off.max() <= 1e-10 * (1 + np.abs(current).max()):
            break
    return previous, off


def _given(activation: Activation, shift: Array, scale: Array, x: Array, u: Array) -> Array:
    """E[σ(s_i + b_iV) | U = u], one row for each neuron."""
    mean = shift[:, None] + (scale * x)[:, None] * u
    deviation = np.broadcast_to((scale * np.sqrt(np.maximum(1 - x**2, 0)))[:, None], mean.shape)
    if activation.moments is not None:
        return activation.smoothed(mean, deviation).value
    return gaussian_mean(activation.__call__, mean, deviation, activation.kinks)
