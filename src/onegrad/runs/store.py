"""The rows of an experiment in one SQLite file: every row as it arrives, none twice."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onegrad import __version__
from onegrad.errors import OnegradError
from onegrad.results.rows import Row
from onegrad.specs.experiment import Point

_APPLICATION = 0x6F6E6567  # "oneg": tells our files from other SQLite files
_TRIES = 100
_SMALLEST_ROOM = 1 << 17  # bytes below which SQLite's "I/O error" is a full disk
_SCHEMA = """
CREATE TABLE rows (
    point TEXT NOT NULL,            -- hash of the problem and of how it is computed
    model TEXT NOT NULL,
    seed INTEGER NOT NULL,
    model_version INTEGER NOT NULL, -- of the model's code: rows of an older one do not count
    test_error REAL, train_error REAL, train_objective REAL,
    seconds REAL NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    package_version TEXT NOT NULL,
    PRIMARY KEY (point, model, seed, model_version)
) WITHOUT ROWID;
CREATE TABLE points (point TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID;
"""

# Raise a model's number when its code changes its numbers: its rows are computed again.
MODEL_VERSIONS: dict[str, int] = {}


class StoreError(OnegradError):
    """A results file that cannot be read or written."""


def point_spec(point: Point) -> dict[str, Any]:
    """Everything that the numbers of a point depend on, and nothing else (no name, no figure)."""
    problem = point.problem
    spec: dict[str, Any] = problem.model_dump(mode="json", exclude={"data"}, exclude_none=True)
    spec["data"] = problem.data.fingerprint()
    compare = point.compare
    spec["compute"] = {"seed": compare.seed, "degree": compare.degree, "risk": compare.risk}
    if compare.risk == "sampled":
        spec["compute"]["test_samples"] = point.test_samples
    if compare.dtype != "float64":  # the device changes no number beyond rounding
        spec["compute"]["dtype"] = compare.dtype
    if compare.accuracy != 0.01:
        spec["compute"]["accuracy"] = compare.accuracy
    return spec


def spec_text(point: Point) -> str:
    return json.dumps(point_spec(point), sort_keys=True, ensure_ascii=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def point_hash(point: Point) -> str:
    return _hash(spec_text(point))


class Store:
    """Rows in `folder`/results.sqlite, or in memory if there is no folder.

    Write-ahead logging where the file system can do it, so that readers and a second run do not
    wait; each `add` is one transaction. A file that is damaged or not ours is reported, never
    replaced.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.path = Path(":memory:") if folder is None else Path(folder) / "results.sqlite"
        self._known: dict[int, tuple[Point, str, str]] = {}
        if folder is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._advice():
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._open()

    def _open(self) -> None:
        # in this order: a second run that is just making the tables sets the owner with them
        fresh = not self._db.execute("SELECT 1 FROM sqlite_master").fetchone()
        owner = self._db.execute("PRAGMA application_id").fetchone()[0]
        if not fresh and owner != _APPLICATION:
            raise StoreError(f"{self.path} is an SQLite file of another program. {self._way_out()}")
        if not fresh and self._db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise StoreError(f"{self.path} is damaged. {self._way_out()}")
        self._keep_a_journal()
        if fresh:
            self._db.execute("BEGIN IMMEDIATE")
            # a second run may have made the tables while this one waited
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._db.execute("COMMIT")

    def _keep_a_journal(self) -> None:
        """WAL needs memory shared between processes, which network file systems do not have."""
        mode = "none"
        for _ in range(_TRIES):
            try:
                mode = self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    break
                time.sleep(0.1)  # a second run is just doing the same
        if mode == "wal":
            self._db.execute("PRAGMA synchronous = NORMAL")  # a commit survives any kill
        else:
            self._db.execute("PRAGMA journal_mode = DELETE").fetchone()

    def close(self) -> None:
        self._db.close()

    def add(self, rows: Iterable[tuple[Point, Row]]) -> None:
        """Store rows in one transaction; a row that is there already stays, unless it failed."""
        with self._advice():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for point, row in rows:
                    self._insert(point, row)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _insert(self, point: Point, row: Row) -> None:
        key, spec = self._identity(point)
        self._db.execute("INSERT OR IGNORE INTO points VALUES (?, ?)", (key, spec))
        self._db.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "test_error = excluded.test_error, train_error = excluded.train_error, "
            "train_objective = excluded.train_objective, seconds = excluded.seconds, "
            "status = excluded.status, error = excluded.error, "
            "package_version = excluded.package_version WHERE rows.status != 'ok'",
            (key, row.model, row.seed, MODEL_VERSIONS.get(row.model, 1), row.test_error,
             row.train_error, row.train_objective, row.seconds, row.status, row.error, __version__),
        )  # fmt: skip

    def _identity(self, point: Point) -> tuple[str, str]:
        """Hash and spec of a point, worked out once: it may have a data set to go through."""
        if id(point) not in self._known:
            text = spec_text(point)
            self._known[id(point)] = (point, _hash(text), text)
        return self._known[id(point)][1:]

    def rows(self, point: Point, models: Iterable[str], seeds: int) -> list[Row]:
        """What is stored of a point, in the order of models and seeds."""
        key, _ = self._identity(point)
        found = []
        with self._advice():
            for model in models:
                for values in self._db.execute(
                    "SELECT seed, test_error, train_error, train_objective, seconds, status, error "
                    "FROM rows WHERE point = ? AND model = ? AND model_version = ? AND seed < ? "
                    "ORDER BY seed",
                    (key, model, MODEL_VERSIONS.get(model, 1), seeds),
                ):
                    seed, test, train, objective, seconds, status, error = values
                    test, train, objective = (
                        math.nan if v is None else v for v in (test, train, objective)
                    )
                    found.append(
                        Row(point.settings, model, seed, test, train, objective, seconds, status,
                            error)
                    )  # fmt: skip
        return found

    def everything(self) -> tuple[dict[str, dict[str, Any]], list[tuple[Any, ...]]]:
        """The spec of every point by its hash, and all rows of today's model versions:
        (point, model, seed, test_error, train_error, train_objective, seconds, status, error)."""
        with self._advice():
            specs = self._db.execute("SELECT point, spec FROM points").fetchall()
            rows = self._db.execute(
                "SELECT point, model, seed, test_error, train_error, train_objective, seconds, "
                "status, error, model_version FROM rows ORDER BY point, model, seed"
            ).fetchall()
        current = [row[:-1] for row in rows if row[-1] == MODEL_VERSIONS.get(row[1], 1)]
        return {point: json.loads(spec) for point, spec in specs}, current

    @contextmanager
    def _advice(self) -> Iterator[None]:
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
            raise StoreError(f"{self.path} cannot be used ({text}). {self._way_out()}") from None

    def _no_space(self) -> bool:
        return shutil.disk_usage(self.path.parent).free < _SMALLEST_ROOM

    def _way_out(self) -> str:
        return (
            "Move it away and run again to start anew, use another --out folder, or try "
            f"`sqlite3 {self.path.name} .recover` to rescue its rows"
        )
