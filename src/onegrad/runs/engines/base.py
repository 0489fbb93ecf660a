"""What every engine can do, and the one that computes in this process."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, ClassVar, Self

from onegrad.errors import OnegradError
from onegrad.runs.engines.work import Done
from onegrad.runs.schedule import Unit


class EngineError(OnegradError):
    """Workers that cannot be reached or do not come up."""


class Engine(ABC):
    """Jobs go in, futures come out; an `Executor` of somebody else does the work.

    A job is a unit or, where units are short, as many as take `job_seconds` together: twenty times
    and more what it costs to send one.
    """

    job_seconds: ClassVar[float]

    def __init__(self) -> None:
        self._each = math.inf  # seconds per unit, of late

    @property
    def workers(self) -> int:
        """How many units can be computed at the same time."""
        return 1

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many jobs should be under way: all workers busy, and little to lose."""

    def job_size(self, left: int) -> int:
        """Units of the next job, when about `left` are still to come: never a long last one."""
        return max(1, min(int(self.job_seconds / self._each), left // (2 * self.slots), 100))

    def submit(self, units: Sequence[Unit], left: int) -> Future[Done]:
        future = self._submit(units, left)
        future.add_done_callback(lambda done: self._measure(done, len(units)))
        return future

    @abstractmethod
    def _submit(self, units: Sequence[Unit], left: int) -> Future[Done]: ...

    def _measure(self, future: Future[Done], units: int) -> None:
        if not future.cancelled() and future.exception() is None:
            each = max(future.result().seconds / units, 1e-6)
            self._each = each if math.isinf(self._each) else (self._each + each) / 2

    def worker_died(self, error: BaseException) -> bool:
        """Whether a future has this exception because of its worker, not of its unit."""
        return isinstance(error, BrokenExecutor)

    @abstractmethod
    def restart(self) -> None:
        """A worker died and took its executor with it: the next unit needs a new one."""

    @abstractmethod
    def check(self) -> None:
        """Called while nothing arrives: raise EngineError if nothing ever will."""

    @abstractmethod
    def close(self) -> None:
        """End the workers, in the middle of what they do if need be."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Here(Executor):
    """An executor that has computed everything by the time `submit` returns."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
