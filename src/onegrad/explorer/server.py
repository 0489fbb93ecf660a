"""`onegrad explore`: the page on a port of the loopback address."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from pathlib import Path

from onegrad.errors import OnegradError
from onegrad.explorer.bounds import MESSAGE_BYTES, PAGES
from onegrad.explorer.worker_pool import one_thread_each

PORT = 8471
_INSTALL = 'the explorer needs a few more packages: pip install "onegrad[explore]"'


def listen(port: int | None) -> socket.socket:
    """A socket on the loopback address: the port asked for, else the usual one, else any."""
    for candidate in (PORT, 0) if port is None else (port,):
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(("127.0.0.1", candidate))
        except OSError as error:
            opened.close()
            reason = error
        else:
            opened.listen(128)  # who comes before the server is up waits for it
            return opened
    raise OnegradError(
        f"port {port} cannot be used ({reason.strerror}). Leave out --port, and a free one is taken"
    )


def explore(folder: Path | None = None, port: int | None = None, browser: bool = True) -> None:
    """Serve the page until interrupted."""
    try:
        import uvicorn
        import websockets  # noqa: F401

        from onegrad.explorer.app import make_app
        from onegrad.explorer.connections import for_one_server
    except ModuleNotFoundError as error:
        raise OnegradError(f"{_INSTALL} ({error})") from None
    from onegrad.explorer.stored import open_stored

    stored = open_stored(folder) if folder is not None else None
    opened = listen(port)
    number = opened.getsockname()[1]
    one_thread_each()
    config = uvicorn.Config(
        make_app(number, stored), log_level="warning", access_log=False, server_header=False,
        ws_max_size=4 * MESSAGE_BYTES, ws_per_message_deflate=False, ws_ping_interval=10,
        ws_ping_timeout=10, limit_concurrency=4 * PAGES, timeout_graceful_shutdown=2,
        http=for_one_server(),
    )  # fmt: skip
    address = f"http://127.0.0.1:{number}/"
    print(f"onegrad explorer: {address}  (Ctrl-C ends it)", flush=True)
    if browser:
        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(config).run(sockets=[opened])
