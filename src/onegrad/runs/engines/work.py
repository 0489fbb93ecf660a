"""What a worker does with a unit, in this process or in one of its own."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from onegrad import __version__
from onegrad.compute.threads import blas_threads
from onegrad.errors import quiet
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


def work(points: Sequence[Point], units: Sequence[Unit]) -> Done:
    with _one_at_a_time, quiet():
        start = time.perf_counter()
        outcomes = [_outcome(points, unit) for unit in units]
        return Done(outcomes, time.perf_counter() - start)


def _outcome(points: Sequence[Point], unit: Unit) -> Outcome:
    """The rows that are wanted of a unit."""
    try:
        return _rows(points, unit)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _rows(points: Sequence[Point], unit: Unit) -> list[Row]:
    members = [points[i] for i in unit.points]
    if unit.models[0] in THEORIES:
        from onegrad.predict.predict import theory_row  # the theory is loaded where there is one

        with blas_threads(unit.threads):
            return [theory_row(members[0], unit.models[0])]
    rows = run_group(members, unit.models, unit.seed, unit.threads, unit.controlled)
    return [row for row in rows if (row.number, row.model) in unit.cells]


# --- worker processes of our own ------------------------------------------------------------

_packed = b""


def start_worker(packed: bytes) -> None:
    """The points come once, not with every unit; Ctrl-C is the coordinator's business."""
    global _packed
    _packed = packed
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def work_on_started(units: Sequence[Unit]) -> Done:
    return work(_unpacked(_packed), units)


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
