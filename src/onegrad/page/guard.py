"""Who may speak with the server: whoever has its token, from a page of its own address."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")
_FIELDS = 20  # of a query: our own has one
_STRANGER = (
    "onegrad explore answers only to its own page, at a plain address, localhost, or a name given "
    "by --allow-host.\n"
)
_NO_TOKEN = "Open the address that `onegrad explore` has printed: it ends with ?token=…\n"


@dataclass(frozen=True)
class Door:
    """Where the page is and who may come in.

    token : has to be in the address that is opened first; a cookie keeps it from then on
    hosts : names of this server besides localhost and plain addresses, which nobody can rebind
    base : the path below which a proxy serves the page, "/" without one
    """

    token: str
    hosts: frozenset[str] = field(default_factory=frozenset)
    base: str = "/"

    @property
    def cookie(self) -> str:
        """Another name for each server: cookies do not know ports."""
        return "onegrad-" + hashlib.sha256(self.token.encode()).hexdigest()[:12]

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server: any port, since ports are forwarded.

        DNS rebinding needs a name that somebody else can point here: plain addresses and
        localhost are none.
        """
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found["name"]
        return name == "localhost" or name in self.hosts or _is_address(name)

    def own_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is ours: that of the Host, or, behind a proxy, a host that
        was named. Another port of the same computer is somebody else."""
        if origin == f"http://{host}":
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and (parts.hostname or "") in self.hosts

    def has_token(self, query: str, cookies: list[str]) -> bool:
        given = _tokens(query)
        for text in cookies:
            try:
                kept = SimpleCookie(text).get(self.cookie)
            except CookieError:
                continue
            given += [kept.value] if kept is not None else []
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)


def _tokens(query: str) -> list[str]:
    """The tokens of a query; none of one with more fields than a page of ours has."""
    try:
        return parse_qs(query, max_num_fields=_FIELDS).get("token", [])
    except ValueError:
        return []


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """Lets through only requests with the token to this server's address, and adds the headers.

    The Host check defeats DNS rebinding, the Origin check pages of other sites and ports, the token
    everybody else on this computer. A WebSocket without an Origin comes from no browser and is
    refused as well.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name, []).append(value.decode("latin-1"))
        hosts, origins = given.get(b"host", []), given.get(b"origin", [])
        host = hosts[0] if len(hosts) == 1 and self._door.knows(hosts[0]) else ""
        ours = all(self._door.own_origin(origin, host) for origin in origins)
        if not host or not ours or (scope["type"] == "websocket" and not origins):
            await self._refuse(scope, receive, send, _STRANGER)
            return
        query = scope.get("query_string", b"").decode("latin-1")
        if not self._door.has_token(query, given.get(b"cookie", [])):
            await self._refuse(scope, receive, send, _NO_TOKEN)
            return
        headers = self._headers(host)
        if "token=" in query:
            where = f"Path={self._door.base}; HttpOnly; SameSite=Strict"
            keep = f"{self._door.cookie}={self._door.token}; {where}"
            headers.append((b"set-cookie", keep.encode()))

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        await self._app(self._below_base(scope), receive, send_with_headers)

    def _below_base(self, scope: Scope) -> Scope:
        """The path as without a proxy; some take the base away themselves."""
        path, base = scope["path"], self._door.base
        if base == "/" or not path.startswith(base):
            return scope
        return {**scope, "path": path[len(base) - 1 :], "raw_path": None}

    def _headers(self, host: str = "") -> list[tuple[bytes, bytes]]:
        named = sorted(self._door.hosts)
        sockets = [f"ws://{name}" for name in ([host] if host else []) + named]
        sockets += [f"wss://{name}" for name in named]
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
            f"connect-src 'self' {' '.join(sockets)}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-cache"),
        ]

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, text: str) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), *self._headers()]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})
