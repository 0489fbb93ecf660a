"""The rows of an experiment in one SQLite file: every row as it arrives, none twice."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onegrad import __version__
from onegrad.results.rows import SPECTRUM, STORED, Row
from onegrad.runs.claims import Cell, Claims
from onegrad.runs.database import (
    COLUMNS,
    FORMER,
    VALUES,
    Database,
    StoreError,
    StoreWarning,
    checksum,
    text_hash,
)
from onegrad.simulate.control_variates import CONTROL_COLUMNS, control_columns, controls_from
from onegrad.simulate.models import MODELS
from onegrad.spec.experiment import Point

__all__ = ["Key", "Store", "StoreError", "StoreWarning", "Stored", "compute_spec", "point_spec"]

_DAMAGED = "the stored row does not match its checksum: a bit of the file has flipped"
_SPECTRUM_VERSION = 6  # raise it when numbers of spectra change
_NAMED = 5  # damaged rows that a warning names


def point_spec(point: Point) -> dict[str, Any]:
    """What the numbers of every model depend on, and nothing else (no name, no figure).

    Activations stand there by their content, not by their name alone.
    """
    problem = point.problem
    spec: dict[str, Any] = problem.model_dump(
        mode="json", exclude={"data"}, exclude_none=True, context={"identity": True}
    )
    spec["data"] = problem.data.fingerprint()
    spec["compare"] = {"seed": point.compare.seed}
    if point.compare.redraw != "all":
        spec["compare"]["redraw"] = point.compare.redraw
    return spec


def compute_spec(point: Point, model: str) -> dict[str, Any]:
    """What the numbers of this model depend on beside: keys of [compare].

    Where the risk is exact if it can be, a test set counts as soon as its size is given: whether
    it was needed is known only afterwards.
    """
    if model == SPECTRUM:
        return {}
    compare, record = point.compare, MODELS[model]
    if record.theory is not None:
        corrected = compare.finite_size and record.finite_size
        return {"accuracy": compare.accuracy} | ({} if corrected else {"finite_size": False})
    spec: dict[str, Any] = {"risk": compare.risk}
    sampled = compare.risk == "sampled" or record.sampled or not point.problem.data.known
    if compare.risk != "exact" and (sampled or compare.test_samples is not None):
        spec["test_samples"] = point.test_samples
    if record.polynomial:
        spec["degree"] = compare.degree
    if point.precision != "float64":  # the device changes no number beyond rounding
        spec["dtype"] = compare.dtype
    return spec


def _text(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, ensure_ascii=True)


def version_of(model: str) -> int:
    """Of the model's numbers, as its record says; stored rows of another one do not count."""
    if model == SPECTRUM:
        return _SPECTRUM_VERSION
    return MODELS[model.partition(":")[0]].version


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


class Store:
    """Rows in `folder`/results.sqlite, or in memory if there is no folder.

    Each `add` is one transaction. A row carries a checksum, which is verified whenever it is read:
    rows that do not match are left out when the file is opened for writing, with a StoreWarning
    that names them, so that a run computes them again; where the file is only read, their status
    is "damaged". A file that cannot be written is opened for reading.
    """

    def __init__(self, folder: str | Path | None, read_only: bool = False) -> None:
        self._specs: dict[int, tuple[Point, str, str]] = {}
        self._keys: dict[tuple[int, str], tuple[Point, Key]] = {}
        self._forgotten: set[str] = set()  # points whose spec was damaged
        self._file = Database(folder, read_only)
        self._db, self._advice = self._file.db, self._file.advice
        self.path, self.read_only = self._file.path, self._file.read_only
        self._claims: Claims | None = None
        if not self.read_only:
            try:
                self._leave_out_damaged()
                self._claims = None if self._file.in_memory else Claims(self._file)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._claims is not None:
            self._claims.close()
        self._file.close()

    # --- damage -------------------------------------------------------------------------

    def _leave_out_damaged(self) -> None:
        with self._advice():
            if next(self._damage(), None) is None:
                return
        with self._file.transaction():  # another run may just have done it
            damage = list(self._damage())
            if not damage:
                return
            # row by row it cannot be done: a damaged key is not found by itself
            good = [row for row in self._db.execute("SELECT * FROM rows") if _is_whole(row)]
            self._db.execute("DELETE FROM rows")
            names = (*COLUMNS, "checksum")
            self._db.executemany(
                f"INSERT OR IGNORE INTO rows ({', '.join(names)}) "
                f"VALUES ({', '.join('?' * len(names))})",
                [[row[name] for name in names] for row in good],
            )
            points = self._db.execute("SELECT point, spec FROM points").fetchall()
            whole = [tuple(p) for p in points if text_hash(p["spec"]) == p["point"]]
            self._db.execute("DELETE FROM points")
            self._db.executemany("INSERT INTO points VALUES (?, ?)", whole)
        self._forgotten = {row["point"] for row in good} - {key for key, _ in whole}
        shown = "; ".join(damage[:_NAMED]) + ("; …" if len(damage) > _NAMED else "")
        does, was = ("entry does", "was") if len(damage) == 1 else ("entries do", "were")
        warnings.warn(
            f"{self.path} was damaged on disk: {len(damage)} {does} not match the checksum and "
            f"{was} left out ({shown})",
            StoreWarning, stacklevel=2,
        )  # fmt: skip

    def _damage(self) -> Iterator[str]:
        """What does not match its checksum, in words."""
        for row in self._db.execute("SELECT * FROM rows"):
            if not _is_whole(row):
                yield f"{row['model']}, seed {row['seed']} of point {str(row['point'])[:8]}"
        for key, spec in self._db.execute("SELECT point, spec FROM points"):
            if text_hash(spec) != key:
                yield f"the settings of point {str(key)[:8]}"

    # --- writing ------------------------------------------------------------------------

    def add(self, rows: Iterable[tuple[Point, Row]]) -> None:
        """Store rows in one transaction; a good row that is there already stays, unless the new
        one has the control variates that it lacks."""
        if self.read_only:
            raise StoreError(
                f"{self.path} is read-only and lacks rows that this run asks for. Use another "
                "--out folder, or make it writable"
            )
        added = list(rows)
        with self._file.transaction():
            for point, row in added:
                self._insert(point, row)
        if self._claims is not None:
            self._claims.release([self._cell(point, row.model, row.seed) for point, row in added])

    def _insert(self, point: Point, row: Row) -> None:
        key = self.key(point, row.model)
        self._db.execute(
            "INSERT OR IGNORE INTO points VALUES (?, ?)", (key.point, self._spec(point)[1])
        )
        record: dict[str, Any] = {"point": key.point, "model": key.model, "compute": key.compute}
        record |= {"seed": row.seed, "model_version": key.version}
        record |= {name: float(getattr(row, name)) for name in STORED}
        record |= {name: float(v) for name, v in control_columns(row.controls).items()}
        record |= dict.fromkeys(FORMER)
        record |= row.spectrum_columns()
        record["spectrum"] = None if row.spectrum is None else json.dumps(row.spectrum)
        record |= {"seconds": float(row.seconds), "status": row.status, "error": row.error}
        record["package_version"] = __version__
        record["checksum"] = checksum(record)
        changed = (*VALUES, "package_version", "checksum")
        self._db.execute(
            f"INSERT INTO rows ({', '.join(record)}) VALUES ({', '.join('?' * len(record))}) ON "
            f"CONFLICT DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changed)} "
            "WHERE rows.status != 'ok' OR (excluded.status = 'ok' AND rows.control_power IS NULL "
            "AND excluded.control_power IS NOT NULL)",
            list(record.values()),
        )

    def claim(
        self, cells: Sequence[tuple[Point, str, int]], enough: Callable[[Row], bool]
    ) -> list[Row] | None:
        """Begin to compute these (point, model, seed), unless another run on this file does.

        Returns nothing of them (they are ours now), None (another run has begun them: ask again
        later), or the rows of all of them, which another run has stored in the meantime and which
        are `enough`.
        """
        if self._claims is None:
            return []
        wanted = [self._cell(*cell) for cell in cells]
        if not self._claims.take(wanted):
            return None
        stored = [row for cell in cells if (row := self._stored(*cell)) is not None]
        if len([row for row in stored if row.status == "ok" and enough(row)]) < len(cells):
            return []
        self._claims.release(wanted)
        return stored

    def _cell(self, point: Point, model: str, seed: int) -> Cell:
        return *self.key(point, model)[:3], seed

    def _spec(self, point: Point) -> tuple[str, str]:
        """Hash and text of a point's spec, worked out once: it may have data to go through."""
        known = self._specs.get(point.number)
        if known is None or known[0] is not point:
            text = _text(point_spec(point))
            known = point, text_hash(text), text
            self._specs[point.number] = known
            if known[1] in self._forgotten:
                with self._advice():
                    self._db.execute("INSERT OR IGNORE INTO points VALUES (?, ?)", known[1:])
        return known[1:]

    def key(self, point: Point, model: str) -> Key:
        """Under which the rows of a model at a point are stored."""
        known = self._keys.get((point.number, model))
        if known is None or known[0] is not point or known[1].version != version_of(model):
            compute = _text(compute_spec(point, model))
            known = point, Key(self._spec(point)[0], model, compute, version_of(model))
            self._keys[point.number, model] = known
        return known[1]

    # --- reading ------------------------------------------------------------------------

    def _stored(self, point: Point, model: str, seed: int) -> Row | None:
        with self._advice():
            found = self._db.execute(
                f"SELECT * FROM rows WHERE {_OF_KEY} AND seed = ?", (*self.key(point, model), seed)
            ).fetchone()
        return None if found is None else _row(point.settings, point.number, found)

    def rows(self, point: Point, models: Iterable[str], seeds: int) -> list[Row]:
        """What is stored of a point, in the order of models and seeds."""
        found = []
        with self._advice():
            for model in models:
                rows = self._db.execute(
                    f"SELECT * FROM rows WHERE {_OF_KEY} AND seed < ? ORDER BY seed",
                    (*self.key(point, model), seeds),
                )
                found += [_row(point.settings, point.number, row) for row in rows]
        return found

    def everything(self) -> tuple[dict[str, dict[str, Any]], list[Stored]]:
        """The spec of every point by its hash, and all rows of today's model versions; damaged
        ones say so."""
        with self._advice():
            points = self._db.execute("SELECT point, spec FROM points").fetchall()
            found = self._db.execute(
                "SELECT * FROM rows ORDER BY point, model, compute, seed"
            ).fetchall()
        specs = {key: json.loads(spec) for key, spec in points if text_hash(spec) == key}
        rows = []
        names = found[0].keys() if found else []
        for values in found:
            row = dict(zip(names, values, strict=True))  # a sqlite3.Row searches for every name
            whole = _is_whole(row)
            if whole and not _is_current(row["model"], row["model_version"]):
                continue
            specs.setdefault(row["point"], {"compare": {"damaged": row["point"]}})
            compute = row["compute"] if whole else "{}"
            rows.append(Stored(row["point"], compute, _row({}, 0, row, whole)))
        return specs, rows


def _is_current(model: str, version: int) -> bool:
    known = model == SPECTRUM or model.partition(":")[0] in MODELS
    return known and version == version_of(model)


_OF_KEY = "point = ? AND model = ? AND compute = ? AND model_version = ?"


def _is_whole(row: sqlite3.Row | dict[str, Any]) -> bool:
    return bool(row["checksum"] == checksum(row))


def _row(
    settings: dict[str, Any],
    number: int,
    record: sqlite3.Row | dict[str, Any],
    whole: bool | None = None,
) -> Row:
    """A row of the file; what it has no number for is NaN. `whole` if that is known already."""
    seed = record["seed"] if isinstance(record["seed"], int) else -1
    if not (_is_whole(record) if whole is None else whole):
        text = str(record["model"])
        return Row(settings, text, seed, status="damaged", error=_DAMAGED, number=number)
    named: dict[str, Any] = {
        name: math.nan if record[name] is None else record[name] for name in STORED
    }
    named |= {name: record[name] for name in ("seconds", "status", "error")}
    if record["spectrum"] is not None:
        named["spectrum"] = json.loads(record["spectrum"])
    controls = controls_from([record[name] for name in CONTROL_COLUMNS])
    return Row(settings, record["model"], seed, **named, controls=controls, number=number)
