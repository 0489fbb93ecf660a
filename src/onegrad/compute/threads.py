"""How many threads one problem has: for products, and for draws between them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

from onegrad.compute.backend import NUMPY, Backend

# Operations per product from which one repetition takes seconds (n = m = k = 2500). Below, many
# repetitions at once on one thread each are faster than one after the other on all threads.
_WORTH_THREADS = 3e10
_BRING_THEIR_OWN = ("numpy", "scipy.linalg", "torch")  # linear algebra libraries


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_for(operations: float) -> int:
    """One for small problems, all that the library has in this process for large ones.

    operations : operations of the largest product, 2·n·k·m

    The last bits of a product depend on the number of threads, so it follows from the problem's
    size alone: never from the engine or from the number of workers.
    """
    if operations < _WORTH_THREADS:
        return 1
    libraries = _controller(_loaded()).select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


@contextmanager
def blas_threads(threads: int, backend: Backend = NUMPY) -> Iterator[None]:
    """So many threads; torch on the CPU has its own, which are limited in the same way."""
    limit = _controller(_loaded()).limit
    with (
        limit(limits=threads, user_api="blas"),
        threads_are(threads, lambda: limit(limits=1, user_api="blas")),
    ):
        if backend.device != "torch":
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _loaded() -> tuple[bool, ...]:
    return tuple(name in sys.modules for name in _BRING_THEIR_OWN)


@lru_cache(maxsize=1)
def _controller(loaded: tuple[bool, ...]) -> ThreadpoolController:
    """Looking for the libraries takes 2 ms, so it is done once for those that are `loaded`."""
    return ThreadpoolController()


# --- draws side by side -----------------------------------------------------------------------


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
