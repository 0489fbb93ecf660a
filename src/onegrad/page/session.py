"""One open page: its requests become tasks, their answers go back in the order they come."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from onegrad.errors import SpecError
from onegrad.page.bounds import SIMULATION_SECONDS, THEORY_SECONDS
from onegrad.page.cache import Cache
from onegrad.page.pieces import Piece, chunks, pieces_of
from onegrad.page.requests import (
    Request,
    channel_named,
    channel_of,
    read_request,
    request_number,
)
from onegrad.page.work import fault
from onegrad.page.worker_pool import PageTask, WorkerPool
from onegrad.spec.toml_text import to_toml

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)
_PATIENCE = 1.0  # seconds that a newer request waits for a coarse one that has begun


class Session:
    """Reads a page's messages and answers them.

    A request of theory replaces the one before, and so does a simulation; what was not sent of
    the old one never is.
    """

    def __init__(
        self,
        theory: WorkerPool,
        simulation: WorkerPool,
        cache: Cache,
        send: Callable[[str], Awaitable[None]],
    ) -> None:
        self._page = next(_numbers)
        self._pools = {"theory": theory, "picture": theory, "simulation": simulation}
        self._cache = cache
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, list[PageTask]] = {channel: [] for channel in self._pools}
        self._current: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._ready: dict[str, list[tuple[int, Any]]] = {channel: [] for channel in self._pools}
        self._left: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._held: Request | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._inbox: list[tuple[str, str]] = []
        self._come = asyncio.Event()
        self._wake = asyncio.Event()
        self._notes: list[dict[str, Any]] = []  # one per message of the page, so bounded by them

    def receive(self, text: str) -> None:
        """Put a message into the queue; of those that replace each other the last one stays."""
        replaces = channel_of(text)
        if replaces:
            self._inbox = [m for m in self._inbox if m[0] != replaces]
        self._inbox.append((replaces, text))
        self._come.set()

    async def work(self) -> None:
        """Read what lies in the queue, one message after the other, for as long as it is open.

        A page that sends faster than the server reads has most of its messages replaced unread.
        """
        while True:
            await self._come.wait()
            self._come.clear()
            while self._inbox:
                self._read(self._inbox.pop(0)[1])
                await asyncio.sleep(0)  # the other pages' turn

    def _read(self, text: str) -> None:
        """Take one message; never raises, whatever the page wrote."""
        try:
            self._obey(read_request(text))
        except SpecError as error:
            self._note({"type": "error", "id": request_number(text), "text": str(error)})
        except Exception as error:  # a fault of ours must not leave the page without answers
            _log.exception("a message of the page failed")
            self._note({"type": "error", "id": request_number(text), "text": fault(error)})

    def _obey(self, request: Request) -> None:
        message = request.message
        if message.type == "spec":
            self._note({"type": "spec", "id": message.id, "text": to_toml(request.tables)})
        elif message.type == "stop":
            self._cancel("simulation")
        elif channel_named(message.type) != "theory" or not self._unfinished():
            self._start(request)
        else:
            self._hold(request)

    def _unfinished(self) -> bool:
        """Whether a coarse curve is being computed that will be there in a moment."""
        urgent = [task for task in self._tasks["theory"] if task.urgent and task.begun]
        return bool(urgent) and self._left["theory"] > 0

    def _hold(self, request: Request) -> None:
        """Let the coarse curve that has begun come, for a while: else a page that keeps moving
        its slider on a busy machine would never see one."""
        if self._held is None:
            self._timer = self._loop.call_later(_PATIENCE, self._release)
        self._held = request

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        request, self._held, self._timer = self._held, None, None
        if request is not None:
            self._start(request)

    async def answer(self) -> None:
        """Send whatever is ready, for as long as the page is open."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            notes, self._notes = self._notes, []
            for note in notes:
                await self._send(json.dumps(note))
            for channel, parts in self._ready.items():
                if parts:
                    self._ready[channel] = []
                    done = self._left[channel] == 0
                    reply = {"type": "parts", "id": self._current[channel], "parts": parts}
                    await self._send(json.dumps(reply | {"done": done}))
                    if done and channel == "theory":
                        self._release()

    @property
    def backlog(self) -> int:
        """Messages of the page not read yet, and notes to it not sent yet."""
        return len(self._notes) + len(self._inbox)

    def close(self) -> None:
        """The page is gone: so is its work."""
        self._held = None
        self._release()
        for channel in self._tasks:
            self._cancel(channel)

    def _note(self, note: dict[str, Any]) -> None:
        self._notes.append(note)
        self._wake.set()

    def _cancel(self, channel: str) -> None:
        for task in self._tasks[channel]:
            task.cancelled = True
        self._tasks[channel] = []
        self._ready[channel] = []

    def _start(self, request: Request) -> None:
        channel = channel_named(request.message.type)
        self._cancel(channel)
        number = self._current[channel] = request.message.id
        pieces = pieces_of(request)
        self._left[channel] = len(pieces)
        missing: dict[str, list[Piece]] = {}
        for piece in pieces:
            known = self._cache.get(piece.key) if channel != "simulation" else None
            if known is None:
                missing.setdefault(piece.key, []).append(piece)
            else:
                self._take(channel, number, piece.index, known)
        pool = self._pools[channel]
        alike = {same[0].index: [piece.index for piece in same] for same in missing.values()}
        first = [same[0] for same in missing.values()]  # the same answer is computed once
        tasks = [self._task(channel, number, some, alike) for some in chunks(first, pool.size)]
        self._tasks[channel] = tasks
        if tasks:
            pool.submit(tasks)

    def _task(
        self, channel: str, number: int, pieces: list[Piece], alike: Mapping[int, list[int]]
    ) -> PageTask:
        def deliver(answers: Any) -> None:  # called in a thread of the pool
            self._loop.call_soon_threadsafe(come, answers)

        def come(answers: Any) -> None:
            failed = answers if isinstance(answers, dict) else None  # the whole task
            for i, piece in enumerate(pieces):
                answer = answers[i] if failed is None else failed
                if theory and "error" not in answer:
                    self._cache.put(piece.key, answer)
                if not task.cancelled:
                    for index in alike[piece.index]:
                        self._take(channel, number, index, answer)

        theory = channel != "simulation"
        seconds = THEORY_SECONDS * len(pieces) if theory else SIMULATION_SECONDS
        tables = [piece.tables for piece in pieces]
        kind, options = pieces[0].kind, pieces[0].options
        task = PageTask(
            self._page, kind, tables, options, seconds, deliver, bool(options.get("coarse"))
        )
        return task

    def _take(self, channel: str, number: int, index: int, answer: Any) -> None:
        if number != self._current[channel]:
            return
        self._left[channel] -= 1
        self._ready[channel].append((index, answer))
        self._wake.set()
