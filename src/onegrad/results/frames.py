"""Rows as tables and labelled arrays, and as files of other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onegrad.errors import OnegradError, SpecError
from onegrad.results.rows import EXTRAS, QUANTITIES, SPECTRUM_COLUMNS, Row
from onegrad.simulate.control_variates import CONTROL_COLUMNS, control_columns
from onegrad.spec.fields import is_number

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "netcdf": ".nc"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a formula of a spreadsheet begins with
_NUMBERS = (*QUANTITIES, "relative_error", *EXTRAS, "error_estimate", "seconds")


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Every row, column by column: swept keys first. Lists and mixed values become texts."""
    keys = dict.fromkeys(key for row in rows for key in row.point)
    table = {key: labels([row.point.get(key) for row in rows]) for key in keys}
    for name in ("model", "seed", *_NUMBERS, "status", "error"):
        table[name] = [getattr(row, name) for row in rows]
    if any(row.controls for row in rows):
        for name in CONTROL_COLUMNS:
            table[name] = [control_columns(row.controls)[name] for row in rows]
    if any(row.spectrum for row in rows):
        found = [row.spectrum_columns() for row in rows]
        table |= {name: [one[name] for one in found] for name in SPECTRUM_COLUMNS}
    return table


def labels(values: Sequence[Any]) -> list[Any]:
    """Values of one type: numbers as they are, everything else as texts.

    >>> labels([1, 2.5]), labels(["auto", 3]), labels([[0.5, 0.5]])
    ([1, 2.5], ['auto', '3'], ['[0.5, 0.5]'])
    """
    if all(is_number(v) for v in values):
        return list(values)
    return [v if isinstance(v, str) else "" if v is None else json.dumps(v) for v in values]


def to_pandas(rows: Sequence[Row]) -> pd.DataFrame:
    pandas = _extra("pandas")
    return pandas.DataFrame(columns(rows))


def to_xarray(rows: Sequence[Row], name: str) -> xr.Dataset:
    """A key is a dimension of its own if the points are all its values times all settings of the
    other keys; what is left over is one dimension, `point`.

    Time and memory: one pass over the rows; arrays of the full (dims × model × seed) box.
    """
    _extra("xarray")
    frame = to_pandas(rows)
    keys = list(dict.fromkeys(key for row in rows for key in row.point))
    points = frame[keys].drop_duplicates()
    free = [key for key in keys if _is_free(key, points)]
    bound = [key for key in keys if key not in free]
    order = {key: list(dict.fromkeys(points[key])) for key in free}
    steps = points[bound].drop_duplicates()
    if bound:
        frame["point"] = frame.merge(steps.assign(step=range(len(steps))), on=bound)["step"]
        order["point"] = list(range(len(steps)))
    order["model"] = list(dict.fromkeys(frame["model"]))
    numbers = [name for name in (*_NUMBERS, *SPECTRUM_COLUMNS) if name in frame]
    data = frame.set_index([*order, "seed"])[numbers].astype(float).to_xarray().reindex(order)
    data = data.assign_coords({key: values for key, values in order.items() if key != "point"})
    if bound:
        data = data.drop_vars("point")
    data = data.assign_coords({key: ("point", steps[key].tolist()) for key in bound})
    return data.assign_attrs(name=name)


def _is_free(key: str, points: pd.DataFrame) -> bool:
    others = points.drop(columns=key)
    rest = len(others.drop_duplicates()) if others.shape[1] else 1
    return bool(len(points) == points[key].nunique() * rest)


def export(rows: Sequence[Row], path: str | Path, name: str, provenance: Mapping[str, str]) -> Path:
    """Every row as .csv or .parquet, the labelled arrays as .nc, by the file's suffix."""
    path = Path(path)
    if path.suffix not in SUFFIXES.values():
        raise SpecError.of(
            "export", str(path), f"must end in one of {', '.join(SUFFIXES.values())}",
            f"For example {path.with_suffix('.csv')}",
        )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        table = columns(rows)
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(map(_no_formula, table))
            writer.writerows(map(_no_formula, line) for line in zip(*table.values(), strict=True))
    elif path.suffix == ".parquet":
        _extra("pyarrow")
        to_pandas(rows).to_parquet(path, index=False, engine="pyarrow")
    else:
        _extra("h5netcdf")
        _extra("h5py")
        made = to_xarray(rows, name).assign_attrs(provenance)
        made.to_netcdf(path, engine="h5netcdf")
        return path
    if provenance:
        text = json.dumps(dict(provenance), indent=1, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return path


def _no_formula(cell: Any) -> Any:
    """A text that a spreadsheet would compute begins with an apostrophe; numbers stay."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in _FORMULA else cell


def _extra(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise OnegradError(
            f"{name} is needed for this and is not installed. Run: pip install 'onegrad[frames]' "
            "(CSV needs nothing)"
        ) from None
