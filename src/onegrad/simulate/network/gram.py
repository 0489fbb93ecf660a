"""ŴŴᵀ in row blocks, computed once for all models and components that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onegrad.compute.backend import Array, host, like, lower_gram, namespace, read_only

_ROWS = 256
_WHOLE = 1 << 26  # bytes up to which a product is computed at once, not by blocks
_SINGLE_FROM = 512  # neurons from which single precision is faster
KEEP = 1 << 30  # bytes of products that are kept; more is computed again for each model


class Grams:
    """The products of weight matrices with themselves, upper triangle by blocks of rows.

    Block (start, stop) holds (ŴŴᵀ)[start:stop, start:]. Cost: k²n operations in all, half of a
    general product; in single precision from 512 neurons on, where only terms of second order in
    the correlations are taken from it (their rounding, 1e-7 of themselves, is far below any
    sampling error). Memory while the trial lives: `gram_bytes`, at most 1 GiB; beyond that one
    block at a time.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Array, np.dtype, list[Any]]] = []
        self._products: tuple[Array, Array, Array, Array] | None = None

    def products(self, weights: Array, columns: Array) -> tuple[Array, Array]:
        """Ŵ·columns and |ŵ_i|² as NumPy arrays; the last ones are kept for the next model."""
        if self._products is not None:
            known, of, product, norms = self._products
            if known is weights and np.array_equal(of, columns):
                return product, norms
        product = host(weights @ like(columns, weights))
        norms = host(namespace(weights).vecdot(weights, weights))
        self._products = weights, columns, product, norms
        return product, norms

    def blocks(self, weights: Array, dtype: np.dtype | None = None) -> Iterator[tuple[int, Any]]:
        """(start, block) for each block of rows; the caller must not change the blocks."""
        k = weights.shape[0]
        dtype = np.dtype(dtype or precision(weights))
        for known, kind, blocks in self._known:
            if known is weights and kind == dtype:
                yield from zip(range(0, k, _ROWS), blocks, strict=True)
                return
        w = _rounded(weights, dtype)
        if isinstance(w, np.ndarray) and k * k * dtype.itemsize <= _WHOLE:
            # one symmetric product; of the lower triangle only what is in the blocks is filled in
            whole = lower_gram(w, True, np.empty((k, k), dtype)).T
            below = np.tri(_ROWS, k=-1, dtype=bool)
            for start in range(0, k, _ROWS):
                square = whole[start : start + _ROWS, start : start + _ROWS]
                side = len(square)
                np.copyto(square, square.T, where=below[:side, :side])
            made = [read_only(whole[start : start + _ROWS, start:]) for start in range(0, k, _ROWS)]
            self._known.append((weights, dtype, made))
            yield from zip(range(0, k, _ROWS), made, strict=True)
            return
        keep = k * (k + _ROWS) // 2 * dtype.itemsize <= KEEP
        made = []
        for start in range(0, k, _ROWS):
            part = w[start : min(start + _ROWS, k), :]
            block = read_only(part @ w[start:, :].T)
            if keep:
                made.append(block)
            yield start, block
        if keep:
            self._known.append((weights, dtype, made))


def _rounded(weights: Array, dtype: np.dtype) -> Any:
    xp = namespace(weights)
    return xp.astype(weights, getattr(xp, dtype.name), copy=False)


def gram_bytes(neurons: int) -> int:
    """Memory of ŴŴᵀ in single precision: 4k² where it is made in one go, up to 64 MiB; else 2k² in
    blocks, of which one at a time is held where all are more than 1 GiB."""
    whole = 4 * neurons**2
    kept = neurons * (neurons + _ROWS) // 2 * 4
    return whole if whole <= _WHOLE else kept if kept <= KEEP else 4 * _ROWS * neurons


def precision(weights: Array) -> np.dtype:
    """The precision in which second-order terms of these neurons are summed."""
    neurons = weights.shape[0]
    rounded = isinstance(weights, np.ndarray) and weights.dtype == np.float32
    single = neurons >= _SINGLE_FROM or (rounded and neurons >= _SINGLE_FROM // 2)
    return np.dtype(np.float32 if single else np.float64)
