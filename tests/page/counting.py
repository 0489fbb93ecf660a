"""`python -m tests.page.counting explore`: the server in a hurry, which tells what it holds.

Time-outs of ten seconds become PATIENCE, so that hostile clients are gone soon; not if
ONEGRAD_HOSTILE is set. To each line of its input it answers with one that counts sessions.
"""

import gc
import json
import os
import socket
import sys
import threading

from onegrad.page import bounds

PATIENCE = 1.5  # seconds
LONG = "ONEGRAD_HOSTILE" in os.environ
SEND_BUFFER = 1 << 15  # bytes that the kernel keeps for a client that reads nothing


def _hurry():
    bounds.EXCHANGE_SECONDS = bounds.SEND_SECONDS = bounds.PING_SECONDS = PATIENCE
    listen = socket.socket.listen

    def with_small_buffer(opened, *backlog):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listen(opened, *backlog)

    socket.socket.listen = with_small_buffer


def _tell(hubs):
    """Pages that are open, and sessions, connections and tasks that Python still has in memory."""
    from onegrad.page.connections import Connection
    from onegrad.page.session import Session
    from onegrad.page.worker_pool import PageTask

    for _ in sys.stdin:
        gc.collect()
        held = [type(thing) for thing in gc.get_objects()]
        counts = {"pages": sum(hub.pages for hub in hubs)}
        for name, kind in (("sessions", Session), ("tasks", PageTask), ("http", Connection)):
            counts[name] = sum(issubclass(found, kind) for found in held)
        print(json.dumps(counts), flush=True)


def main():
    if not LONG:
        _hurry()
    from onegrad.cli.commands import main as onegrad
    from onegrad.page import app

    if not LONG:
        app._LINGER = 0.3  # until workers without a page end
    hubs = []

    class Counted(app.Hub):
        def __init__(self):
            super().__init__()
            hubs.append(self)

    app.Hub = Counted
    threading.Thread(target=_tell, args=(hubs,), daemon=True).start()
    onegrad()


if __name__ == "__main__":
    main()
