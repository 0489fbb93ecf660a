"""How far a run is: a bar on a terminal, a line in a notebook, or now and then one in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from onegrad.runs.coordinator import Progress, Status
from onegrad.spec.experiment import Experiment
from onegrad.text.display import settings_text

_OFTEN = 0.1  # seconds between two states of the bar on a terminal
_NOTEBOOK = 0.3  # seconds between two states of the bar in a notebook
_RARELY = 5.0  # seconds between two lines in a pipe
_BAR = 20  # columns of the bar; less than half of a narrow terminal

Write = Callable[[Status, str], None]


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
        write(status, line(experiment.name, status, at - start, now))

    try:
        yield show
    finally:
        clear()


Way = tuple[Write, Callable[[], None], float]


def _print(status: Status, text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _terminal() -> Way | None:
    """A bar that rich draws; None where standard error is no terminal that can do it."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        return None
    width = min(_BAR, console.width // 3)
    columns = BarColumn(width), TextColumn("{task.description}", markup=False)
    bar = RichProgress(*columns, console=console, transient=True, auto_refresh=False)
    task = bar.add_task("", total=None, visible=False)

    def write(status: Status, text: str) -> None:
        bar.start()
        bar.update(
            task, description=text[: console.width - width - 2], total=status.total,
            completed=status.done, visible=True, refresh=True,
        )  # fmt: skip

    return write, bar.stop, _OFTEN


def _notebook() -> Way | None:
    """A cell's output that is replaced; None outside of a notebook."""
    shell: Any = sys.modules.get("IPython")
    kernel = shell and shell.get_ipython()
    if kernel is None or not hasattr(kernel, "kernel"):
        return None
    from IPython.display import Pretty, display

    class Line(Pretty):
        def __repr__(self) -> str:
            return str(self.data)

    handle = display(Line(""), display_id=True)
    return lambda _, text: handle.update(Line(text)), lambda: handle.update(Line("")), _NOTEBOOK


def line(name: str, status: Status, seconds: float, now: str) -> str:
    """What matters most first: the end may be cut off.

    >>> line("impact of width", Status(30, 90, 20, 0, [], None, None), 10.0, "")
    '30/90 rows, 0:30 left, 2/s  impact of width'
    """
    failed = f"{status.failed} failed" if status.failed else ""
    parts = [time_left(status, seconds), failed, rate_of(status, seconds)]
    count = ", ".join([f"{status.done}/{status.total} rows", *filter(None, parts)])
    return "  ".join(filter(None, (count, name if len(name) <= 30 else f"{name[:29]}…", now)))


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
    return f"{'at least ' * status.open_ended}{clock} left"


def where(experiment: Experiment, status: Status) -> str:
    """The point and its estimate: `width_ratio = 0.5: network 0.123 ± 0.004`."""
    assert status.point is not None
    settings = settings_text(status.point.settings)
    estimate = f"{experiment.compare.models[0]} {status.estimate}" if status.estimate else ""
    return f"{settings}: {estimate}" if settings and estimate else settings or estimate
