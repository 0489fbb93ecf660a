"""Σ_{i≠j} a_ia_j E σ(z_i)σ(z_j) beyond order 1: the part of the risk that needs all pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onegrad.compute.backend import Array, clear_diagonal, host, like, namespace, rows_at_once
from onegrad.risk.series import ORDERS, Closed, Series, Sum

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
        dtype: Any = np.float64,
    ) -> None:
        k = len(readout)
        self.series, self.readout, self.known = series, readout, known
        self.dtype = np.dtype(dtype)
        self._geometry = variance, structure
        # these four move to the device of the blocks with the first of them
        self._scale: Any = np.divide(1.0, np.sqrt(variance), out=np.zeros(k), where=variance > 0)
        self._structure: Any = _padded(structure)
        self._along: Any = None if along is None else _padded(along)
        self._outer: Any = None  # a_i·ĉ_ri, or the amplitudes of the closed form
        self._doubled: Any = None
        self._closed: Closed | None = None
        self._active = np.zeros(0, bool)  # orders that are not zero by symmetry
        self._terms = np.zeros(0)
        self._row_sums = np.zeros(k)

    @property
    def needed(self) -> bool:
        """Whether there is anything beyond order 1."""
        return not self.series.linear

    def add(self, start: int, gram: Any) -> None:
        """Rows start… of the upper triangle: gram = (ŴŴᵀ)[start:stop, start:]."""
        add_block([self], start, gram)

    def shares(self, other: PairSum) -> bool:
        """Whether both have the same correlations: models on the same weights, in one component."""
        return (
            self._along is other._along is None
            and self.dtype == other.dtype
            and np.array_equal(self._geometry[0], other._geometry[0])
            and np.array_equal(self._geometry[1], other._geometry[1])
        )

    def _place(self, gram: Any) -> None:
        self._scale = like(self._scale, gram)
        self._structure = like(self._structure, gram)
        self._along = None if self._along is None else like(self._along, gram)

    def _add_term(self, r: int, rows: slice, kernel: Any) -> None:
        """Σ_ij outer_ri kernel_ij outer_rj; of pairs within these rows, which come twice, half."""
        height = rows.stop - rows.start
        term = kernel @ self._doubled[r, rows.start :]
        term -= kernel[:, :height] @ self._outer[r, rows]
        self._terms[r] += float(host(self._outer[r, rows]) @ host(term))

    def _arguments(self, rows: slice, gram: Any) -> tuple[Any, Any]:
        """ρ of these rows with themselves and all later neurons, without the diagonal."""
        columns = slice(rows.start, None)
        x = self._structure[rows, :] @ self._structure[columns, :].T
        x += gram
        x = self._normalised(x, rows, columns)
        if self._along is None:
            return x, None
        near = self._along[rows, :] @ self._along[columns, :].T
        near = self._normalised(near, rows, columns)
        x -= near
        return near, x

    def _normalised(self, block: Any, rows: slice, columns: slice) -> Any:
        block *= self._scale[columns]
        block *= self._scale[rows, None]
        clear_diagonal(block)
        return block if self._closed is None else namespace(block).clip(block, -1, 1)

    def _add_closed(self, rows: slice, piece: Any) -> None:
        assert self._closed is not None
        x, rest = self._arguments(rows, piece)
        self._add_term(0, rows, self._closed(x, rest))

    @property
    def _order(self) -> int:
        return int(self._outer.shape[0]) - 1

    def _take(self, r: int, rows: slice, kernel: Any) -> None:
        """ρ^r of these rows."""
        if r <= self._order and self._active[r]:
            self._add_term(r, rows, kernel)

    def _end(self, rows: slice, sums: tuple[Array, Array]) -> None:
        """Sums of |ρ|^r over rows and columns, for the first r that is left out."""
        self._row_sums[rows] += sums[0]
        self._row_sums[rows.stop :] += sums[1]

    def _choose(self, x: Any, rest: Any) -> None:
        """The order, from the first rows; or the closed form."""
        squares = self.readout**2
        sums = [math.inf, math.inf]  # of |ρ|^r over a row
        xp, kernels = namespace(x), _kernels(x, rest)
        for most in ORDERS:
            expansion = self.series.upto(most)
            kept = np.cumsum(expansion.coefficients**2 @ squares)
            left = np.maximum(float(squares @ expansion.energy) - kept, 0.0)  # beyond order r
            goal = _TOLERANCE * (self.known + float(left[1]))
            while len(sums) <= most:
                sums.append(1.5 * float(xp.max(xp.sum(abs(next(kernels)), axis=1))))
                if sums[-1] * left[len(sums) - 2] <= goal:
                    break
            if sums[-1] * left[len(sums) - 2] <= goal:
                break
        order = len(sums) - 2
        closed = self.series.closed
        if closed is not None and order > _CLOSED_FROM:
            self._closed = closed
            self._scale = like(closed.scale, x)
            outer = (self.readout * closed.amplitude)[None]
        else:
            outer = self.readout * expansion.coefficients[: order + 1]
            self._active = np.abs(outer).max(axis=1) > 1e-10 * np.abs(outer).max()
        self._outer = like(outer, x)
        self._doubled = 2 * self._outer
        self._terms = np.zeros(len(outer))

    def result(self) -> Sum:
        """The sum over all rows that were added."""
        value = float(self._terms.sum())
        # each pair is rounded by itself: the errors add up like the squares of a_i·ĉ_ri
        squares = 0.0 if self._outer is None else float(np.sum(host(self._outer) ** 2))
        rounding = float(np.finfo(self.dtype).eps) * (float(np.abs(self._terms).sum()) + squares)
        if self._closed is not None or self._outer is None:
            return Sum(value, rounding, 0)
        order = len(self._terms) - 1
        tail = self.series.upto(order).tail(order)
        bound = float(self._row_sums.max() * (self.readout**2 @ tail))
        # terms that decay like r^{−3} or faster add up to less than order/2 times the last
        last = order / 2 * float(np.abs(self._terms[-3:]).max()) if order > 6 else math.inf
        return Sum(value, min(bound, last) + rounding, order)


def add_block(sums: Sequence[PairSum], start: int, gram: Any) -> None:
    """Rows start… of the upper triangle for sums that share their correlations (`shares`): powers
    of these are taken once for all; gram = (ŴŴᵀ)[start:stop, start:]."""
    step = max(16, rows_at_once(gram, _CACHED))
    for i in range(0, gram.shape[0], step):
        piece = gram[i : min(i + step, gram.shape[0]), i:]
        rows = slice(start + i, start + i + piece.shape[0])
        new = [each for each in sums if each._outer is None]
        for each in new:
            each._place(gram)
        lead = next((each for each in sums if each._closed is None), None)
        x, rest = (None, None) if lead is None else lead._arguments(rows, piece)
        for each in new:
            each._choose(x, rest)
        for each in sums:
            if each._closed is not None:
                each._add_closed(rows, piece)
        series = [each for each in sums if each._closed is None]
        kernels = _kernels(x, rest) if series else iter(())
        for r, kernel in enumerate(kernels, start=2):
            for each in series:
                each._take(r, rows, kernel)
            ends = [each for each in series if each._order + 1 == r]
            if ends:
                found = _absolute_sums(kernel if rest is None and r % 2 == 0 else abs(kernel))
                for each in ends:
                    each._end(rows, found)
                if r > max(each._order for each in series):
                    break


def _absolute_sums(last: Any) -> tuple[Array, Array]:
    """Of a block without negative entries over each row, and over the columns beyond the square."""
    ones, height = namespace(last).ones_like(last[0, :]), last.shape[0]
    return host(last @ ones), host(ones[:height] @ last[:, height:])


def _padded(columns: Array) -> Array:
    """With two columns at least: products over a single one leave BLAS and are slow."""
    missing = max(0, 2 - columns.shape[1])
    return np.pad(columns, ((0, 0), (0, missing)))


def _kernels(x: Any, rest: Any) -> Iterator[Any]:
    """ρ^r for r = 2, 3, …; or x^r + r·x^{r−1}·rest. The next one overwrites the last."""
    xp = namespace(x)
    power = kernel = x * x if rest is None else xp.asarray(x, copy=True)
    small = float(xp.finfo(x.dtype).smallest_normal) ** 0.5
    for r in itertools.count(2):
        if rest is not None:
            kernel = rest * r
            kernel += x
            kernel *= power
        yield kernel
        power *= x
        if r % 8 == 0:  # numbers on their way to underflow count for nothing and are slow
            power[abs(power) < small] = 0
