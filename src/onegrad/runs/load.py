"""What a folder's store has, without the spec that made it."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onegrad.errors import OnegradError, verb
from onegrad.results.results import Results
from onegrad.results.rows import SPECTRUM
from onegrad.runs.store import Store, Stored, StoreError, StoreWarning

Flat = dict[str, Any]  # dotted keys of a spec


@verb
def load_results(folder: str | Path) -> Results:
    """Every row that `run` has stored in a folder, whichever spec or seed count asked for it.

    Points are told apart by the keys in which they differ; a key that was swept over a single value
    is not among them. A StoreWarning says how many rows the runs wanted that are not there.
    """
    return load_points(folder)[0]


def load_points(folder: str | Path) -> tuple[Results, list[Flat]]:
    """The same with the whole spec of every point, by its number."""
    folder = Path(folder)
    if not (folder / "results.sqlite").is_file():
        near = sorted(str(p.parent) for p in Path().glob("results/**/results.sqlite"))
        advice = f"Those below here: {', '.join(near)}" if near else "There is none below here"
        raise OnegradError(
            f"{folder} has no results.sqlite: it is no folder of results. {advice}; "
            "onegrad run makes one."
        )
    store = Store(folder, read_only=True)
    try:
        specs, stored = store.everything()
        missing = store.missing(stored)
        if missing:
            good = sum(one.row.status != "damaged" for one in stored)
            warnings.warn(
                f"{folder} has {good:,} of {good + missing:,} rows that its runs wanted. Run the "
                "same command again to compute the others",
                StoreWarning, stacklevel=3,
            )  # fmt: skip
        results, flat = _points(folder.resolve().name, specs, stored)
        return replace(results, provenance=_provenance(folder)), flat
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError) as e:
        raise StoreError(
            f"{store.path} holds values that onegrad does not write ({type(e).__name__}: {e}). It "
            "was changed by another program: run again with another --out folder"
        ) from None
    finally:
        store.close()


def _provenance(folder: Path) -> dict[str, str]:
    """As the run wrote it; empty where it was stopped before its end."""
    try:
        found = json.loads((folder / "results.json").read_text(encoding="utf-8"))["provenance"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return {str(key): str(value) for key, value in found.items()}


def _points(
    name: str, specs: Mapping[str, Mapping[str, Any]], stored: Sequence[Stored]
) -> tuple[Results, list[Flat]]:
    places = _places({point: _flat(spec) for point, spec in specs.items()}, stored)
    every = [spec for found in places.values() for spec in found]
    keys = dict.fromkeys(key for spec in every for key in spec)
    varied = [key for key in keys if len({json.dumps(spec.get(key)) for spec in every}) > 1]
    every.sort(key=lambda spec: [_rank(spec.get(key)) for key in varied])
    points = {json.dumps(spec): spec for spec in every}
    number = {text: i for i, text in enumerate(points)}
    settings = [{key: spec.get(key) for key in varied} for spec in points.values()]
    numbers = {at: [number[json.dumps(spec)] for spec in own] for at, own in places.items()}
    rows = [
        replace(one.row, point=settings[i], number=i)
        for one in stored
        for i in numbers[one.point, one.compute]
    ]
    rows.sort(key=lambda row: row.number)
    spectra = tuple(row for row in rows if row.model == SPECTRUM)
    errors = tuple(row for row in rows if row.model != SPECTRUM)
    return Results(name, errors, spectra), list(points.values())


def _places(
    specs: Mapping[str, Flat], stored: Sequence[Stored]
) -> dict[tuple[str, str], list[Flat]]:
    """The points at which rows of each (point, compute) stand, as specs.

    A key of [compare] that some models depend on is part of the points if it has several values; a
    row that does not depend on it stands at each of them.
    """
    places = dict.fromkeys((one.point, one.compute) for one in stored)
    own = {compute: _flat({"compare": json.loads(compute)}) for _, compute in places}
    values: dict[str, dict[str, Any]] = {}
    for flat in own.values():
        for key, value in flat.items():
            values.setdefault(key, {})[json.dumps(value)] = value
    varied = {key: list(found.values()) for key, found in values.items() if len(found) > 1}
    found = {}
    for point, compute in places:
        choices = [[own[compute][k]] if k in own[compute] else every for k, every in varied.items()]
        found[point, compute] = [
            specs[point] | dict(zip(varied, choice, strict=True))
            for choice in itertools.product(*choices)
        ]
    return found


def _rank(value: Any) -> tuple[float, str]:
    """Numbers in their order, then everything else by its text."""
    return (value, "") if isinstance(value, int | float) else (math.inf, json.dumps(value))


def _flat(spec: Mapping[str, Any]) -> Flat:
    """Dotted keys as in a spec file."""
    return {f"{table}.{key}": value for table, keys in spec.items() for key, value in keys.items()}
