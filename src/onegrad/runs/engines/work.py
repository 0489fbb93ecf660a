"""What a worker does with a unit, in this process or in one of its own."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from onegrad import __version__
from onegrad.compute.array_pool import Pool
from onegrad.compute.threads import blas_threads
from onegrad.results.rows import Row
from onegrad.runs.schedule import Unit
from onegrad.simulate.models import THEORIES
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Point


@dataclass(frozen=True)
class Failure:
    """A unit that raised something nobody expected: its type and message."""

    error: str


Outcome = list[Row] | Failure


@dataclass(frozen=True)
class Done:
    """What came of the units of a job, one outcome each, and how long it took."""

    outcomes: list[Outcome]
    seconds: float


# A process computes one unit at a time, however many threads its engine gives it: the number of
# BLAS threads is set for the process as a whole.
_one_at_a_time = threading.Lock()


def _begin_anew() -> None:
    """In the child of a fork, whose thread that held the lock does not exist."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def work(points: Sequence[Point], units: Sequence[Unit], pool: Pool | None = None) -> Done:
    with _one_at_a_time:
        start = time.perf_counter()
        pool = pool or Pool()
        outcomes = [_outcome(points, unit, pool) for unit in units]
        return Done(outcomes, time.perf_counter() - start)


def _outcome(points: Sequence[Point], unit: Unit, pool: Pool) -> Outcome:
    """The rows that are wanted of a unit."""
    try:
        return _rows(points, unit, pool)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _rows(points: Sequence[Point], unit: Unit, pool: Pool) -> list[Row]:
    members = [points[i] for i in unit.points]
    if unit.models[0] in THEORIES:
        from onegrad.predict.predict import theory_row  # the theory is loaded where there is one

        with blas_threads(unit.threads):
            return [theory_row(members[0], unit.models[0])]
    rows = run_group(members, unit.models, unit.seed, unit.threads, pool, unit.controlled)
    return [row for row in rows if (row.number, row.model) in unit.cells]


# --- worker processes of our own ------------------------------------------------------------

_PATIENCE = 1.0  # seconds between two looks for the process that started a worker
# Ctrl-C, the request to end and the end of the terminal: each comes to all processes at once.
STOPPING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_packed = b""
_pool = Pool()  # of a worker process, for all its units


def start_worker(packed: bytes, parent: int) -> None:
    """The points come once, not with every unit; signals are the coordinator's business."""
    global _packed
    _packed = packed
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def work_on_started(units: Sequence[Unit]) -> Done:
    return work(_unpacked(_packed), units, _pool)


class WrongVersion(Exception):
    """A worker has another version of onegrad than the coordinator: (theirs, ours)."""


def work_on_packed(packed: bytes, units: Sequence[Unit], version: str = __version__) -> Done:
    """version : of the coordinator; a worker that joins later may have another one"""
    if version != __version__:
        raise WrongVersion(__version__, version)
    return work(_unpacked(packed), units)


def pack(points: tuple[Point, ...]) -> bytes:
    """All points in one piece, so that what they share (data, activations) stays shared."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(points)
    return packed


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> tuple[Point, ...]:
    points: tuple[Point, ...] = pickle.loads(packed)
    return points


def _end_with(parent: int) -> None:
    """A worker whose coordinator was killed ends too, in the middle of whatever it does."""
    while os.getppid() == parent:
        time.sleep(_PATIENCE)
    os._exit(1)


@contextmanager
def children_ignore_ctrl_c() -> Iterator[None]:
    """Processes started inside, by whatever thread, never see Ctrl-C or the end of the terminal,
    from their first moment on.

    The terminal sends it to all of them; only the coordinator is to act on it. In here it does not
    see it either: for a start that happens once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in STOPPING if number != signal.SIGTERM]  # by which dask ends them
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """The same for processes that this thread starts, and no Ctrl-C is lost: it comes at the end,
    or in between where another thread takes it."""
    if not hasattr(signal, "pthread_sigmask"):
        with children_ignore_ctrl_c():
            yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
