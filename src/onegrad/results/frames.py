"""Rows as tables and labelled arrays, and as files of other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.errors import OnegradError, SpecError
from onegrad.results.rows import EXTRAS, QUANTITIES, SPECTRUM_COLUMNS, Row
from onegrad.simulate.control_variates import CONTROL_COLUMNS, control_columns

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SUFFIXES = {"csv": ".csv", "parquet": ".parquet", "netcdf": ".nc"}
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
    return table | _spectra(rows)


def _spectra(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The columns of spectra, where there are any."""
    if not any(row.spectrum for row in rows):
        return {}
    found = [row.spectrum_columns() for row in rows]
    return {name: [one[name] for one in found] for name in SPECTRUM_COLUMNS}


def labels(values: Sequence[Any]) -> list[Any]:
    """Values of one type: numbers as they are, everything else as texts.

    >>> labels([1, 2.5]), labels(["auto", 3]), labels([[0.5, 0.5]])
    ([1, 2.5], ['auto', '3'], ['[0.5, 0.5]'])
    """
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return list(values)
    return [v if isinstance(v, str) else "" if v is None else json.dumps(v) for v in values]


def to_pandas(rows: Sequence[Row]) -> pd.DataFrame:
    pandas = _extra("pandas")
    return pandas.DataFrame(columns(rows))


def to_xarray(rows: Sequence[Row], name: str) -> xr.Dataset:
    """Time and memory: one pass over the rows; arrays of the full (dims × model × seed) box."""
    xarray = _extra("xarray")
    points, position = _points(rows)
    models = list(dict.fromkeys(row.model for row in rows))
    seeds = sorted({row.seed for row in rows})
    dims, coords, where = _dimensions(points)
    shape = [len(coords[d][1]) if d in coords else _length(coords, d) for d in dims]
    model_at = {model: i for i, model in enumerate(models)}
    seed_at = {seed: i for i, seed in enumerate(seeds)}
    index = (
        *(np.array(w, dtype=int)[position] for w in where),
        np.array([model_at[row.model] for row in rows], dtype=int),
        np.array([seed_at[row.seed] for row in rows], dtype=int),
    )
    arrays = {}
    table = {name: [getattr(row, name) for row in rows] for name in _NUMBERS} | _spectra(rows)
    for quantity, values in table.items():
        array = np.full((*shape, len(models), len(seeds)), np.nan)
        array[index] = values
        arrays[quantity] = ((*dims, "model", "seed"), array)
    return xarray.Dataset(arrays, {**coords, "model": models, "seed": seeds}, {"name": name})


def _length(coords: dict[str, Any], dim: str) -> int:
    return next(len(values) for (d, values) in coords.values() if d == dim)


def _points(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The distinct points, and which of them each row belongs to."""
    points = {row.number: row.point for row in rows}
    at = {number: i for i, number in enumerate(points)}
    return list(points.values()), np.array([at[row.number] for row in rows], dtype=int)


def _dimensions(
    points: list[dict[str, Any]],
) -> tuple[list[str], dict[str, tuple[str, list[Any]]], list[list[int]]]:
    """Names of the dimensions, their coordinates, and where each point stands along them.

    A key is a dimension of its own if the points are all its values times all settings of the other
    keys; what is left over is one dimension, `point`.
    """
    keys = list(dict.fromkeys(key for point in points for key in point))
    table = {key: labels([point.get(key) for point in points]) for key in keys}
    values = {key: list(dict.fromkeys(table[key])) for key in keys}
    free = [key for key in keys if _is_free(key, keys, table, values, len(points))]
    bound = [key for key in keys if key not in free]
    coords: dict[str, tuple[str, list[Any]]] = {key: (key, values[key]) for key in free}
    where = []
    for key in free:
        at = {value: i for i, value in enumerate(values[key])}
        where.append([at[value] for value in table[key]])
    if not bound:
        return free, coords, where
    tuples = list(zip(*(table[key] for key in bound), strict=True))
    steps = {step: i for i, step in enumerate(dict.fromkeys(tuples))}
    where.append([steps[step] for step in tuples])
    for key, column in zip(bound, zip(*steps, strict=True), strict=True):
        coords[key] = ("point", list(column))
    return [*free, "point"], coords, where


def _is_free(
    key: str, keys: list[str], table: dict[str, list[Any]], values: dict[str, list[Any]], count: int
) -> bool:
    others = [table[other] for other in keys if other != key]
    rest = len(set(zip(*others, strict=True))) if others else 1
    return count == len(values[key]) * rest


def export(rows: Sequence[Row], path: str | Path, name: str) -> Path:
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
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    elif path.suffix == ".parquet":
        _extra("pyarrow")
        to_pandas(rows).to_parquet(path, index=False, engine="pyarrow")
    else:
        _extra("h5netcdf")
        _extra("h5py")
        to_xarray(rows, name).to_netcdf(path, engine="h5netcdf")
    return path


def _extra(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise OnegradError(
            f"{name} is needed for this and is not installed. Run: pip install 'onegrad[frames]' "
            "(CSV needs nothing)"
        ) from None
