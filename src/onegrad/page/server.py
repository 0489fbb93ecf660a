"""`onegrad explore`: the page on a port of this computer, for whoever has its token."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path

from onegrad.errors import OnegradError, SpecError
from onegrad.page.bounds import MESSAGE_BYTES
from onegrad.page.worker_pool import one_thread_each

PORT = 8471
TOKEN = "ONEGRAD_TOKEN"  # in the environment: a token of one's own, that outlives a restart
_INSTALL = 'the explorer needs a few more packages: pip install "onegrad[explore]"'
_SHORTEST = 16  # characters of a token


def kept_token() -> str:
    """The token of this user, the same after a restart: an open page finds its server again.

    It is kept in a file that nobody else may read; where none can be written it is a new one.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "onegrad" / "page-token"
    with contextlib.suppress(OSError, ValueError):
        token = path.read_text(encoding="ascii").strip()
        if len(token) >= _SHORTEST and path.stat().st_mode & 0o077 == 0:
            return token
    token = secrets.token_urlsafe(24)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)
    return token


@dataclass(frozen=True)
class Place:
    """Where the page is served.

    host : address to listen on; port : None for the usual one, or any if that is taken
    """

    host: str = "127.0.0.1"
    port: int | None = None
    token: str = field(default_factory=lambda: os.environ.get(TOKEN) or kept_token())

    def __post_init__(self) -> None:
        letters = self.token.replace("-", "").replace("_", "")
        if len(self.token) < _SHORTEST or not (letters.isascii() and letters.isalnum()):
            raise SpecError.of(
                TOKEN, "…", f"must be at least {_SHORTEST} letters, digits, - and _",
                "Leave it out, and one is made",
            )  # fmt: skip

    def listen(self) -> socket.socket:
        """A socket on the address: the port asked for, else the usual one, else any."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        address = self.host.strip("[]")
        for candidate in (PORT, 0) if self.port is None else (self.port,):
            opened = socket.socket(family, socket.SOCK_STREAM)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                opened.bind((address, candidate))
            except OSError as error:
                opened.close()
                reason = error.strerror or str(error)
            else:
                opened.listen(128)  # who comes before the server is up waits for it
                return opened
        where = "" if self.host == Place.host else f" of {self.host}"
        more = "; --host must be an address of this computer" if where else ""
        raise OnegradError(
            f"port {self.port or PORT}{where} cannot be used ({reason}). Leave out --port, and a "
            f"free one is taken{more}"
        )

    def address(self, port: int) -> str:
        """What one opens on this computer."""
        name = self.host.strip("[]")
        near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
        shown = f"[{near}]" if ":" in near else near
        return f"http://{shown}:{port}/?token={self.token}"


def explore(
    folder: Path | None = None, place: Place | None = None, browser: bool = True, view: str = ""
) -> None:
    """Serve the page until interrupted; view : what it opens with, as its links have it (#…)."""
    try:
        import uvicorn
        import websockets  # noqa: F401

        from onegrad.page.app import make_app
    except ModuleNotFoundError as error:
        raise OnegradError(f"{_INSTALL} ({error})") from None
    from onegrad.page.stored import open_stored

    place = place or Place()
    stored = open_stored(folder) if folder is not None else None
    opened = place.listen()
    address = place.address(opened.getsockname()[1]) + view
    one_thread_each()
    config = uvicorn.Config(
        make_app(place.token, stored), log_level="warning", access_log=False, server_header=False,
        ws_max_size=4 * MESSAGE_BYTES, ws_per_message_deflate=False,
        timeout_graceful_shutdown=2, proxy_headers=False,
    )  # fmt: skip
    print(f"onegrad explorer: {address}  (Ctrl-C ends it)", flush=True)
    if place.host.strip("[]") not in ("127.0.0.1", "::1", "localhost"):
        print("Other computers can reach it, without encryption: who has the token comes in.")
    if browser:
        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(config).run(sockets=[opened])
