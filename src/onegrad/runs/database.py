"""The SQLite file of a store: made, opened, migrated, read where it cannot be written."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onegrad.errors import OnegradError
from onegrad.results.rows import SPECTRUM_COLUMNS, STORED
from onegrad.simulate.control_variates import CONTROL_COLUMNS

APPLICATION = 0x6F6E6567  # "oneg": tells our files from other SQLite files
FORMAT = 3  # of the tables below, kept as the file's user_version
_OLDEST = 2  # that can be migrated: version 0.1 kept rows under other keys
KEY = ("point", "model", "compute", "seed", "model_version")
# of an earlier version: kept in its rows and their checksums, and not read
FORMER = ("control_norm",)
NUMBERS = (*STORED, *CONTROL_COLUMNS[:3], *FORMER, *CONTROL_COLUMNS[3:], *SPECTRUM_COLUMNS)
TEXTS = ("spectrum", "checksum")  # columns of later formats that are no numbers
VALUES = (
    *NUMBERS,
    "spectrum",
    "seconds",
    "status",
    "error",
)  # of a row, beside what it is a row of
COLUMNS = (*KEY, *VALUES, "package_version")  # what a checksum covers
_TRIES = 100
SHARE = 0.02  # of a run's time that it may wait for the disk
_SMALLEST_ROOM = 1 << 17  # bytes below which SQLite's "I/O error" is a full disk
_NUMBERS = ", ".join(f"{name} REAL" for name in NUMBERS)
_SCHEMA = f"""
CREATE TABLE rows (
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
    checksum TEXT,
    PRIMARY KEY (point, model, compute, seed, model_version)
) WITHOUT ROWID;
CREATE TABLE points (point TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID;
"""
# Who computes on this file, and which rows they have begun (claims.py).
_SHARING = """
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, machine TEXT, process INTEGER, started TEXT, beat INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    point TEXT, model TEXT, compute TEXT, seed INTEGER, run TEXT,
    PRIMARY KEY (point, model, compute, seed)
) WITHOUT ROWID;
"""


class StoreError(OnegradError):
    """A results file that cannot be read or written."""


class StoreWarning(UserWarning):
    """Something in a results file that was found wrong and mended."""


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def checksum(record: Mapping[str, Any] | sqlite3.Row) -> str:
    """Of a row by column: 16 digits of BLAKE2b over the names and values of what is not NULL.

    Columns of a later format, which are NULL in earlier rows, do not change it.
    """
    parts = []
    for name in COLUMNS:
        value = record[name]
        if value is None:
            continue
        if isinstance(value, float):
            if value == value:  # SQLite stores NaN as NULL
                parts.append(f"{name} {value.hex()}")
        else:
            text = str(value)
            parts.append(f"{name} {type(value).__name__} {len(text)} {text}")
    text = ";".join(parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Database:
    """An open results file; without a folder, one in memory.

    Write-ahead logging where the file system can do it, so that readers and a second run do not
    wait. A file that is damaged, not ours or made by a newer version is reported, never replaced.
    One that cannot be written, or is asked for with `read_only`, is opened for reading, and reading
    leaves no trace in its folder.
    """

    def __init__(self, folder: str | Path | None, read_only: bool = False) -> None:
        self.path = Path(":memory:") if folder is None else Path(folder) / "results.sqlite"
        self.in_memory = folder is None
        self._logs, self._next_wait = False, 0.0
        self.read_only = read_only or (not self.in_memory and _cannot_write(self.path))
        if folder is not None and not self.read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.advice():
            self.db = self.connect()
            self.db.row_factory = sqlite3.Row
            self._open()

    def connect(self, **options: Any) -> sqlite3.Connection:
        """Another connection to the same file."""
        options |= {"timeout": 60, "isolation_level": None}
        if not self.read_only:
            return sqlite3.connect(self.path, **options)
        # without a journal nobody writes, and SQLite need not leave files of its own beside it
        journal = self.path.with_name(self.path.name + "-wal")
        written = journal.exists() and journal.stat().st_size > 0
        mode = "mode=ro" if written else "mode=ro&immutable=1"
        return sqlite3.connect(
            f"file:{quote(str(self.path.resolve()))}?{mode}", uri=True, **options
        )

    def close(self) -> None:
        self.db.close()

    def _value(self, question: str) -> Any:
        found = self.db.execute(question).fetchone()
        return found[0] if found else None

    def _open(self) -> None:
        # in this order: a second run that is just making the tables sets the owner with them
        fresh = not self._value("SELECT 1 FROM sqlite_master")
        owner = self._value("PRAGMA application_id")
        if not fresh and owner != APPLICATION:
            raise StoreError(f"{self.path} is an SQLite file of another program. {self._way_out()}")
        self.format = self._value("PRAGMA user_version")
        if self.format > FORMAT:
            raise StoreError(
                f"{self.path} was made by a newer version of onegrad (format {self.format}, this "
                f"one knows {FORMAT}). Install the newer version, or use another --out folder"
            )
        if not fresh and self.format < _OLDEST:
            raise StoreError(
                f"{self.path} was written by an older version of onegrad. Use another --out "
                "folder, or move it away: its rows are computed again"
            )
        if not fresh and self._value("PRAGMA quick_check") != "ok":
            raise StoreError(f"{self.path} is damaged. {self._way_out()}")
        if self.read_only:
            if self.format < FORMAT or self._missing_columns():
                raise StoreError(
                    f"{self.path} was written by an older version of onegrad. Run it once more: "
                    "the rows stay, and what this version adds is added"
                )
            return
        self._keep_a_journal()
        if fresh or self.format < FORMAT or self._missing_columns():
            self._make()

    def _make(self) -> None:
        """The tables of a new file, or those that an older one lacks."""
        self.db.execute("BEGIN IMMEDIATE")
        # a second run may have made the tables while this one waited
        if not self._value("SELECT 1 FROM sqlite_master"):
            for statement in _SCHEMA.split(";\n"):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id = {APPLICATION}")
        for name in self._missing_columns():
            kind = "TEXT" if name in TEXTS else "REAL"
            self.db.execute(f"ALTER TABLE rows ADD COLUMN {name} {kind}")
        if self._value("PRAGMA user_version") < FORMAT:
            self._add_checksums()
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in _SHARING.split(";\n"):
            self.db.execute(statement)
        self.db.execute("COMMIT")
        self.format = FORMAT

    def _missing_columns(self) -> list[str]:
        there = {column["name"] for column in self.db.execute("PRAGMA table_info(rows)")}
        return [name for name in (*NUMBERS, *TEXTS) if name not in there]

    def _add_checksums(self) -> None:
        """Rows of an older format have none: they are held to what they are today."""
        where = " AND ".join(f"{name} = ?" for name in KEY)
        for row in self.db.execute("SELECT * FROM rows").fetchall():
            key = [row[name] for name in KEY]
            self.db.execute(f"UPDATE rows SET checksum = ? WHERE {where}", [checksum(row), *key])

    def _keep_a_journal(self) -> None:
        """WAL needs memory shared between processes, which network file systems do not have."""
        mode = "none"
        for _ in range(_TRIES):
            try:
                mode = self._value("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    break
                time.sleep(0.1)  # a second run is just doing the same
        if mode != "wal":
            self._value("PRAGMA journal_mode = DELETE")
        self._logs = mode == "wal"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. A commit survives any kill, and a power failure once it is on disk.

        A commit waits for the disk unless that would cost more than SHARE of the time since the
        last one did: those in between are on disk with the next one that waits, or with the next
        sign of life (claims.py). Waiting each time would cost a run of small problems a tenth and
        more (benchmarks/disk.py).
        """
        with self.advice():
            wait = not self._logs or time.monotonic() >= self._next_wait
            self.db.execute(f"PRAGMA synchronous = {'FULL' if wait else 'NORMAL'}")
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                start = time.monotonic()
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
            if wait:
                end = time.monotonic()
                self._next_wait = end + (end - start) / SHARE

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
            if "locked" in text:
                raise StoreError(
                    f"{self.path} is locked by another program for more than a minute. Wait for "
                    "it, or use another --out folder"
                ) from None
            if self.read_only and "unable to open" in text:
                raise StoreError(
                    f"{self.path} was being written when its folder became read-only. Copy the "
                    "folder to a place that can be written, and use it there"
                ) from None
            raise StoreError(f"{self.path} cannot be used ({text}). {self._way_out()}") from None

    def _no_space(self) -> bool:
        return shutil.disk_usage(self.path.parent).free < _SMALLEST_ROOM

    def _way_out(self) -> str:
        return (
            "Move it away and run again to start anew, use another --out folder, or try "
            f"`sqlite3 {self.path.name} .recover` to rescue its rows"
        )


def _cannot_write(path: Path) -> bool:
    """Whether there is a file, and it or its folder (where SQLite keeps a journal) is read-only."""
    if not path.is_file():
        return False
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return True
    if not hasattr(os, "statvfs"):
        return False
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
