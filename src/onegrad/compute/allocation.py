"""Memory that a repetition frees and asks for again."""

from __future__ import annotations

import ctypes
from functools import lru_cache

_MMAP_THRESHOLD, _LARGEST = -3, 1 << 25  # bytes: the most that glibc allows
_TRIM_THRESHOLD, _KEPT = -1, 1 << 30


@lru_cache(maxsize=1)
def keep_freed_arrays() -> None:
    """From now on the C library keeps arrays of up to 32 MiB that this process frees.

    Unless told so, glibc gives them back to the system, which clears the memory of every new one:
    5 to 10 % of the processor time of a repetition at n = 1000. Other C libraries go their own way.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)
