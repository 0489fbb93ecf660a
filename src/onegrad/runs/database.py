"""The SQLite file of a store: one writer at a time, any number of readers, nothing of strangers."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onegrad.errors import OnegradError
from onegrad.results.rows import SPECTRUM_COLUMNS, STORED
from onegrad.simulate.control_variates import CONTROL_COLUMNS

APPLICATION = 0x6F6E6567  # "oneg": tells our files from other SQLite files
FORMAT = 4  # of the tables below, kept as the file's user_version
KEY = ("point", "model", "compute", "seed", "model_version")
NUMBERS = (*STORED, *CONTROL_COLUMNS, *SPECTRUM_COLUMNS)
VALUES = (*NUMBERS, "spectrum", "seconds", "status", "error")
COLUMNS = (*KEY, *VALUES, "package_version")  # what a checksum covers
_WAIT = 0.2  # seconds between two attempts to get the lock of a file
_LOG_PAGES = 100  # pages (400 kB) of write-ahead log that are moved into the file together
_SMALLEST_ROOM = 1 << 17  # bytes below which SQLite's "I/O error" is a full disk
_NUMBERS = ", ".join(f"{name} REAL" for name in NUMBERS)
_TABLES = {
    "rows": f"""CREATE TABLE rows (
    point TEXT NOT NULL,            -- hash of the problem and of the root seed
    model TEXT NOT NULL,
    compute TEXT NOT NULL,          -- how this model was computed, JSON
    seed INTEGER NOT NULL,
    model_version INTEGER NOT NULL, -- of the model's numbers: rows of another one do not count
    {_NUMBERS},
    spectrum TEXT,                  -- the record of a spectrum, JSON
    seconds REAL NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    package_version TEXT NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (point, model, compute, seed, model_version)
) WITHOUT ROWID""",
    "points": "CREATE TABLE points (point TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID",
    # how many repetitions the runs on this file wanted: rows that a damage took away are missed
    "planned": """CREATE TABLE planned (
    point TEXT, model TEXT, compute TEXT, model_version INTEGER, seeds INTEGER NOT NULL,
    PRIMARY KEY (point, model, compute, model_version)
) WITHOUT ROWID""",
}


class StoreError(OnegradError):
    """A results file that cannot be read or written."""


class StoreWarning(UserWarning):
    """Something about a results file that its user should know."""


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def checksum(record: Mapping[str, Any] | sqlite3.Row) -> str:
    """16 digits of BLAKE2b over the columns of a row; SQLite stores NaN as NULL, so both are."""
    values = [record[name] for name in COLUMNS]
    text = repr([None if value != value else value for value in values])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Database:
    """An open results file; without a folder, one in memory.

    Who writes holds a lock until the file is closed; a second run says so and waits. Whoever reads
    needs none: a write-ahead log lets readers in where the file system can do it. A file that is
    damaged, not ours or of another format is reported, never replaced.
    """

    def __init__(self, folder: str | Path | None, read_only: bool = False) -> None:
        self.path = Path(":memory:") if folder is None else Path(folder) / "results.sqlite"
        self.read_only = read_only
        self._lock: sqlite3.Connection | None = None
        if folder is not None:
            if self.path.exists() and not self.path.is_file():
                raise StoreError(f"{self.path} is not a file. Use another --out folder")
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = self._locked()
        try:
            with self.advice():
                self.db = self._connected()
                self._open()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> sqlite3.Connection:
        """The system gives back the lock of a process that ends, however it ends."""
        with self.advice():
            lock = sqlite3.connect(self.path.with_suffix(".lock"), timeout=0, isolation_level=None)
            told = False
            while True:
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                    return lock
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error):
                        raise
                if not told:
                    told = True
                    warnings.warn(
                        f"another run is writing to {self.path.parent}. Waiting until it has "
                        "ended; rows that it stores are not computed again",
                        StoreWarning, stacklevel=2,
                    )  # fmt: skip
                time.sleep(_WAIT)

    def _connected(self) -> sqlite3.Connection:
        name = str(self.path)
        if self.read_only:
            name = f"file:{quote(str(self.path.resolve()))}?mode=ro"
        db = sqlite3.connect(name, timeout=60, isolation_level=None, uri=self.read_only)
        db.row_factory = sqlite3.Row
        return db

    def close(self) -> None:
        """Leaves one file without a log, which can be copied, and read in a read-only folder."""
        if hasattr(self, "db"):
            if not self.read_only:
                with suppress(sqlite3.Error):  # another process reads: the log stays until it ends
                    self.db.execute("PRAGMA busy_timeout = 0")
                    self.db.execute("PRAGMA journal_mode = DELETE")
            self.db.close()
        if self._lock is not None:
            self._lock.close()

    def _value(self, question: str) -> Any:
        found = self.db.execute(question).fetchone()
        return found[0] if found else None

    def _open(self) -> None:
        there = dict(self.db.execute("SELECT name, sql FROM sqlite_master").fetchall())
        if there or self.read_only:
            self._check(there)
        if self.read_only:
            return
        # memory shared between processes, which this needs, is missing on network file systems
        with suppress(sqlite3.OperationalError):
            self.db.execute("PRAGMA journal_mode = WAL")
        if self._value("PRAGMA journal_mode") == "wal":
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        if not there:
            with self.transaction():
                for statement in _TABLES.values():
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                self.db.execute(f"PRAGMA user_version = {FORMAT}")

    def _check(self, there: Mapping[str, str]) -> None:
        """Refuse what no run of ours has written: views, triggers and other tables among it."""
        if self._value("PRAGMA application_id") != APPLICATION:
            raise StoreError(f"{self.path} is an SQLite file of another program. {self._way_out()}")
        found = self._value("PRAGMA user_version")
        if found != FORMAT:
            which = "a newer" if found > FORMAT else "an older"
            raise StoreError(
                f"{self.path} was written by {which} version of onegrad (format {found}; this one "
                f"has {FORMAT}). Use that version, or another --out folder"
            )
        if there != _TABLES:
            raise StoreError(
                f"{self.path} has tables that this version of onegrad does not write: it is of "
                "another version, or was changed. Use another --out folder"
            )
        if self._value("PRAGMA quick_check") != "ok":
            raise StoreError(f"{self.path} is damaged. {self._way_out()}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. A commit survives any kill; after a power failure the last ones may be
        missing (they are computed again), unless the file has no write-ahead log."""
        with self.advice():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def advice(self) -> Iterator[None]:
        """SQLite's own errors as advice."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "full" in text or ("disk I/O" in text and self._no_space()):
                raise StoreError(
                    f"the disk is full: {self.path} keeps what was stored. Free some space and run "
                    "the same command again; it goes on where it stopped"
                ) from None
            if "readonly" in text or "unable to open" in text:
                raise StoreError(
                    f"{self.path} cannot be {'opened' if self.read_only else 'written'} ({text}). "
                    "Use another --out folder, or copy this one to a place that can be written"
                ) from None
            raise StoreError(f"{self.path} cannot be used ({text}). {self._way_out()}") from None

    def _no_space(self) -> bool:
        return shutil.disk_usage(self.path.parent).free < _SMALLEST_ROOM

    def _way_out(self) -> str:
        return (
            "Move it away and run again to start anew, use another --out folder, or try "
            f"`sqlite3 {self.path.name} .recover` to rescue its rows"
        )
