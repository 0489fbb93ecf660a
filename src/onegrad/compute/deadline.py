"""A limit on the processor time of one answer, checked where tables and solutions are made."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from onegrad.errors import ConvergenceError

SECONDS = 50.0  # budget of one answer; checks are seconds apart, so it ends within a minute


class TooLong(ConvergenceError):
    """An answer would take longer than it may."""


class _Ends(threading.local):
    at = 0.0  # processor time of this thread; 0: no limit
    allowed = 0.0


_ENDS = _Ends()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """`check_time` raises after so much processor time of this thread; an outer limit stays."""
    if _ENDS.at:
        yield
        return
    _ENDS.at, _ENDS.allowed = time.thread_time() + seconds, seconds
    try:
        yield
    finally:
        _ENDS.at = 0.0


def check_time() -> None:
    """Raise TooLong where the limit is over."""
    if _ENDS.at and time.thread_time() > _ENDS.at:
        raise TooLong(
            f"the theory takes more than {_ENDS.allowed:.0f} s of processor time here. Use a "
            "smaller network, fewer spikes or indices, accuracy = 0.03 for a draft, or simulate"
        )
