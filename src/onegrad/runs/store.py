"""The rows of an experiment in one SQLite file: every row as it arrives, none twice."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from onegrad import __version__
from onegrad.results.rows import SPECTRUM, STORED, Row
from onegrad.runs.database import (
    NUMBERS,
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
_SPECTRUM_VERSION = 7  # raise it when numbers of spectra change
_TEXTS = ("point", "model", "compute", "status", "error", "package_version")
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
    return _SPECTRUM_VERSION if model == SPECTRUM else MODELS[model.partition(":")[0]].version


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
    is "damaged".
    """

    def __init__(self, folder: str | Path | None, read_only: bool = False) -> None:
        self._specs: dict[int, tuple[Point, str, str]] = {}
        self._keys: dict[tuple[int, str], tuple[Point, Key]] = {}
        self._file = Database(folder, read_only)
        self._db, self._advice = self._file.db, self._file.advice
        self.path = self._file.path
        try:
            if not read_only:
                self._leave_out_damaged()
                self._tell_versions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def _leave_out_damaged(self) -> None:
        """Written anew as a whole: a row whose key is damaged is not found by it."""
        with self._advice():
            rows = self._db.execute("SELECT * FROM rows").fetchall()
        good = [tuple(row) for row in rows if _is_whole(row)]
        if len(good) == len(rows):
            return
        bad = [f"{r['model']}, seed {r['seed']} of point {str(r['point'])[:8]}"
               for r in rows if not _is_whole(r)]  # fmt: skip
        with self._file.transaction():
            self._db.execute("DELETE FROM rows")
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR IGNORE INTO rows VALUES ({marks})", good)
        shown = "; ".join(bad[:_NAMED]) + ("; …" if len(bad) > _NAMED else "")
        does, was = ("row does", "was") if len(bad) == 1 else ("rows do", "were")
        warnings.warn(
            f"{self.path} was damaged on disk: {len(bad)} {does} not match the checksum and "
            f"{was} left out ({shown})",
            StoreWarning, stacklevel=2,
        )  # fmt: skip

    def _tell_versions(self) -> None:
        """Rows of another version of onegrad are used where their model's numbers are the same."""
        with self._advice():
            found = self._db.execute(
                "SELECT package_version, count(*) FROM rows WHERE package_version != ? GROUP BY 1",
                (__version__,),
            ).fetchall()
        if found:
            which = ", ".join(f"{count} by onegrad {version}" for version, count in found)
            warnings.warn(
                f"{self.path} has rows of other versions ({which}; this is {__version__}). A model "
                "whose numbers have changed since is computed again",
                StoreWarning, stacklevel=2,
            )  # fmt: skip

    # --- writing ------------------------------------------------------------------------

    def plan(self, cells: Mapping[tuple[int, str], int], points: Sequence[Point]) -> None:
        """Remember how many repetitions of each (number of a point, model) are wanted, on disk, so
        that rows which are lost later are missed."""
        with self._file.transaction():
            for (number, model), seeds in cells.items():
                key = self.key(points[number], model)
                self._keep_spec(points[number])
                self._db.execute(
                    "INSERT INTO planned VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET seeds = max(seeds, excluded.seeds)",
                    (*key, seeds),
                )
        with self._advice():
            self._db.execute("PRAGMA wal_checkpoint")

    def add(self, rows: Iterable[tuple[Point, Row]]) -> None:
        """Store rows in one transaction; a good row that is there already stays, unless the new
        one has the control variates that it lacks."""
        with self._file.transaction():
            for point, row in rows:
                self._insert(point, row)

    def _insert(self, point: Point, row: Row) -> None:
        key = self.key(point, row.model)
        self._keep_spec(point)
        record: dict[str, Any] = {"point": key.point, "model": key.model, "compute": key.compute}
        record |= {"seed": row.seed, "model_version": key.version}
        record |= {name: float(getattr(row, name)) for name in STORED}
        record |= {name: float(v) for name, v in control_columns(row.controls).items()}
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

    def _keep_spec(self, point: Point) -> None:
        """The settings of a point, written over what a damage has left of them."""
        self._db.execute(
            "INSERT INTO points VALUES (?, ?) ON CONFLICT DO UPDATE SET spec = excluded.spec "
            "WHERE points.spec != excluded.spec",
            self._spec(point),
        )

    def _spec(self, point: Point) -> tuple[str, str]:
        """Hash and text of a point's spec, worked out once: it may have data to go through."""
        known = self._specs.get(point.number)
        if known is None or known[0] is not point:
            text = _text(point_spec(point))
            known = point, text_hash(text), text
            self._specs[point.number] = known
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
            if not _is_known(row["model"]):
                continue  # a lost row is noticed later, by the number of rows wanted
            if whole and not _is_current(row["model"], row["model_version"]):
                continue
            specs.setdefault(row["point"], {"compare": {"damaged": row["point"]}})
            compute = row["compute"] if whole else "{}"
            rows.append(Stored(row["point"], compute, _row({}, 0, row, whole)))
        return specs, rows

    def missing(self, stored: Sequence[Stored]) -> int:
        """How many rows the runs on this file wanted that are not among `stored`, or damaged."""
        with self._advice():
            planned = self._db.execute("SELECT * FROM planned").fetchall()
        there = Counter(
            (one.point, one.row.model, one.compute) for one in stored if one.row.status != "damaged"
        )
        return sum(
            max(0, one["seeds"] - there[one["point"], one["model"], one["compute"]])
            for one in planned
            if _is_current(one["model"], one["model_version"])
        )


def _is_known(model: Any) -> bool:
    return isinstance(model, str) and (model == SPECTRUM or model in MODELS)


def _is_current(model: str, version: int) -> bool:
    return _is_known(model) and version == version_of(model)


_OF_KEY = "point = ? AND model = ? AND compute = ? AND model_version = ?"


def _is_whole(row: sqlite3.Row | dict[str, Any]) -> bool:
    """Whether it is what was stored, of the types that we store."""
    numbers = [value for name in NUMBERS if (value := row[name]) is not None]
    return (
        row["checksum"] == checksum(row)
        and {*map(type, numbers), type(row["seconds"])} == {float}
        and all(map(math.isfinite, numbers))
        and {type(row[name]) for name in _TEXTS} == {str}
        and type(row["seed"]) is int
    )


def _row(
    settings: dict[str, Any],
    number: int,
    record: sqlite3.Row | dict[str, Any],
    whole: bool | None = None,
) -> Row:
    """A row of the file; what it has no number for is NaN. `whole` if that is known already."""
    seed = record["seed"] if isinstance(record["seed"], int) else -1
    damaged = Row(
        settings, str(record["model"]), seed, status="damaged", error=_DAMAGED, number=number
    )
    if not (_is_whole(record) if whole is None else whole):
        return damaged
    named: dict[str, Any] = {
        name: math.nan if record[name] is None else record[name] for name in STORED
    }
    named |= {name: record[name] for name in ("seconds", "status", "error")}
    controls = controls_from([record[name] for name in CONTROL_COLUMNS])
    row = Row(settings, record["model"], seed, **named, controls=controls, number=number)
    if record["spectrum"] is None:
        return row
    try:
        row = replace(row, spectrum=json.loads(record["spectrum"]))
        row.spectrum_columns()
        return row
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
        return damaged
