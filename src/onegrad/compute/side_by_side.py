"""Work beside the products of large matrices, on as many threads as these have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from onegrad.compute.backend import pieces

_THREADS: ContextVar[int] = ContextVar("threads of products", default=1)


@contextmanager
def threads_are(threads: int) -> Iterator[None]:
    """So many, in the block."""
    token = _THREADS.set(threads)
    try:
        yield
    finally:
        _THREADS.reset(token)


def for_pieces(x: Any, work: Callable[[Any], None]) -> None:
    """`work` on the rows of each of the `pieces` of a matrix, which must not depend on each other,
    on as many threads as products have within `blas_threads`."""
    threads = _THREADS.get() if isinstance(x, np.ndarray) else 1
    every = list(pieces(x))
    if threads == 1 or len(every) < 2 * threads:
        for rows in every:
            work(rows)
        return

    def share(first: int) -> None:
        for rows in every[first::threads]:
            work(rows)

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(share, range(threads)))


def side_by_side(*tasks: Callable[[], Any]) -> None:
    """Every task, on threads of their own where products have several."""
    if _THREADS.get() == 1:
        for task in tasks:
            task()
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(tasks)) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()
