"""A line on the terminal that says how far a run is; nothing in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from onegrad.runs.coordinator import Progress, Status
from onegrad.specs.experiment import Experiment


@contextmanager
def progress_line(experiment: Experiment) -> Iterator[Progress | None]:
    """Rows done, rate, time left, and the estimate at the point that was last worked on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(bar_width=20),
        MofNCompleteColumn(), TextColumn("{task.fields[rate]}", markup=False),
        TextColumn("{task.fields[now]}", style="dim", markup=False),
    )  # fmt: skip
    start = time.monotonic()
    bar = Bar(*columns, console=console, transient=True)
    task = bar.add_task(experiment.name[:30], total=None, rate="rows", now="")

    def show(status: Status) -> None:
        bar.start()  # with the first news: before it, a question may be asked
        rate = rate_and_rest(status, time.monotonic() - start)
        now = bar.tasks[0].fields["now"] if status.point is None else where(experiment, status)
        bar.update(task, completed=status.done, total=status.total, rate=rate, now=now)

    try:
        yield show
    finally:
        bar.stop()


def rate_and_rest(status: Status, seconds: float) -> str:
    """Rows per second and the time left, both from the rows of this run alone.

    >>> rate_and_rest(Status(30, 90, 20, 0, [], None, None), 10.0)
    'rows, 2/s, 0:30 left'
    """
    if not status.computed or seconds <= 0:
        return "rows"
    rate = status.computed / seconds
    left = round((status.total - status.done) / rate)
    hours, minutes = divmod(left // 60, 60)
    clock = f"{hours}:{minutes:02}:{left % 60:02}" if hours else f"{minutes}:{left % 60:02}"
    failed = f", {status.failed} failed" if status.failed else ""
    return f"rows, {rate:.2g}/s, {clock} left{failed}"


def where(experiment: Experiment, status: Status) -> str:
    """The point and its estimate: `width_ratio = 0.5: network 0.123 ± 0.004`."""
    assert status.point is not None
    settings = ", ".join(f"{k.rpartition('.')[2]} = {v}" for k, v in status.point.settings.items())
    estimate = f"{experiment.compare.models[0]} {status.estimate}" if status.estimate else ""
    return f"{settings}: {estimate}" if settings and estimate else settings or estimate
