"""Connections that are no page yet: each has a few seconds, and there are only so many of them."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from onegrad.page.bounds import EXCHANGE_SECONDS, SEND_SECONDS, WAITING

_LOOK = SEND_SECONDS / 5  # seconds between two looks whether a page's connection is being closed


class Connection(H11Protocol):
    """uvicorn's HTTP, with an end: a request and its answer take ten seconds, or the connection is
    dropped; where too many wait, the oldest one is. A page's WebSocket is no longer among them, but
    once it is being closed it has ten seconds, too.

    uvicorn itself has a time-out only for silence between two requests: a request that is half sent
    would wait for ever, and so would a connection that is closed while its answers are not read.
    """

    waiting: dict[Connection, None]  # the oldest first; one for each server, see `for_one_server`
    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin()

    def _begin(self) -> None:
        self._leave()
        self.waiting[self] = None
        self._end = self.loop.call_later(EXCHANGE_SECONDS, self._drop)
        if len(self.waiting) > WAITING:
            next(iter(self.waiting))._drop()

    def _drop(self) -> None:
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self.waiting.pop(self, None)
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._begin()  # the next request

    def handle_websocket_upgrade(self, *request: Any) -> None:
        self._leave()
        super().handle_websocket_upgrade(*request)
        self._watch()

    def _watch(self) -> None:
        """Closing a transport waits until all is read; a closed one does not mind the abort."""
        if self.transport.is_closing():
            self.loop.call_later(SEND_SECONDS, self.transport.abort)
        else:
            self.loop.call_later(_LOOK, self._watch)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)


def for_one_server() -> type[Connection]:
    return type("OneServersConnection", (Connection,), {"waiting": {}})
