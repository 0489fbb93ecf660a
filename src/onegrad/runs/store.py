"""The rows of an experiment in one SQLite file: every row as it arrives, none twice."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from onegrad import __version__
from onegrad.control_variates import CONTROL_COLUMNS, control_columns, controls_from
from onegrad.errors import OnegradError
from onegrad.models import MODELS
from onegrad.results.rows import QUANTITIES, Row
from onegrad.specs.experiment import Point

_APPLICATION = 0x6F6E6567  # "oneg": tells our files from other SQLite files
_TRIES = 100
_SMALLEST_ROOM = 1 << 17  # bytes below which SQLite's "I/O error" is a full disk
_SCHEMA = """
CREATE TABLE rows (
    point TEXT NOT NULL,            -- hash of the problem and of the root seed
    model TEXT NOT NULL,
    compute TEXT NOT NULL,          -- how this model was computed, JSON
    seed INTEGER NOT NULL,
    model_version INTEGER NOT NULL, -- of the model's code: rows of an older one do not count
    test_error REAL, train_error REAL, train_objective REAL,
    control_test REAL, control_train REAL, control_objective REAL, control_norm REAL,
    seconds REAL NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    package_version TEXT NOT NULL,
    PRIMARY KEY (point, model, compute, seed, model_version)
) WITHOUT ROWID;
CREATE TABLE points (point TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID;
"""
_LAYOUT = 2  # user_version: of the tables above
_VALUES = (*QUANTITIES, *CONTROL_COLUMNS, "seconds", "status", "error")


class StoreError(OnegradError):
    """A results file that cannot be read or written."""


def point_spec(point: Point) -> dict[str, Any]:
    """What the numbers of every model depend on, and nothing else (no name, no figure)."""
    problem = point.problem
    spec: dict[str, Any] = problem.model_dump(mode="json", exclude={"data"}, exclude_none=True)
    spec["data"] = problem.data.fingerprint()
    spec["compare"] = {"seed": point.compare.seed}
    return spec


def compute_spec(point: Point, model: str) -> dict[str, Any]:
    """What the numbers of this model depend on beside: keys of [compare].

    Where the risk is exact if it can be, a test set counts as soon as its size is given: whether
    it was needed is known only afterwards.
    """
    compare, record = point.compare, MODELS[model]
    if record.theory is not None:
        return {"accuracy": compare.accuracy}
    spec: dict[str, Any] = {"risk": compare.risk}
    sampled = compare.risk == "sampled" or record.sampled or not point.problem.data.known
    if compare.risk != "exact" and (sampled or compare.test_samples is not None):
        spec["test_samples"] = point.test_samples
    if record.polynomial:
        spec["degree"] = compare.degree
    if compare.dtype != "float64":  # the device changes no number beyond rounding
        spec["dtype"] = compare.dtype
    return spec


def _text(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, ensure_ascii=True)


class Key(NamedTuple):
    """What finds the rows of a model at a point."""

    point: str
    model: str
    compute: str
    version: int


class Stored(NamedTuple):
    """A row as the store has it: hash of its point, JSON of how it was computed, numbers."""

    point: str
    compute: str
    row: Row


def _row(
    settings: dict[str, Any], number: int, model: str, seed: int, values: Sequence[Any]
) -> Row:
    """From the columns _VALUES."""
    test, train, objective, *controls, seconds, status, error = values
    test, train, objective = (math.nan if v is None else v for v in (test, train, objective))
    return Row(
        settings, model, seed, test, train, objective, seconds, status, error,
        controls_from(controls), number,
    )  # fmt: skip


class Store:
    """Rows in `folder`/results.sqlite, or in memory if there is no folder.

    Write-ahead logging where the file system can do it, so that readers and a second run do not
    wait; each `add` is one transaction. A file that is damaged or not ours is reported, never
    replaced.
    """

    def __init__(self, folder: str | Path | None, read_only: bool = False) -> None:
        self.path = Path(":memory:") if folder is None else Path(folder) / "results.sqlite"
        self._specs: dict[int, tuple[Point, str, str]] = {}
        with self._advice():
            if read_only:
                self._db = self._opened_for_reading()
                return
            if folder is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._open()

    def _opened_for_reading(self) -> sqlite3.Connection:
        # without a journal nobody writes, and SQLite need not leave files of its own beside it
        writing = self.path.with_name(self.path.name + "-wal").exists()
        name = quote(str(self.path.resolve()))
        uri = f"file:{name}?mode=ro{'' if writing else '&immutable=1'}"
        self._db = sqlite3.connect(uri, uri=True, timeout=10)
        self._check_owner()
        return self._db

    def _check_owner(self) -> None:
        owner = self._db.execute("PRAGMA application_id").fetchone()[0]
        layout = self._db.execute("PRAGMA user_version").fetchone()[0]
        if owner != _APPLICATION:
            raise StoreError(f"{self.path} is an SQLite file of another program. {self._way_out()}")
        if layout != _LAYOUT:
            age = "an older" if layout < _LAYOUT else "a newer"
            raise StoreError(
                f"{self.path} was written by {age} version of onegrad. Use another --out folder, "
                "or move it away: its rows are computed again"
            )

    def _open(self) -> None:
        # in this order: a second run that is just making the tables sets the owner with them
        fresh = not self._db.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not fresh:
            self._check_owner()
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
                self._db.execute(f"PRAGMA user_version = {_LAYOUT}")
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
        """Store rows in one transaction; a good row that is there already stays, unless the new
        one has the control variates that it lacks."""
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
        key = self.key(point, row.model)
        self._db.execute(
            "INSERT OR IGNORE INTO points VALUES (?, ?)", (key.point, self._spec(point)[1])
        )
        controls = control_columns(row.controls).values()
        values = (*(getattr(row, name) for name in QUANTITIES), *controls, row.seconds, row.status)
        columns = (*_VALUES, "package_version")
        self._db.execute(
            f"INSERT INTO rows (point, model, compute, model_version, seed, {', '.join(columns)}) "
            f"VALUES (?, ?, ?, ?, ?, {', '.join('?' * len(columns))}) ON CONFLICT DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in columns)
            + " WHERE rows.status != 'ok' OR (excluded.status = 'ok' AND rows.control_test IS NULL "
            "AND excluded.control_test IS NOT NULL)",
            (*key, row.seed, *values, row.error, __version__),
        )

    def _spec(self, point: Point) -> tuple[str, str]:
        """Hash and text of a point's spec, worked out once: it may have data to go through."""
        known = self._specs.get(point.number)
        if known is None or known[0] is not point:
            text = _text(point_spec(point))
            known = point, hashlib.sha256(text.encode()).hexdigest()[:24], text
            self._specs[point.number] = known
        return known[1:]

    def key(self, point: Point, model: str) -> Key:
        """Under which the rows of a model at a point are stored."""
        compute = _text(compute_spec(point, model))
        return Key(self._spec(point)[0], model, compute, MODELS[model].version)

    def rows(self, point: Point, models: Iterable[str], seeds: int) -> list[Row]:
        """What is stored of a point, in the order of models and seeds."""
        found = []
        with self._advice():
            for model in models:
                for seed, *values in self._db.execute(
                    f"SELECT seed, {', '.join(_VALUES)} FROM rows WHERE point = ? AND model = ? "
                    "AND compute = ? AND model_version = ? AND seed < ? ORDER BY seed",
                    (*self.key(point, model), seeds),
                ):
                    found.append(_row(point.settings, point.number, model, seed, values))
        return found

    def everything(self) -> tuple[dict[str, dict[str, Any]], list[Stored]]:
        """The spec of every point by its hash, and all rows of today's model versions."""
        with self._advice():
            specs = self._db.execute("SELECT point, spec FROM points").fetchall()
            found = self._db.execute(
                f"SELECT point, model, compute, model_version, seed, {', '.join(_VALUES)} "
                "FROM rows ORDER BY point, model, compute, seed"
            ).fetchall()
        rows = [
            Stored(point, compute, _row({}, 0, model, seed, values))
            for point, model, compute, version, seed, *values in found
            if model in MODELS and version == MODELS[model].version
        ]
        return {point: json.loads(spec) for point, spec in specs}, rows

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
