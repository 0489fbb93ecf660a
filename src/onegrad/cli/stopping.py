"""Ctrl-C, the request to end (TERM) and the end of the terminal (HUP): all end in the same way."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

import typer

_PATIENCE = 1.8  # seconds for an orderly end; native code may not let Python act for minutes
_kept = ""  # what the command that runs would keep


class Stopped(KeyboardInterrupt):
    """TERM or HUP, treated like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def listen() -> None:
    """From now on TERM and HUP raise `Stopped`, once; what `nohup` ignores stays ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    if hasattr(signal, "pthread_kill"):  # elsewhere a pipe cannot wake
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_insist, args=(reading,), daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # what is being tidied up takes a second
    raise Stopped(number)


def _insist(reading: int) -> None:
    """End the process where it has not ended by itself: finished rows are in the store already."""
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    while (number := os.read(reading, 1)[0]) not in stopping or not _kept:
        pass
    time.sleep(_PATIENCE)
    _say(number)
    os._exit(128 + number)


def _say(number: int) -> None:
    global _kept
    kept, _kept = _kept, ""
    how = "interrupted" if number == signal.SIGINT else f"stopped ({signal.Signals(number).name})"
    with contextlib.suppress(OSError):  # the terminal may be gone
        if kept:
            print(f"onegrad: {how}. {kept}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Whatever stops a command: one line that says what is kept, and the exit code of a shell."""
    global _kept
    _kept = kept
    try:
        yield
    except KeyboardInterrupt as stop:
        number = getattr(stop, "number", signal.SIGINT)
        _say(number)
        raise typer.Exit(128 + number) from None
    finally:
        _kept = ""
