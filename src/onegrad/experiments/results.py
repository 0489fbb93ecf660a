"""Rows of results and what is read off them: means, standard errors, paired differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onegrad.network.companions import CONTROLS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Models that sample nothing, with the method of `predict` behind each.
THEORIES = {"theory": "auto", "theory-limit": "isotropic-limit", "surrogate": "surrogate"}

_FEWEST_LEFT = 5  # degrees of freedom that fitting the factors of control variates has to leave


class Estimate(NamedTuple):
    """A mean and its standard error; `float()` of it is the mean."""

    mean: float
    standard_error: float

    @classmethod
    def of(
        cls, values: Iterable[float], controls: Sequence[Sequence[float]] | None = None
    ) -> Estimate:
        """Of independent values; with control variates, a sequence of mean zero beside the values,
        the intercept of the regression of the values on them, and its standard error."""
        array = np.array(list(values), dtype=float)
        columns = [np.array(c, dtype=float) for c in controls or () if len(c) and np.ptp(c) > 0]
        if columns and array.size - 1 - len(columns) >= _FEWEST_LEFT:
            return cls(*_intercept(array, np.column_stack(columns)))
        if array.size < 2:
            return cls(float(array.mean()) if array.size else math.nan, math.nan)
        return cls(float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size)))

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.mean:.4g}"
        if self.standard_error == 0:
            return f"{self.mean:.5g}"
        if abs(self.mean) < 1e-4:
            return f"{self.mean:.3g} ± {self.standard_error:.1g}"
        digits = max(0, 1 - math.floor(math.log10(self.standard_error)))
        return f"{self.mean:.{digits}f} ± {self.standard_error:.{digits}f}"


def _intercept(values: np.ndarray, controls: np.ndarray) -> tuple[float, float]:
    """Of the regression of `values` on the columns of `controls`, with its standard error."""
    design = np.column_stack([np.ones(len(values)), controls / np.std(controls, axis=0)])
    inverse = np.linalg.pinv(design)
    factors = inverse @ values
    rest = values - design @ factors
    variance = float(rest @ rest) / (len(values) - design.shape[1])
    return float(factors[0]), math.sqrt(variance * float(inverse[0] @ inverse[0]))


@dataclass(frozen=True)
class Row:
    """The errors of one model on one repetition of one point.

    controls : the rows of control variates of the same repetition, where there are any
    """

    point: dict[str, Any]
    model: str
    seed: int
    test_error: float = math.nan
    train_error: float = math.nan
    train_objective: float = math.nan
    seconds: float = 0.0
    status: str = "ok"
    error: str = ""
    controls: tuple[Row, ...] = ()


QUANTITIES = ("test_error", "train_error", "train_objective")


@dataclass(frozen=True)
class Summary:
    """One model at one point, averaged over its repetitions."""

    point: dict[str, Any]
    model: str
    test_error: Estimate
    train_error: Estimate
    train_objective: Estimate
    test_difference: Estimate  # to the network, relative to it, paired seed by seed
    train_difference: Estimate
    seeds: int
    seconds: float
    status: str
    error: str

    def as_json(self) -> dict[str, Any]:
        """The row of the command line's --json contract (docs/spec.md)."""
        record: dict[str, Any] = {"point": self.point, "model": self.model}
        for name in QUANTITIES:
            estimate: Estimate = getattr(self, name)
            record[name] = number_or_none(estimate.mean)
            record[f"{name}_se"] = number_or_none(estimate.standard_error)
        for name in ("test_difference", "train_difference"):
            estimate = getattr(self, name)
            record[name] = number_or_none(estimate.mean)
            record[f"{name}_se"] = number_or_none(estimate.standard_error)
        record |= {"seeds": self.seeds, "status": self.status, "seconds": round(self.seconds, 4)}
        return record | ({"error": self.error} if self.error else {})


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass
class Results:
    """All rows of an experiment, in the order in which they were computed."""

    name: str
    rows: list[Row] = field(default_factory=list)

    @property
    def controlled(self) -> bool:
        """Whether there are control variates, by which the means of models are corrected."""
        return any(row.model in CONTROLS for row in self.rows)

    def groups(self) -> dict[tuple[str, str], list[Row]]:
        """The rows of each (point, model), points by their `repr`; each with its controls."""
        controls: dict[tuple[str, int], tuple[Row, ...]] = {}
        for row in self.rows:
            if row.model in CONTROLS and row.status == "ok":
                key = repr(row.point), row.seed
                controls[key] = (*controls.get(key, ()), row)
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if row.model not in CONTROLS:
                name = repr(row.point)
                own = controls.get((name, row.seed), ()) if controls else ()
                if own and row.model not in THEORIES:
                    row = replace(row, controls=own)
                groups.setdefault((name, row.model), []).append(row)
        return groups

    def summaries(self) -> list[Summary]:
        groups = self.groups()
        return [self._summary(rows, groups) for rows in groups.values()]

    def _summary(self, rows: list[Row], groups: dict[tuple[str, str], list[Row]]) -> Summary:
        point, model = rows[0].point, rows[0].model
        good = _good(rows)
        failed = [row for row in rows if row.status != "ok"]
        network = groups.get((repr(point), "network"), [])
        estimates = {q: estimate(good, q) for q in QUANTITIES}
        return Summary(
            point,
            model,
            **estimates,
            test_difference=relative_difference(good, network, "test_error"),
            train_difference=relative_difference(good, network, "train_error"),
            seeds=0 if model in THEORIES else len(good),
            seconds=sum(row.seconds for row in rows),
            status="failed" if failed else "ok",
            error=failed[0].error if failed else "",
        )

    def as_json(self) -> dict[str, Any]:
        from onegrad.experiments.verdict import verdicts

        rows = [s.as_json() for s in self.summaries()]
        return {"name": self.name, "rows": rows, "verdict": [v.as_json() for v in verdicts(self)]}

    def to_pandas(self) -> pd.DataFrame:
        """One line per row: swept keys, model, seed, errors, seconds, status."""
        from onegrad.experiments.frames import to_pandas

        return to_pandas(self)

    def to_xarray(self) -> xr.Dataset:
        """The errors with one labelled dimension per swept key, then model and seed.

        Keys that do not form a grid, those swept together for instance, share the dimension
        `point` and are its coordinates. Theories stand at seed 0; what is missing or failed is NaN.
        """
        from onegrad.experiments.frames import to_xarray

        return to_xarray(self)

    def export(self, path: str | Path) -> Path:
        """Write all rows to a .csv, .parquet or .nc (NetCDF) file."""
        from onegrad.experiments.frames import export

        return export(self, path)


def relative_difference(rows: list[Row], reference: list[Row], quantity: str) -> Estimate:
    """Mean of (model − reference) relative to the reference, paired seed by seed where both have
    seeds; theories have none, and only the other side's noise counts."""
    rows, reference = _good(rows), _good(reference)
    if not rows or not reference:
        return Estimate(math.nan, math.nan)
    if rows[0].model not in THEORIES and reference[0].model not in THEORIES:
        return paired_difference(rows, reference, quantity)
    value, noise = estimate(rows, quantity)
    base, base_noise = estimate(reference, quantity)
    if not math.isfinite(base) or base == 0:
        return Estimate(math.nan, math.nan)
    return Estimate(value / base - 1, math.hypot(noise, base_noise) / base)


def _good(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.status == "ok"]


def estimate(rows: list[Row], quantity: str) -> Estimate:
    """The mean of a model's good rows; corrected by the controls that all of them have."""
    rows = _good(rows)
    values = [getattr(row, quantity) for row in rows]
    if rows and rows[0].model in THEORIES:
        return Estimate(Estimate.of(values).mean, 0.0)
    found = [
        {c.model: getattr(c, quantity) for c in row.controls if math.isfinite(c.test_error)}
        for row in rows
    ]
    common = [name for name in CONTROLS if found and all(name in own for own in found)]
    return Estimate.of(values, [[own[name] for own in found] for name in common])


def paired_difference(rows: list[Row], reference: list[Row], quantity: str) -> Estimate:
    """Mean of (model − reference) over common seeds, relative to the reference's mean."""
    by_seed = {row.seed: getattr(row, quantity) for row in _good(reference)}
    pairs = [(getattr(r, quantity), by_seed[r.seed]) for r in _good(rows) if r.seed in by_seed]
    if not pairs:
        return Estimate(math.nan, math.nan)
    scale = float(np.mean([base for _, base in pairs]))
    if scale == 0:
        return Estimate(math.nan, math.nan)
    return Estimate.of((value - base) / scale for value, base in pairs)
