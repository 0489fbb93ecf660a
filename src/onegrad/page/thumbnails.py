"""Small pictures of the presets in the page's menu: their theory, or the published points.

`python -m onegrad.page.thumbnails FILE` writes them; the file in static/ is made so.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onegrad.page.controls import presets
from onegrad.page.work import perform
from onegrad.predict.predict import predict_curve
from onegrad.spec.experiment import Experiment, Point
from onegrad.spec.sweep import ZIP
from onegrad.theory.options import DRAFT, Theory

_CELLS = 9  # along each axis of a map
_PLACES = 99  # coordinates are whole numbers up to this


def thumbnail(preset: Mapping[str, Any]) -> dict[str, Any]:
    """lines : lists of places x, y; cells : columns of a map; stems : places of spikes."""
    tables = preset["tables"]
    kind = tables.get("figure", {}).get("kind", "curves")
    if kind.endswith("spectrum"):
        return _spectrum(tables, "weights" if "weight" in kind else "features")
    if "map" in kind:
        return _map(tables)
    key = _axis(tables)
    zipped = tables["sweep"].get(ZIP, {})
    together = {key, *(zipped if key in zipped else ())}  # what changes along the axis
    if preset["published"]:
        found = [
            (one["point"].get("network.activation", ""), _number(one["point"][key]), one["value"])
            for one in preset["published"]
        ]
    else:
        found = [
            (_name(point, together), _number(point.settings[key]), error)
            for point, error in _errors(Experiment.from_tables(tables).points)
        ]
    x, y = (_placed([one[i] for one in found]) for i in (1, 2))
    names = list(dict.fromkeys(one[0] for one in found))
    lines = [sorted((a, b) for one, a, b in zip(found, x, y, strict=True) if one[0] == name)
             for name in names]  # fmt: skip
    return {"lines": lines}


def _errors(points: Sequence[Point]) -> list[tuple[Point, float]]:
    """Test errors of a draft of the theory, where there is one."""
    answers = predict_curve([point.problem for point in points], Theory(accuracy=DRAFT))
    pairs = [(p, a.test_error) for p, a in zip(points, answers, strict=True) if not a.error]
    return [(p, error) for p, error in pairs if math.isfinite(error)]


def _axis(tables: Mapping[str, Any]) -> str:
    """The axis of the figure, else the longest list of numbers."""
    sweep = {**tables["sweep"].get(ZIP, {}), **tables["sweep"]}
    given = tables.get("figure", {}).get("axes", [])
    lists = {k: v for k, v in sweep.items() if k != ZIP and not isinstance(v[0], str)}
    return given[0] if given else max(lists, key=lambda key: len(lists[key]))


def _name(point: Point, together: set[str]) -> str:
    """What tells a line from the others."""
    return str([value for key, value in point.settings.items() if key not in together])


def _map(tables: Mapping[str, Any]) -> dict[str, Any]:
    sweep = {key: values for key, values in tables["sweep"].items() if len(values) > 1}
    keys = [key for key in sweep if key != "network.activation"]
    few = {key: sweep[key][:: max(1, len(sweep[key]) // _CELLS)] for key in keys}
    first = {key: values[:1] for key, values in tables["sweep"].items() if key not in few}
    points = Experiment.from_tables({**tables, "sweep": first | few}).points
    values = _placed([error for _, error in _errors(points)])
    size = len(few[keys[1]])
    return {"cells": [values[i : i + size] for i in range(0, len(values), size)]}


def _spectrum(tables: Mapping[str, Any], matrix: str) -> dict[str, Any]:
    last = {key: values[-1:] for key, values in tables.get("sweep", {}).items()}
    points = Experiment.from_tables({**tables, "sweep": last}).points
    problem = points[0].problem.model_dump(mode="json", exclude_none=True)
    (found,) = perform("spectrum", [problem], {})
    if "error" in found:  # no limit in closed form: one network
        (found,) = perform("draw", [problem], {"seed": 0})
        part = found[matrix]
        values, density = part["bins"][1:-1], part["heights"][1:]
    else:
        part = found[matrix]
        values, density = part["values"][6::6], part["density"][6::6]
    places = _placed([0.0, *values, *part["spikes"]])
    line = list(zip(places[1 : 1 + len(values)], _placed([0.0, *density])[1:], strict=True))
    return {"lines": [line], "stems": places[1 + len(values) :]}


def _placed(values: Sequence[float]) -> list[int]:
    """Whole numbers; by logarithms where values span more than a factor of eight."""
    low, high = min(values), max(values)
    log = low > 0 and high / low > 8
    f = math.log if log else float
    span = f(high) - f(low) or 1.0
    return [round(_PLACES * (f(v) - f(low)) / span) for v in values]


def _number(value: Any) -> float:
    return float(value[0] if isinstance(value, list | tuple) else value)


def main(arguments: Sequence[str]) -> None:
    """All presets of the menu; what is already in the file stays unless `--all`."""
    path = Path(arguments[0])
    kept = path.exists() and "--all" not in arguments
    known = json.loads(path.read_text("utf-8")) if kept else {}
    for group in presets():
        for preset in group["presets"]:
            if preset["name"] not in known:
                print(preset["name"], flush=True)
                known[preset["name"]] = thumbnail(preset)
                path.write_text(json.dumps(known, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
