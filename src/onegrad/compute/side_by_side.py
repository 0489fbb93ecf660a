"""Draws between the products of large matrices, on as many threads as these have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


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
