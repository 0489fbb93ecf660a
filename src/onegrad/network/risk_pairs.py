"""Σ_{i≠j} a_ia_j E σ(z_i)σ(z_j) beyond order 1: the part of the risk that needs all pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from onegrad.hermite import Array
from onegrad.network.gram import precision
from onegrad.network.risk_series import ORDERS, Closed, Series, Sum

_TOLERANCE = 1e-5  # of the part of the risk that is known before the pairs
_CLOSED_FROM = 12  # orders; fewer are faster than the inverse sines of the closed forms
_CACHED = 1 << 16  # correlations worked on at once; they should stay in the cache


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
        return not self.series.linear

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
