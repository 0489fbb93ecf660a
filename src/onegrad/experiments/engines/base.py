"""What every engine can do, and the one that computes in this process."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from concurrent.futures import BrokenExecutor, Executor, Future
from types import TracebackType
from typing import Any, Self

from onegrad.errors import OnegradError
from onegrad.experiments.engines.work import Outcome
from onegrad.experiments.schedule import Unit


class EngineError(OnegradError):
    """Workers that cannot be reached or do not come up."""


class Engine(ABC):
    """Units go in, futures come out; an `Executor` of somebody else does the work.

    `slots` is how many units should be under way at once: enough to keep every worker busy, few
    enough that little is lost.
    """

    @property
    @abstractmethod
    def slots(self) -> int: ...

    @abstractmethod
    def submit(self, unit: Unit, left: int) -> Future[Outcome]:
        """left : an estimate of the units still to come after this one"""

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
    def close(self, at_once: bool = False) -> None:
        """End the workers; `at_once`: in the middle of what they do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close(at_once=kind is not None)


class Here(Executor):
    """An executor that has computed everything by the time `submit` returns."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
