"""What a folder's store has, without the spec that made it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onegrad.errors import OnegradError
from onegrad.results.rows import Results, Row
from onegrad.runs.store import Store


def load_results(folder: str | Path) -> Results:
    """Every row that `run` has stored in a folder, whichever spec or seed count asked for it.

    Points are told apart by the keys in which they differ; a key that was swept over a single value
    is not among them.
    """
    folder = Path(folder)
    if not (folder / "results.sqlite").is_file():
        near = sorted(str(p.parent) for p in Path().glob("results/*/results.sqlite"))
        advice = f"Those below here: {', '.join(near)}" if near else "There is none below here"
        raise OnegradError(
            f"{folder} has no results.sqlite: it is no folder of results. {advice}; "
            "onegrad run makes one."
        )
    store = Store(folder)
    try:
        specs, rows = store.everything()
    finally:
        store.close()
    settings = _settings(specs)
    order = {point: i for i, point in enumerate(sorted(settings, key=lambda p: _rank(settings[p])))}
    results = Results(folder.resolve().name)
    for point, model, seed, *numbers, status, error in sorted(rows, key=lambda r: order[r[0]]):
        test, train, objective, seconds = (math.nan if v is None else v for v in numbers)
        row = Row(settings[point], model, seed, test, train, objective, seconds, status, error)
        results.rows.append(row)
    return results


def _rank(settings: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Numbers in their order, then everything else by its text."""
    return [
        (v, "") if isinstance(v, int | float) else (math.inf, json.dumps(v))
        for v in settings.values()
    ]


def _settings(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of every point the keys that are not the same at all points."""
    flat = {point: _flat(spec) for point, spec in specs.items()}
    keys = dict.fromkeys(key for spec in flat.values() for key in spec)
    varied = [key for key in keys if len({json.dumps(spec.get(key)) for spec in flat.values()}) > 1]
    return {point: {key: spec.get(key) for key in varied} for point, spec in flat.items()}


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as in a spec file; how a point is computed is set in [compare]."""
    return {
        f"{'compare' if table == 'compute' else table}.{key}": value
        for table, keys in spec.items()
        for key, value in keys.items()
    }
