"""The rows of a data set, read in blocks: weights, copies, and the split between step and test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from onegrad.compute.backend import Array

_BLOCK_NUMBERS = 1 << 23  # numbers in one block of features: 64 MB


@dataclass(frozen=True)
class Block:
    """Some rows in double precision: inputs, targets (a column each), weights, numbers."""

    x: Array
    y: Array
    weight: Array
    rows: np.ndarray


class Rows:
    """Inputs (an array, memory map or CSR matrix) with targets and weights, in blocks of rows.

    x : m × n, of any numeric type; only a block at a time is made dense, in double precision
    target : the targets of some rows, as an array with one column for each output
    weight : one number ≥ 0 for each row, or None; rows of weight zero are not there at all
    bounds : lower and upper ones of each column, at which blocks are cut

    Rows of `x` that are equal to single precision are copies of one input: what is decided about
    one is decided about all. `copies[i]` numbers the distinct inputs in an order that depends on
    their content and the seed alone, so that any leading part of them is a random sample of the
    inputs, whatever the order of the rows, and a row given twice is the same as a row of weight
    two.
    Memory: 24 bytes a row beside x, and one block.
    """

    def __init__(
        self,
        x: Any,
        target: Callable[[np.ndarray], Array],
        weight: Array | None,
        rng: np.random.Generator,
        width: int,
        block_rows: int | None = None,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        self.x, self.target, self.bounds = x, target, bounds
        self.count, self.dim = x.shape
        self.block_rows = block_rows or rows_in_block(width, self.dim)
        self.weight = np.ones(self.count) if weight is None else np.asarray(weight, float)
        self.present = np.flatnonzero(self.weight > 0)
        self.copies, self.distinct = self._number_inputs(rng)

    @property
    def repeated(self) -> float:
        """How often an input occurs on average, the least weight taken for a single row."""
        if not self.distinct:
            return 0.0
        return float(self.weight.sum() / self.weight[self.present].min() / self.distinct)

    def blocks(self, chosen: np.ndarray | None = None) -> Iterator[Block]:
        """All rows of positive weight, or those among them where `chosen` (a mask) is true."""
        for start in range(0, self.count, self.block_rows):
            part = slice(start, start + self.block_rows)
            here = self.weight[part] > 0
            if chosen is not None:
                here &= chosen[part]
            if not here.any():
                continue
            rows = start + np.flatnonzero(here)
            x = self.x[part] if here.all() else self.x[part][here]
            yield Block(dense(x, self.bounds), self.target(rows), self.weight[rows], rows)

    def numbered(self, begin: int, end: int) -> np.ndarray:
        """A mask of the rows whose input is among the numbers begin … end−1."""
        return (self.copies >= begin) & (self.copies < end)

    def _number_inputs(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        odd = rng.integers(0, 1 << 63, size=self.dim, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        keys = np.zeros(self.count, dtype=np.uint64)
        for start in range(0, self.count, self.block_rows):
            part = slice(start, start + self.block_rows)
            # adding zero turns −0.0 into 0.0
            exact = (np.ascontiguousarray(dense(self.x[part])) + 0.0).view(np.uint64)
            bits = _in_single_precision(exact)
            keys[part] = _mixed((_mixed(bits) * odd).sum(axis=1, dtype=np.uint64))
        copies = np.full(self.count, -1, dtype=np.int64)
        _, number = np.unique(keys[self.present], return_inverse=True)
        copies[self.present] = number
        return copies, int(number.max()) + 1 if len(number) else 0


def dense(x: Any, bounds: tuple[Array, Array] | None = None) -> Array:
    """Some rows as an array of doubles, cut at the bounds."""
    rows: Array = np.asarray(x.toarray() if is_sparse(x) else x, dtype=np.float64)
    return rows if bounds is None else np.clip(rows, *bounds)


def is_sparse(x: Any) -> bool:
    return bool(issparse(x))


def rows_in_block(width: int, dim: int) -> int:
    return max(256, _BLOCK_NUMBERS // max(width, dim))


def _in_single_precision(bits: np.ndarray) -> np.ndarray:
    """The bits of doubles, rounded to the 24 digits of single precision (ties to even) whatever
    their exponent: the same inputs in either precision are numbered alike."""
    kept = np.uint64((1 << 64) - (1 << 29))
    return (bits + np.uint64((1 << 28) - 1) + ((bits >> np.uint64(29)) & np.uint64(1))) & kept


def _mixed(bits: np.ndarray) -> np.ndarray:
    """A bijection of 64-bit numbers without visible structure (shift, multiply, shift)."""
    mixed = bits ^ (bits >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return mixed
