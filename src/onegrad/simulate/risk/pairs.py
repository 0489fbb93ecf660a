"""Σ_{i≠j} a_ia_j E σ(z_i)σ(z_j) beyond order 1: the part of the risk that needs all pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onegrad.compute.backend import (
    Array,
    clear_diagonal,
    host,
    like,
    namespace,
    rows_at_once,
)
from onegrad.simulate.risk.series import ORDERS, Closed, Series, Sum

_TOLERANCE = 1e-5  # allowed error, over the part of the risk known before the pairs
_CLOSED_FROM = 12  # orders from which closed forms (inverse sines) are faster than the series
_PLAIN = 8, 10.0  # orders, and variances or their inverses, up to which powers of K will do
_NEGLIGIBLE = 1e-2  # remainders below this share of the tolerance need no bound
_CACHED = 1 << 16  # correlations worked on at once; they should stay in the cache


class PairSum:
    """Σ_{i≠j} a_ia_j Σ_{r≥2} ĉ_riĉ_rj ρ_ij^r for one component, from blocks of ŴŴᵀ (eq. mehler).

    K = ŴŴᵀ + structure·structureᵀ is the covariance of the preactivations; `along`, if given, is
    the k × r root of the part of it that κ makes. The order R is chosen on the first rows so that
    the rest, at most max_i Σ_{j≠i}|ρ_ij|^{R+1} · Σ_i a_i²Σ_{r>R}ĉ_ri² (Schur's test), does not
    count beside `known`, a lower bound of the risk; the same bound over all rows, or the last
    terms if they say less, estimates the error. Where R would be large and a closed form exists,
    that is used. At low orders the scales of ρ_ij = K_ij/√(K_iiK_jj) are those of the vectors, and
    powers of K itself are multiplied with them. Cost: k²(R + 3) elementwise operations and k²R
    multiplications in products with vectors, halved by symmetry, less orders that vanish; memory
    a few arrays of 2¹⁶ entries.
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
        # move to the blocks' device together with the first block
        self._scale: Any = np.divide(1.0, np.sqrt(variance), out=np.zeros(k), where=variance > 0)
        self._structure: Any = _rows(structure)
        self._along: Any = None if along is None else _rows(along)
        self._outer: Any = None  # a_i·ĉ_ri, or the amplitudes of the closed form
        self._scaled: Any = None  # the same for unscaled powers of K
        self._products: Any = None  # Σ_{j>i} kernel_ij·outer_rj
        self._ends: Any = None  # what row sums are taken with: ones, or the scales
        self._plain = False  # whether K is not scaled
        self._closed: Closed | None = None
        self._active = np.zeros(0, bool)  # orders that are not zero by symmetry
        # Row sums of |ρ|^{R+1}; None where the rest is too small to need them
        self._row_sums: Any = None
        self._rest = 0.0  # Σ_i a_i²Σ_{r>R}ĉ_ri²

    @property
    def needed(self) -> bool:
        """Whether there is anything beyond order 1."""
        return not self.series.linear

    def add(self, start: int, gram: Any) -> None:
        """Rows start… of the upper triangle: gram = (ŴŴᵀ)[start:stop, start:]."""
        add_block([[self]], start, gram)

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

    @property
    def order(self) -> int:
        """R; 0 for the closed form."""
        return int(self._outer.shape[0]) - 1

    def _arguments(self, rows: slice, gram: Any) -> tuple[Any, Any]:
        """ρ of these rows with themselves and all later neurons, without the diagonal, or K itself
        if `plain`; where there is κ, the part of ρ that it makes, and the rest."""
        columns = slice(rows.start, None)
        x = self._structure[:, rows].T @ self._structure[:, columns]
        x += gram
        if self._plain:
            return x, None
        x = self._normalised(x, rows, columns)
        if self._along is None:
            return x, None
        near = self._along[:, rows].T @ self._along[:, columns]
        near = self._normalised(near, rows, columns)
        x -= near
        return near, x

    def _normalised(self, block: Any, rows: slice, columns: slice) -> Any:
        block *= self._scale[columns]
        block *= self._scale[rows, None]
        clear_diagonal(block)
        return block if self._closed is None else namespace(block).clip(block, -1, 1)

    def _take(self, r: int, rows: slice, kernel: Any) -> None:
        """Σ_{j>i} kernel_ij·outer_rj of these rows: `kernel` is ρ^r, or K^r, of pairs i < j."""
        self._products[r, rows] = kernel @ self._scaled[r, rows.start :]

    def _end(self, rows: slice, size: Any) -> None:
        """Sums of |ρ|^{R+1} over rows and columns; of `size` = |kernel|, pairs i < j."""
        ends, own = self._ends[rows.start :], self._ends[rows]
        self._row_sums[rows] += own * (size @ ends)
        self._row_sums[rows.start :] += ends * (own @ size)

    def _choose(self, x: Any, largest: Callable[[int], float]) -> None:
        """The order, from the largest row sums of |ρ|^r in the first rows; or the closed form."""
        squares = self.readout**2
        sums = [math.inf, math.inf]
        for most in ORDERS:
            expansion = self.series.upto(most)
            kept = np.cumsum(expansion.coefficients**2 @ squares)
            left = np.maximum(float(squares @ expansion.energy) - kept, 0.0)  # beyond order r
            goal = _TOLERANCE * (self.known + float(left[1]))
            while len(sums) <= most:
                sums.append(1.5 * largest(len(sums)))
                if sums[-1] * left[len(sums) - 2] <= goal:
                    break
            if sums[-1] * left[len(sums) - 2] <= goal:
                break
        order = len(sums) - 2
        closed = self.series.closed
        if closed is not None and order > _CLOSED_FROM:
            self._closed = closed
            self._scale = like(closed.scale, x)
            self._outer = (self.readout * closed.amplitude)[None]
        else:
            self._outer = self.readout * expansion.coefficients[: order + 1]
            self._active = np.abs(self._outer).max(axis=1) > 1e-10 * np.abs(self._outer).max()
            self._rest = float(squares @ expansion.tail(order))

    def _begin(self, x: Any) -> None:
        """The vectors on the device of x, with the scales of ρ in them where powers of K do."""
        (most, ratio), variance = _PLAIN, self._geometry[0]
        alike = bool(np.all((variance <= ratio) & (variance >= 1 / ratio)))
        self._plain = alike and self.order <= most and self._closed is None and self._along is None
        ends, scaled = np.ones(len(self.readout)), self._outer
        if self._plain:
            scale = host(self._scale)
            ends = scale ** (self.order + 1)
            scaled = scaled * scale ** np.arange(self.order + 1)[:, None]
        self._scaled, self._ends = like(scaled, x), like(ends, x)
        self._products = namespace(x).zeros_like(self._scaled)
        # no row of |ρ|^{R+1} has a sum of more than k
        if len(self.readout) * self._rest > _NEGLIGIBLE * _TOLERANCE * self.known:
            self._row_sums = namespace(x).zeros_like(self._ends)

    def result(self) -> Sum:
        """The sum over all rows that were added."""
        if self._outer is None:
            return Sum(0.0, 0.0, 0)
        terms = 2 * np.einsum("ri,ri->r", host(self._scaled), host(self._products))
        value = float(terms.sum())
        # each pair is rounded by itself: the errors add up like the squares of a_i·ĉ_ri
        squares = float(np.sum(self._outer**2))
        rounding = float(np.finfo(self.dtype).eps) * (float(np.abs(terms).sum()) + squares)
        if self._closed is not None:
            return Sum(value, rounding, 0)
        order = self.order
        largest = len(self.readout) if self._row_sums is None else host(self._row_sums).max()
        bound = float(largest) * self._rest
        # terms that decay like r^{−3} or faster add up to less than order/2 times the last
        last = order / 2 * float(np.abs(terms[-3:]).max()) if order > 6 else math.inf
        return Sum(value, min(bound, last) + rounding, order)


def add_block(groups: Sequence[Sequence[PairSum]], start: int, gram: Any) -> None:
    """Rows start… of the upper triangle, gram = (ŴŴᵀ)[start:stop, start:], for groups of sums that
    share their correlations (`shares`): powers of these are taken once for all of a group."""
    for sums in groups:
        _add_group(sums, start, gram)


def _add_group(sums: Sequence[PairSum], start: int, gram: Any) -> None:
    step = min(gram.shape[0], max(16, rows_at_once(gram, _CACHED)))
    _begin([each for each in sums if each._outer is None], start, gram[:step, :])
    series = [each for each in sums if each._closed is None]
    alike = [[each for each in series if each._plain is plain] for plain in (True, False)]
    plans = [(some, _takers(some)) for some in alike if some]
    closed = [each for each in sums if each._closed is not None]
    for i in range(0, gram.shape[0], step):
        piece = gram[i : min(i + step, gram.shape[0]), i:]
        rows = slice(start + i, start + i + piece.shape[0])
        for each in closed:
            assert each._closed is not None
            x, rest = each._arguments(rows, piece)
            each._take(0, rows, _upper(each._closed(x, rest)))
        for some, takers in plans:
            _add_powers(some, takers, rows, piece)


def _begin(sums: Sequence[PairSum], start: int, piece: Any) -> None:
    """With the first rows: orders are chosen and vectors placed."""
    if not sums:
        return
    for each in sums:
        each._place(piece)
    x, rest = sums[0]._arguments(slice(start, start + piece.shape[0]), piece)
    largest = _largest_row_sum(x, rest)
    for each in sums:
        each._choose(x, largest)
        each._begin(x)


def _largest_row_sum(x: Any, rest: Any) -> Callable[[int], float]:
    """r ↦ max_i Σ_j|ρ_ij|^r, r ≥ 2, each computed when it is first asked for."""
    xp, kernels = namespace(x), _kernels(x, rest)
    known: list[float] = []

    def largest(r: int) -> float:
        while len(known) < r - 1:
            known.append(float(xp.max(xp.sum(abs(next(kernels)[1]), axis=1))))
        return known[r - 2]

    return largest


_Takers = dict[int, tuple[list[PairSum], list[PairSum]]]


def _takers(sums: Sequence[PairSum]) -> _Takers:
    """For each power: the sums that have a term of this order, and those whose rest it bounds."""
    takers: _Takers = {}
    for each in sums:
        for r in range(2, each.order + 1):
            if each._active[r]:
                takers.setdefault(r, ([], []))[0].append(each)
        if each._row_sums is not None:
            takers.setdefault(each.order + 1, ([], []))[1].append(each)
    return takers


def _add_powers(sums: Sequence[PairSum], takers: _Takers, rows: slice, piece: Any) -> None:
    if not takers:
        return
    x, rest = sums[0]._arguments(rows, piece)
    kernels = _powers(_upper(x), takers) if rest is None else _kernels(_upper(x), _upper(rest))
    last = max(takers)
    for r, kernel in kernels:
        terms, ends = takers.get(r, ((), ()))
        for each in terms:
            each._take(r, rows, kernel)
        if ends:
            size = kernel if rest is None and r % 2 == 0 else abs(kernel)
            for each in ends:
                each._end(rows, size)
        if r == last:
            break


@lru_cache(maxsize=1)
def _below(side: int) -> np.ndarray:
    return np.tri(side, dtype=bool)


def _upper(block: Any) -> Any:
    """In place: only pairs i < j of a block whose first columns are its rows' own neurons."""
    height = block.shape[0]
    square = block[:, :height]
    if isinstance(block, np.ndarray):
        side = max(256, height)
        np.copyto(square, 0, where=_below(side)[:height, :height])
    else:
        square[...] = namespace(block).triu(square, k=1)
    return block


def _rows(columns: Array) -> Array:
    """The columns as rows, two of them at least: products over a single one leave BLAS and are
    slow, as are those whose right side has to be transposed."""
    missing = max(0, 2 - columns.shape[1])
    return np.ascontiguousarray(np.pad(columns, ((0, 0), (0, missing))).T)


def _powers(x: Any, wanted: Collection[int]) -> Iterator[tuple[int, Any]]:
    """(r, x^r) for these r ≥ 2 in rising order; each is made in the same way whichever others are
    wanted."""
    xp = namespace(x)
    square = even = x * x
    for r in range(2, max(wanted) + 1, 2):
        if r > 2:
            even = even * square
        if r % 8 == 0:  # numbers on their way to underflow count for nothing and are slow
            even[abs(even) < float(xp.finfo(x.dtype).smallest_normal) ** 0.5] = 0
        if r in wanted:
            yield r, even
        if r + 1 in wanted:
            yield r + 1, even * x


def _kernels(x: Any, rest: Any) -> Iterator[tuple[int, Any]]:
    """(r, ρ^r) for r = 2, 3, …; or x^r + r·x^{r−1}·rest. The next one overwrites the last."""
    xp = namespace(x)
    power = kernel = x * x if rest is None else xp.asarray(x, copy=True)
    small = float(xp.finfo(x.dtype).smallest_normal) ** 0.5
    for r in itertools.count(2):
        if rest is not None:
            kernel = rest * r
            kernel += x
            kernel *= power
        yield r, kernel
        power *= x
        if r % 8 == 0:  # numbers on their way to underflow count for nothing and are slow
            power[abs(power) < small] = 0
