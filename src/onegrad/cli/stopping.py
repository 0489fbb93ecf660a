"""Ctrl-C, the request to end (TERM) and the end of the terminal (HUP): all end in the same way."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import typer


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


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise Stopped(number)


@contextlib.contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Whatever stops a command: one line that says what is kept, and the exit code of a shell."""
    try:
        yield
    except KeyboardInterrupt as stop:
        number = getattr(stop, "number", signal.SIGINT)
        how = "interrupted" if number == signal.SIGINT else "stopped"
        how += f" ({signal.Signals(number).name})" * (number != signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal may be gone
            print(f"onegrad: {how}. {kept}", file=sys.stderr, flush=True)
        raise typer.Exit(128 + number) from None
