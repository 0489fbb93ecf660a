"""How many threads the linear algebra library uses for one problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from onegrad.problem import Problem

# Below this many operations per product the cost of waking threads exceeds their gain.
_WORTH_THREADS = 5e8


@contextmanager
def blas_threads(problem: Problem) -> Iterator[None]:
    """One thread for small problems, all of them for large ones."""
    operations = 2.0 * problem.dim * problem.width * problem.samples
    limit = 1 if operations < _WORTH_THREADS else None
    with threadpool_limits(limits=limit, user_api="blas"):
        yield
