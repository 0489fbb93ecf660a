"""Large arrays that are used again once nobody refers to them."""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any

import numpy as np

from onegrad.compute.backend import namespace

LARGEST = 1 << 27  # bytes of an array that is kept; beyond, a new one costs nothing beside the rest
_SMALLEST = 1 << 18  # below, the system's own allocation is as good


class Pool:
    """Hands out arrays, and their memory again when the last view of them is gone.

    The system takes large arrays back when they are freed, and clears new ones: at n = 1000 that
    costs a twentieth of a repetition. A pool lives as long as its owner wants, over many
    repetitions. What is in use is never handed out twice, so its users, on any thread, need not
    agree on anything. It holds no more arrays than were ever in use at once, of at most 128 MiB
    each; NumPy's alone, other libraries have pools of their own.
    """

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """An array with arbitrary entries, for the caller alone."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if not _SMALLEST <= size <= LARGEST:
            return np.empty(shape, dtype)
        with self._lock:
            idle = sorted((kept for kept in self._kept if kept.idle), key=lambda kept: kept.size)
            found = next((kept for kept in idle if kept.size >= size), None)
            if found is None:
                if idle:  # too small, all of them: the largest makes room
                    self._kept.remove(idle[-1])
                del idle
                found = _Kept(size)
                self._kept.append(found)
            return found.lend(math.prod(shape), dtype).reshape(shape)

    def like(self, model: Any) -> Any:
        """An array of the library, device, precision and shape of another one."""
        if isinstance(model, np.ndarray):
            return self.empty(model.shape, model.dtype)
        return namespace(model).empty_like(model)

    def rounded(self, array: np.ndarray, dtype: Any) -> np.ndarray:
        """A copy in another precision."""
        copy = self.empty(array.shape, dtype)
        copy[...] = array
        return copy

    def product(self, left: Any, right: Any) -> Any:
        """left·right, matrices."""
        if not isinstance(left, np.ndarray):
            return left @ right
        return np.matmul(left, right, out=self.empty((left.shape[0], right.shape[1]), left.dtype))


class _Kept:
    """Memory, and who has it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory = memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]
        self._lent: weakref.ref[np.ndarray] | None = None

    @property
    def idle(self) -> bool:
        return self._lent is None or self._lent() is None

    def lend(self, count: int, dtype: np.dtype) -> np.ndarray:
        # over a memoryview, which is no array, so that every view of this array refers to it and
        # it lives as long as they do
        lent = np.frombuffer(self._memory, dtype, count)
        self._lent = weakref.ref(lent)
        return lent
