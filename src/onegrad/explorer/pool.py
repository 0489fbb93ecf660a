"""Worker processes: bounded in number, time and memory, and killed rather than waited for.

A lane is a few processes, each served by one thread of the server. Pages take turns; a task that
was cancelled is dropped if it waits, and its process is replaced if it does not end soon.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from onegrad.explorer.bounds import REQUEST_SECONDS, WORKER_BYTES

_FORKS = sys.platform == "linux"  # a fork server replaces a process in hundredths of a second
_GRACE = 0.15 if _FORKS else 2.0  # seconds a cancelled task may still run
_TICK = 0.05


@dataclass(eq=False)
class Task:
    """One piece of work for one page: a list of specs that gives a list of answers.

    `deliver` is called in a thread of the lane with that list, or with {"error": …} for all.
    """

    page: int
    kind: str
    tables: list[Mapping[str, Any]]
    options: Mapping[str, Any]
    seconds: float
    deliver: Callable[[Any], None]
    urgent: bool = False
    cancelled: bool = False
    made: float = field(default_factory=time.monotonic)


class Lane:
    """At most `size` processes, started with the first task or by `warm`, ended by `stop`."""

    def __init__(self, size: int, niceness: int = 0) -> None:
        self.size, self._niceness = size, niceness
        self._context = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
        if _FORKS:
            self._context.set_forkserver_preload(["onegrad.explorer.work"])
        self._changed = threading.Condition()
        self._waiting: dict[int, deque[Task]] = {}  # by page; the page served last goes last
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def submit(self, tasks: list[Task]) -> None:
        """Queue tasks of one page; urgent ones go before everything that waits there."""
        with self._changed:
            for task in tasks:
                self._waiting.setdefault(task.page, deque()).append(task)
            self._changed.notify_all()
        self.warm()

    def warm(self) -> None:
        """Start the processes, so that the first request does not wait for them."""
        with self._changed:
            if self._threads:
                return
            self._stopping = False
            self._threads = [
                threading.Thread(target=self._serve, name=f"lane {i}", daemon=True)
                for i in range(self.size)
            ]
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End every process and forget every task; blocks for at most some tenths of a second."""
        with self._changed:
            self._stopping = True
            self._waiting.clear()
            threads, self._threads = self._threads, []
            self._changed.notify_all()
        for thread in threads:
            thread.join()

    def _next(self) -> Task | None:
        """The first urgent task, or the first one of the page that waited longest."""
        with self._changed:
            while not self._stopping:
                task = self._take()
                if task is not None:
                    return task
                self._changed.wait()
        return None

    def _take(self) -> Task | None:
        now = time.monotonic()
        for page, queue in list(self._waiting.items()):
            while queue and (queue[0].cancelled or now - queue[0].made > REQUEST_SECONDS):
                dropped = queue.popleft()
                if not dropped.cancelled:
                    dropped.deliver({"error": "the page asked for more than there was time for"})
            if not queue:
                del self._waiting[page]
        pages = list(self._waiting)
        urgent = [page for page in pages if self._waiting[page][0].urgent]
        if not pages:
            return None
        page = (urgent or pages)[0]
        queue = self._waiting.pop(page)
        task = queue.popleft()
        if queue:
            self._waiting[page] = queue  # at the end: the others come first now
        return task

    def _serve(self) -> None:
        worker = _Worker(self._context, self._niceness)
        try:
            while (task := self._next()) is not None:
                answer = self._run(worker, task)
                if answer is _ENDED:
                    worker.end()
                    worker = _Worker(self._context, self._niceness)
                elif not task.cancelled:
                    task.deliver(answer)
        finally:
            worker.end()

    def _run(self, worker: _Worker, task: Task) -> Any:
        """The answer, or _ENDED if the process has to be replaced."""
        start, cancelled = time.monotonic(), 0.0
        try:
            worker.connection.send((task.kind, task.tables, dict(task.options)))
            while not worker.connection.poll(_TICK):
                now = time.monotonic()
                if self._stopping:
                    return _ENDED
                if task.cancelled:
                    cancelled = cancelled or now
                    if now - cancelled > _GRACE:
                        return _ENDED
                if now - start > task.seconds:
                    task.deliver({"error": f"stopped after {task.seconds:g} s, the page's limit"})
                    return _ENDED
            return worker.connection.recv()
        except (EOFError, OSError):
            if not task.cancelled and not self._stopping:
                task.deliver({"error": "the worker process ended; it may have run out of memory"})
            return _ENDED


_ENDED = object()


class _Worker:
    """One process at the other end of a pipe."""

    def __init__(self, context: Any, niceness: int) -> None:
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, niceness), daemon=True)
        self._process.start()
        theirs.close()

    def end(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def serve(connection: Connection, niceness: int) -> None:
    """The life of a worker process: one task after the other until the server hangs up."""
    import signal

    from onegrad.explorer.work import perform

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's affair
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, WORKER_BYTES))
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)
    with contextlib.suppress(EOFError, OSError):
        while True:
            kind, tables, options = connection.recv()
            connection.send(perform(kind, tables, options))


def one_thread_each() -> None:
    """Workers are many: each gets one thread of linear algebra. Call it before they start."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
