"""Who may speak with the server: whoever has its token, from a page of its own address."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")
_STRANGER = "onegrad explore answers only to its own page, at localhost or a plain address.\n"
_NO_TOKEN = "Open the address that `onegrad explore` has printed: it ends with ?token=…\n"


def knows(host: str) -> bool:
    """Whether a Host header names this server: any port, since ports are forwarded.

    DNS rebinding needs a name that somebody else can point here: plain addresses and localhost
    are none.
    """
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    try:
        return found["name"] == "localhost" or bool(ipaddress.ip_address(found["name"].strip("[]")))
    except ValueError:
        return False


class Guard:
    """Lets through only requests with the token to this server's address, and adds the headers.

    The Host check defeats DNS rebinding, the Origin check pages of other sites and ports, the token
    everybody else on this computer. A WebSocket without an Origin comes from no browser and is
    refused as well. A cookie keeps the token of the address that is opened first.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token
        # another name for each server: cookies do not know ports
        self._cookie = "onegrad-" + hashlib.sha256(token.encode()).hexdigest()[:12]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name, []).append(value.decode("latin-1"))
        hosts, origins = given.get(b"host", []), given.get(b"origin", [])
        host = hosts[0] if len(hosts) == 1 and knows(hosts[0]) else ""
        ours = all(origin == f"http://{host}" for origin in origins)
        if not host or not ours or (scope["type"] == "websocket" and not origins):
            await _refuse(scope, receive, send, _STRANGER)
            return
        query = scope.get("query_string", b"").decode("latin-1")
        if not self._has_token(query, given.get(b"cookie", [])):
            await _refuse(scope, receive, send, _NO_TOKEN)
            return
        headers = _headers(host)
        if "token=" in query:
            keep = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            headers.append((b"set-cookie", keep.encode()))

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _has_token(self, query: str, cookies: list[str]) -> bool:
        given = parse_qs(query).get("token", [])
        for text in cookies:
            try:
                kept = SimpleCookie(text).get(self._cookie)
            except CookieError:
                continue
            given += [kept.value] if kept is not None else []
        return any(hmac.compare_digest(one.encode(), self._token.encode()) for one in given)


def _headers(host: str = "") -> list[tuple[bytes, bytes]]:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"connect-src 'self'{f' ws://{host}' if host else ''}; "
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


async def _refuse(scope: Scope, receive: Receive, send: Send, text: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_headers()]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
