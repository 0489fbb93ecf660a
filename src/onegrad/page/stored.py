"""A finished run, opened for looking at: its rows, and the spec that they belong to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError
from onegrad.page.controls import stored_axis
from onegrad.page.work import finite
from onegrad.runs.load import load_points
from onegrad.spec.experiment import sweepable_keys
from onegrad.spec.sweep import ZIP


def open_stored(folder: Path) -> dict[str, Any]:
    """The rows of `folder`/results.sqlite for the page; the file is only read.

    A store keeps points, not sweeps: what differs between the points are the swept keys.
    """
    if not (folder / "results.sqlite").is_file():
        raise SpecError.of(
            "folder", str(folder), "holds no results.sqlite",
            "Give the --out folder of an `onegrad run`",
        )  # fmt: skip
    loaded, points = load_points(folder)
    if not any(row.status != "damaged" for row in loaded.rows):
        raise SpecError.of(
            "folder", str(folder), "has no rows yet", "Run `onegrad run` with this --out first"
        )
    whole = tuple(row for row in loaded.rows if row.status != "damaged")
    results = replace(loaded, name=_name(folder), rows=whole)
    tables: dict[str, Any] = {}
    for key, value in points[0].items():
        table, _, name = key.partition(".")
        tables.setdefault(table, {})[name] = value
    models = list(dict.fromkeys(row.model for row in results.rows))
    seeds = 1 + max(row.seed for row in results.rows)
    tables["compare"] = {"models": models, "seeds": seeds, **tables["compare"]}
    known = sweepable_keys()  # two runs in one folder may differ in more
    sweep = tables["sweep"] = _sweep(points, [k for k in results.rows[0].point if k in known])
    lists = {**sweep.get(ZIP, {}), **{k: v for k, v in sweep.items() if k != ZIP}}
    axes = [stored_axis(key, values) for key, values in lists.items()]
    summaries = [summary.as_json() for summary in results.summaries()]
    return {
        "name": results.name,
        "tables": tables,
        "rows": finite(summaries),
        "axes": [axis for axis in axes if axis],
    }


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
