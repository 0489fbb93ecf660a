"""A finished run, opened for looking at: its rows, and the spec that they belong to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onegrad.control_variates import CONTROLS
from onegrad.errors import SpecError
from onegrad.explorer.controls import stored_axis
from onegrad.explorer.work import finite
from onegrad.results.rows import Results, Row
from onegrad.runs.store import MODEL_VERSIONS, StoreError
from onegrad.specs.experiment import sweepable_keys
from onegrad.specs.sweep import ZIP


def open_stored(folder: Path) -> dict[str, Any]:
    """The rows of `folder`/results.sqlite for the page; the file is only read.

    A store keeps points, not sweeps: what differs between the points are the swept keys.
    """
    path = folder / "results.sqlite"
    if not path.is_file():
        raise SpecError.of(
            "folder", str(folder), "holds no results.sqlite",
            "Give the --out folder of an `onegrad run`",
        )  # fmt: skip
    specs, rows = _read(path)
    if not rows:
        raise SpecError.of(
            "folder", str(folder), "has no rows yet", "Run `onegrad run` with this --out first"
        )
    flat = {key: _flat(spec) for key, spec in specs.items()}
    swept = _differing(list(flat.values()))
    results = Results(_name(folder))
    for key, row in rows:
        point = {name: flat[key].get(name) for name in swept}
        results.rows.append(Row(point, *row))
    first = specs[rows[0][0]]
    tables = {k: v for k, v in first.items() if k != "compute"}
    models = list(dict.fromkeys(row[0] for _, row in rows if row[0] not in CONTROLS))
    seeds = 1 + max(row[1] for _, row in rows)
    tables["compare"] = {"models": models, "seeds": seeds, **first.get("compute", {})}
    known = sweepable_keys()  # two runs in one folder may differ in more
    sweep = tables["sweep"] = _sweep(list(flat.values()), [key for key in swept if key in known])
    lists = {**sweep.get(ZIP, {}), **{k: v for k, v in sweep.items() if k != ZIP}}
    axes = [stored_axis(key, values) for key, values in lists.items()]
    summaries = [summary.as_json() for summary in results.summaries()]
    return {
        "name": results.name,
        "tables": tables,
        "rows": finite(summaries),
        "axes": [axis for axis in axes if axis],
    }


def _read(path: Path) -> tuple[dict[str, Any], list[tuple[str, tuple[Any, ...]]]]:
    # without a journal nobody writes, and SQLite need not leave files of its own beside it
    writing = path.with_name(path.name + "-wal").exists()
    uri = f"file:{quote(str(path.resolve()))}?mode=ro{'' if writing else '&immutable=1'}"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=10)
        try:
            specs = {k: json.loads(text) for k, text in db.execute("SELECT * FROM points")}
            found = db.execute(
                "SELECT point, model, seed, test_error, train_error, train_objective, seconds, "
                "status, error, model_version FROM rows ORDER BY point, model, seed"
            ).fetchall()
        finally:
            db.close()
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} cannot be read as results of onegrad ({error})") from None
    nan = float("nan")
    rows = [
        (key, (model, seed, *(nan if v is None else v for v in numbers), seconds, status, error))
        for key, model, seed, *numbers, seconds, status, error, version in found
        if version == MODEL_VERSIONS.get(model, 1)
    ]
    return specs, rows


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as in a spec, where the store's [compute] is part of [compare]."""
    return {
        f"{'compare' if name == 'compute' else name}.{key}": value
        for name, table in spec.items()
        for key, value in table.items()
    }


def _differing(points: list[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for point in points for key in point)
    return [key for key in keys if len({json.dumps(p.get(key)) for p in points}) > 1]


def _sweep(points: list[dict[str, Any]], swept: list[str]) -> dict[str, Any]:
    """The lists of the swept keys; those that change at the same points advance together."""
    groups: dict[str, list[str]] = {}
    for key in swept:
        texts = [json.dumps(point.get(key)) for point in points]
        order = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        groups.setdefault(json.dumps([order[text] for text in texts]), []).append(key)
    sweep: dict[str, Any] = {}
    for keys in groups.values():
        rows = {json.dumps([p.get(k) for k in keys]): [p.get(k) for k in keys] for p in points}
        known = [row for row in rows.values() if row[0] is not None]
        known.sort(key=lambda row: (str(type(row[0])), row[0]))
        lists = {key: [row[i] for row in known] for i, key in enumerate(keys)}
        if len(keys) > 1 and ZIP not in sweep:
            sweep[ZIP] = lists
        else:
            sweep |= lists
    return sweep


def _name(folder: Path) -> str:
    try:
        name = json.loads((folder / "results.json").read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return folder.resolve().name
    return str(name)
