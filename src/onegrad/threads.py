"""How many threads the linear algebra library uses for one problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from onegrad.problem import Problem

# Operations per product below which two threads were measured not to be faster than one (on a
# shared machine, n = m = k up to 1000), at twice the CPU time.
_WORTH_THREADS = 3e9


@contextmanager
def blas_threads(problem: Problem) -> Iterator[None]:
    """One thread for small problems, all of them for large ones."""
    operations = 2.0 * problem.dim * problem.width * problem.samples
    limit = 1 if operations < _WORTH_THREADS else None
    with threadpool_limits(limits=limit, user_api="blas"):
        yield
