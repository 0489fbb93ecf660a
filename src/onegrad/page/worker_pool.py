"""Worker processes: bounded in number, time and memory, and killed rather than waited for.

A pool is a few processes, each served by one thread of the server. A task that was cancelled is
dropped if it waits; if it runs and does not end soon, its process is replaced. The executors of
`runs` cannot do this: killing one of their workers breaks the pool for all tasks, and they know
neither time limits nor niceness.
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

from onegrad.page.bounds import REQUEST_SECONDS, WORKER_BYTES

_FORKS = sys.platform == "linux"  # a fork server replaces a process in hundredths of a second
_GRACE = 1.0 if _FORKS else 4.0  # seconds a cancelled task may still run
_TICK = 0.05


@dataclass(eq=False)
class PageTask:
    """One piece of work: a list of specs that gives a list of answers.

    `deliver` is called in a thread of the pool with that list, or with {"error": …} for all. A
    task that was cancelled while it ran still delivers if it ends soon: the answer may be kept.
    """

    kind: str
    tables: list[Mapping[str, Any]]
    options: Mapping[str, Any]
    seconds: float
    deliver: Callable[[Any], None]
    urgent: bool = False
    cancelled: bool = False
    made: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class _Workers:
    """The threads of a pool from its start to its stop."""

    threads: list[threading.Thread] = field(default_factory=list)
    stopping: bool = False


class WorkerPool:
    """At most `size` processes, started with the first task or by `warm`, ended by `stop`."""

    def __init__(self, size: int, niceness: int = 0) -> None:
        self.size, self._niceness = size, niceness
        self._context = multiprocessing.get_context("forkserver" if _FORKS else "spawn")
        if _FORKS:
            self._context.set_forkserver_preload(["onegrad.page.work"])
        self._changed = threading.Condition()
        self._waiting: deque[PageTask] = deque()
        self._workers: _Workers | None = None

    def submit(self, tasks: list[PageTask]) -> None:
        """Queue tasks: urgent ones before all others."""
        with self._changed:
            for task in tasks:
                self._waiting.append(task)
            self._changed.notify_all()
        self.warm()

    def warm(self) -> None:
        """Start the processes, so that the first request does not wait for them."""
        with self._changed:
            if self._workers is not None:
                return
            workers = self._workers = _Workers()
            workers.threads = [
                threading.Thread(target=self._serve, args=(workers,), daemon=True)
                for _ in range(self.size)
            ]
        for thread in workers.threads:
            thread.start()

    def stop(self) -> None:
        """End every process and forget every task; blocks for at most some tenths of a second."""
        with self._changed:
            workers, self._workers = self._workers, None
            self._waiting.clear()
            if workers is None:
                return
            workers.stopping = True
            self._changed.notify_all()
        for thread in workers.threads:
            thread.join()

    def _next(self, workers: _Workers) -> PageTask | None:
        with self._changed:
            while not workers.stopping:
                task = self._take()
                if task is not None:
                    return task
                self._changed.wait()
        return None

    def _take(self) -> PageTask | None:
        """The next task: the first urgent one, else the first."""
        now = time.monotonic()
        for task in list(self._waiting):
            late = now - task.made > REQUEST_SECONDS
            if task.cancelled or late:
                self._waiting.remove(task)
                if not task.cancelled:
                    task.deliver({"error": "the page asked for more than there was time for"})
        if not self._waiting:
            return None
        task = next((one for one in self._waiting if one.urgent), self._waiting[0])
        self._waiting.remove(task)
        return task

    def _serve(self, workers: _Workers) -> None:
        worker = _Worker(self._context, self._niceness)
        try:
            while (task := self._next(workers)) is not None:
                answer = self._run(workers, worker, task)
                if answer is _ENDED:
                    worker.end()
                    if workers.stopping:
                        return
                    worker = _Worker(self._context, self._niceness)
                else:
                    task.deliver(answer)
        finally:
            worker.end()

    def _run(self, workers: _Workers, worker: _Worker, task: PageTask) -> Any:
        """The answer, or _ENDED if the process has to be replaced."""
        start, cancelled = time.monotonic(), 0.0
        try:
            worker.connection.send((task.kind, task.tables, dict(task.options)))
            while not worker.connection.poll(_TICK):
                now = time.monotonic()
                if workers.stopping:
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
            if not task.cancelled and not workers.stopping:
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
        """Kill it; may be called twice."""
        if self.connection.closed:
            return
        self.connection.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def serve(connection: Connection, niceness: int) -> None:
    """The life of a worker process: one task after the other until the server hangs up."""
    import signal
    import warnings

    from onegrad.page.work import perform

    warnings.simplefilter("ignore")  # what matters comes back as an error of its own
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
