"""How far a run is: one line on a terminal, in a notebook, or now and then in a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from onegrad.runs.coordinator import Progress, Status
from onegrad.spec.experiment import Experiment
from onegrad.text.display import settings_text

_OFTEN = 0.1  # seconds between two states of the line on a terminal or in a notebook
_RARELY = 5.0  # in a pipe, where lines stay
_BAR = (8, 20)  # shortest and longest


@contextmanager
def progress_line(experiment: Experiment) -> Iterator[Progress]:
    """Rows done, rate, time left, and the estimate at the point that was last worked on."""
    write, clear, pause = _notebook() or _terminal() or (_print, lambda: None, _RARELY)
    start = shown = time.monotonic()
    now = ""

    def show(status: Status) -> None:
        nonlocal shown, now
        now = now if status.point is None else where(experiment, status)
        at = time.monotonic()
        if at - shown < pause or not status.total:
            return
        shown = at
        write(lambda width: line(experiment.name, status, at - start, now, width))

    try:
        yield show
    finally:
        clear()


Writer = Callable[[Callable[[int], str]], None]
Way = tuple[Writer, Callable[[], None], float]


def _print(text: Callable[[int], str]) -> None:
    print(text(100), file=sys.stderr, flush=True)


def _terminal() -> Way | None:
    """A line that is written over; None where standard error is no terminal that can do it."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def write(text: Callable[[int], str]) -> None:
        sys.stderr.write("\r\x1b[2K" + text(terminal_width()))
        sys.stderr.flush()

    def clear() -> None:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()

    return write, clear, _OFTEN


def terminal_width() -> int:
    """Columns of the terminal behind standard error, one left free for its cursor."""
    try:
        return int(os.environ["COLUMNS"]) - 1
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns - 1
    except (OSError, ValueError):
        return 79


def _notebook() -> Way | None:
    """A cell's output that is replaced; None outside of a notebook."""
    shell: Any = sys.modules.get("IPython")
    kernel = shell and shell.get_ipython()
    if kernel is None or not hasattr(kernel, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)

    def write(text: Callable[[int], str]) -> None:
        handle.update(HTML(f"<pre>{escape(text(100))}</pre>"))

    return write, lambda: handle.update(HTML("")), 3 * _OFTEN


# --- the line -----------------------------------------------------------------------------


def line(name: str, status: Status, seconds: float, now: str, width: int) -> str:
    """What fits into the width: count and time left always, then the bar, the name, the rest.

    >>> status = Status(30, 90, 20, 0, [], None, None)
    >>> line("impact of width", status, 10.0, "", 40)
    '━━━━━────────────  30/90 rows, 0:30 left'
    """
    count = f"{status.done}/{status.total} rows"
    left, rate = time_left(status, seconds), rate_of(status, seconds)
    failed = f", {status.failed} failed" if status.failed else ""
    short = f"{count}{', ' + left if left else ''}{failed}"
    full = f"{count}{', ' + rate if rate else ''}{', ' + left if left else ''}{failed}"
    shortest, longest = _BAR
    parts = [short]
    room = width - len(short) - 2
    if room >= shortest:
        parts = [_bar(status, min(longest, room)), short]
    title = name if len(name) <= 30 else f"{name[:29]}…"
    for first, words, last in (
        (title, short, ""), (title, full, ""), (title, full, now[: max(0, width // 2)])
    ):  # fmt: skip
        rest = [first, words, *([last] if last else [])]
        room = width - sum(map(len, rest)) - 2 * len(rest)
        if room >= shortest:
            parts = [first, _bar(status, min(longest, room)), *rest[1:]]
    return "  ".join(parts)[:width]


def _bar(status: Status, length: int) -> str:
    done = min(length, length * status.done // status.total)
    return "━" * done + "─" * (length - done)


def rate_of(status: Status, seconds: float) -> str:
    """Rows per second of this run; empty before the first."""
    return f"{status.computed / seconds:.2g}/s" if status.computed and seconds > 0 else ""


def time_left(status: Status, seconds: float) -> str:
    """By what this run's rows took: `2:46:40 left`, or `at least` that while it is not known how
    many repetitions will be needed; empty before the first."""
    if not status.computed or seconds <= 0:
        return ""
    work = status.work_left()
    left = round(
        seconds * ((status.total - status.done) / status.computed if work is None else work)
    )
    hours, minutes = divmod(left // 60, 60)
    clock = f"{hours}:{minutes:02}:{left % 60:02}" if hours else f"{minutes}:{left % 60:02}"
    return f"{'at least ' * status.open_ended()}{clock} left"


def where(experiment: Experiment, status: Status) -> str:
    """The point and its estimate: `width_ratio = 0.5: network 0.123 ± 0.004`."""
    assert status.point is not None
    settings = settings_text(status.point.settings)
    estimate = f"{experiment.compare.models[0]} {status.estimate}" if status.estimate else ""
    return f"{settings}: {estimate}" if settings and estimate else settings or estimate
