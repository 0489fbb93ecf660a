"""Work between the products of large matrices, on as many threads as these have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import pieces


class _Threads(NamedTuple):
    number: int
    alone: Callable[[], AbstractContextManager[Any]] | None


_ONE = _Threads(1, None)
_THREADS: ContextVar[_Threads] = ContextVar("threads of products", default=_ONE)


@contextmanager
def threads_are(count: int, alone: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """So many, in the block; in blocks of `alone()` the linear algebra library has one: its own
    threads wait actively for their next product and would take the cores from ours."""
    token = _THREADS.set(_Threads(count, alone))
    try:
        yield
    finally:
        _THREADS.reset(token)


def several_threads() -> bool:
    """Whether `side_by_side` is more than one after the other here."""
    return _THREADS.get().number > 1


def side_by_side(*tasks: Callable[[], Any]) -> list[Any]:
    """What every task gives, the first on this thread and the others on threads of their own where
    products have several; there no task sees more than one thread."""
    threads = _THREADS.get()
    if threads.number == 1 or threads.alone is None or len(tasks) < 2:
        return [task() for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    with threads.alone(), ThreadPoolExecutor(len(tasks) - 1) as pool:
        begun = [pool.submit(task) for task in tasks[1:]]
        token = _THREADS.set(_ONE)
        try:
            first = tasks[0]()
        finally:
            _THREADS.reset(token)
        return [first, *(task.result() for task in begun)]


def for_each(items: Sequence[Any], work: Callable[[Any], None]) -> None:
    """`work` on items that do not depend on each other; each thread takes the next one."""
    left = deque(items)

    def share() -> None:
        while left:
            try:
                item = left.popleft()
            except IndexError:  # another thread was faster
                return
            work(item)

    side_by_side(*[share] * max(1, min(_THREADS.get().number, len(items))))


def sum_of_shares(items: Sequence[Any], work: Callable[[Sequence[Any]], Any]) -> Any:
    """Σ `work(share)` over shares of the items, neighbours together, one for each thread: the order
    of the sum follows from the number of threads alone, not from who is faster."""
    number = max(1, min(_THREADS.get().number, len(items)))
    ends = [len(items) * i // number for i in range(number + 1)]
    total, *others = side_by_side(*(partial(work, items[a:b]) for a, b in pairwise(ends)))
    for other in others:
        total += other
    return total


def for_pieces(x: Any, work: Callable[[Any], None], threads: bool = True) -> None:
    """`work` on the rows of each of the `pieces` of a matrix, side by side where it is NumPy's and
    threads are no harm: a user's function may want one."""
    if threads and isinstance(x, np.ndarray):
        for_each(list(pieces(x)), work)
        return
    for rows in pieces(x):
        work(rows)
