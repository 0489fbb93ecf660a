"""One open page: its requests become tasks, their answers go back in the order they come."""

from __future__ import annotations

import asyncio
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
    read_request,
    request_number,
)
from onegrad.page.work import fault
from onegrad.page.worker_pool import PageTask, WorkerPool
from onegrad.spec.toml_text import to_toml

_log = logging.getLogger(__name__)


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
        self._pools = {"theory": theory, "picture": theory, "simulation": simulation}
        self._cache = cache
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, list[PageTask]] = {channel: [] for channel in self._pools}
        self._current: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._ready: dict[str, list[tuple[int, Any]]] = {channel: [] for channel in self._pools}
        self._left: dict[str, int] = dict.fromkeys(self._pools, 0)
        self._wake = asyncio.Event()

    async def read(self, text: str) -> None:
        """Take one message, whatever the page wrote."""
        try:
            note = self._obey(read_request(text))
        except SpecError as error:
            note = {"type": "error", "id": request_number(text), "text": str(error)}
        except Exception as error:  # a fault of ours must not leave the page without answers
            _log.exception("a message of the page failed")
            note = {"type": "error", "id": request_number(text), "text": fault(error)}
        if note is not None:
            await self._send(json.dumps(note))

    def _obey(self, request: Request) -> dict[str, Any] | None:
        message = request.message
        if message.type == "spec":
            return {"type": "spec", "id": message.id, "text": to_toml(request.tables)}
        if message.type == "stop":
            self._cancel(channel_named(message.stops))
        else:
            self._start(request)
        return None

    async def answer(self) -> None:
        """Send whatever is ready, for as long as the page is open."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for channel, parts in self._ready.items():
                if parts:
                    self._ready[channel] = []
                    reply = {"type": "parts", "id": self._current[channel], "parts": parts}
                    await self._send(json.dumps(reply | {"left": self._left[channel]}))

    def close(self) -> None:
        """The page is gone: so is its work."""
        for channel in self._tasks:
            self._cancel(channel)

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
        task = PageTask(kind, tables, options, seconds, deliver, bool(options.get("coarse")))
        return task

    def _take(self, channel: str, number: int, index: int, answer: Any) -> None:
        if number != self._current[channel]:
            return
        self._left[channel] -= 1
        self._ready[channel].append((index, answer))
        self._wake.set()
