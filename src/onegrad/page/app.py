"""The application behind the page: its files, and a WebSocket for each open page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Response, WebSocket, WebSocketDisconnect

from onegrad.compute.threads import cores
from onegrad.page.bounds import PAGES
from onegrad.page.cache import Cache
from onegrad.page.controls import about
from onegrad.page.guard import Guard
from onegrad.page.session import Session
from onegrad.page.worker_pool import WorkerPool

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# How a page ends: closed, no longer read by anybody, or a binary message, which none of ours sends.
_GONE = (WebSocketDisconnect, RuntimeError, KeyError, OSError)
_log = logging.getLogger(__name__)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Hub:
    """The workers that all open pages share, for as long as the server lives."""

    def __init__(self) -> None:
        self.theory = WorkerPool(max(2, min(4, cores())))
        self.simulation = WorkerPool(min(4, cores()), niceness=10)
        self.cache = Cache()
        self.pages = 0

    def stop(self) -> None:
        self.theory.stop()
        self.simulation.stop()


def make_app(token: str, stored: dict[str, Any] | None = None) -> ASGIApp:
    """The guarded application; the page's files are read once and no other file ever is."""
    hub = Hub()
    files = _page_files(resources.files("onegrad.page") / "static")
    hello = json.dumps(about(stored))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        hub.theory.warm()
        yield
        await asyncio.to_thread(hub.stop)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.hub = hub

    @app.get("/{path:path}")
    async def page(path: str) -> Response:
        name = path or "index.html"
        if name not in files:
            return Response("There is no such page.\n", 404, media_type="text/plain")
        kind = _TYPES.get(name.rpartition(".")[2], "text/plain")
        return Response(files[name], media_type=f"{kind}; charset=utf-8")

    @app.websocket("/socket")
    async def socket_of_page(websocket: WebSocket) -> None:
        if hub.pages >= PAGES:
            await websocket.close(1013)
            return
        await websocket.accept()
        hub.pages += 1

        session = Session(hub.theory, hub.simulation, hub.cache, websocket.send_text)

        async def read() -> None:
            await websocket.send_text(hello)
            while True:
                await session.read(await websocket.receive_text())

        running = [asyncio.create_task(job()) for job in (read, session.answer)]
        try:
            # The first to end ends the page: `read` when it is closed or sends what no page of ours
            # does, `answer` when nobody is there to read.
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for job in running:
                job.cancel()
            session.close()
            hub.pages -= 1
            for error in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(error, Exception) and not isinstance(error, _GONE):
                    _log.error("a page ended with a fault of ours", exc_info=error)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close(1011)

    return Guard(app, token)


def _page_files(folder: Traversable, prefix: str = "") -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            files |= _page_files(entry, f"{prefix}{entry.name}/")
        else:
            files[prefix + entry.name] = entry.read_bytes()
    return files
