"""Runs on one file share the work: each says which rows it has begun, and that it is alive."""

from __future__ import annotations

import contextlib
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from onegrad.runs.database import Database

Cell = tuple[str, str, str, int]  # hash of the point, model, how it is computed, seed
_THIS = "point = ? AND model = ? AND compute = ? AND seed = ?"
BEAT = 5.0  # seconds between two signs of life
SILENCE = 60.0  # seconds without one after which a run on another machine counts as dead


class Claims:
    """The rows that this run has begun, in a table that all runs on the file see.

    A run that ends gives back what it has claimed. What a killed one leaves behind is taken over:
    at once if it ran on this machine, after a minute without a sign of life otherwise. A claim only
    saves work: rows stay right, and stored once, whoever computes them. So claims have a connection
    of their own, whose commits do not wait for the disk; a sign of life does, and brings all that
    was written before to the disk with it.
    """

    def __init__(self, file: Database) -> None:
        self._file = file
        self._me = uuid.uuid4().hex
        self._seen: dict[str, tuple[int, float]] = {}  # of other runs: last beat, when it came
        self._lock = threading.Lock()
        self._over = threading.Event()
        with file.advice():
            self._db = file.connect(check_same_thread=False)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, 0)",
                (self._me, machine(), os.getpid(), _started(os.getpid())),
            )
        self._heart = threading.Thread(target=self._live, daemon=True)
        self._heart.start()

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            # a moment's lock or a full disk is no reason to stop: the next beat will tell
            with contextlib.suppress(sqlite3.Error), self._lock:
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("UPDATE runs SET beat = beat + 1 WHERE run = ?", (self._me,))
                self._db.execute("PRAGMA synchronous = NORMAL")

    def take(self, cells: Sequence[Cell]) -> bool:
        """Claim all of them, or none if another run that is alive has one."""
        with self._lock, self._file.advice():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                others = set()
                for cell in cells:
                    found = self._db.execute(
                        f"SELECT run FROM claims WHERE {_THIS}", cell
                    ).fetchone()
                    if found is not None and found[0] != self._me:
                        others.add(found[0])
                free = not any(self._alive(run) for run in others)
                if free:
                    self._db.executemany(
                        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)",
                        [(*cell, self._me) for cell in cells],
                    )
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            return free

    def _alive(self, run: str) -> bool:
        """Whether another run still works; what a dead one had claimed is free."""
        found = self._db.execute(
            "SELECT machine, process, started, beat FROM runs WHERE run = ?", (run,)
        ).fetchone()
        alive = False
        if found is not None:
            where, process, started, beat = found
            if where == machine():
                alive = _started(process) == started
            else:
                last, since = self._seen.get(run, (None, 0.0))
                if last != beat:
                    since = time.monotonic()
                    self._seen[run] = (beat, since)
                alive = time.monotonic() - since < SILENCE
        if not alive:
            self._db.execute("DELETE FROM claims WHERE run = ?", (run,))
            self._db.execute("DELETE FROM runs WHERE run = ?", (run,))
        return alive

    def release(self, cells: Iterable[Cell]) -> None:
        with self._lock, self._file.advice():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                f"DELETE FROM claims WHERE {_THIS} AND run = ?",
                [(*cell, self._me) for cell in cells],
            )
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._over.set()
        self._heart.join()
        with contextlib.suppress(sqlite3.Error):  # whoever comes next sees that we are gone
            self._db.execute("DELETE FROM claims WHERE run = ?", (self._me,))
            self._db.execute("DELETE FROM runs WHERE run = ?", (self._me,))
        self._db.close()


def machine() -> str:
    """This machine since it was started, and the processes of it that we can see."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _started(process: int) -> str:
    """When a process of this machine began, or "" if there is none: numbers are used again."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        state, *fields = after_name.split()
        return "" if state in "ZX" else fields[18]
    except (OSError, IndexError):
        pass
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(process, 0)
    except PermissionError:
        return "alive"
    except (OSError, OverflowError):
        return ""
    return "alive"
