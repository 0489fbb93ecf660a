"""Rows of results and what is read off them: means, standard errors, paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onegrad.control_variates import Controls
from onegrad.models import THEORIES
from onegrad.results.estimates import Estimate, usable
from onegrad.shown import html_table, plots, settings_text, text_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Row:
    """The errors of one model on one repetition of one point.

    controls : control variates of the repetition, where they were asked for
    number : of the point in its experiment
    label_variance : Var y of this repetition's population, what the best constant costs; for a
        theory its mean over repetitions
    misclassification : P(sign f(x) ≠ y) where labels are ±1, else NaN
    error_estimate : of a theory, relative; NaN where nothing was checked
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
    controls: Controls = ()
    number: int = 0
    label_variance: float = math.nan
    misclassification: float = math.nan
    error_estimate: float = math.nan

    @property
    def relative_error(self) -> float:
        """Test error / Var y: 1 is what the best constant reaches; NaN for constant labels."""
        return self.test_error / self.label_variance if self.label_variance > 0 else math.nan

    def __repr__(self) -> str:
        where = f" at {settings_text(self.point)}" if self.point else ""
        found = f"test_error {self.test_error:.6g}, train_error {self.train_error:.6g}"
        outcome = found if self.status == "ok" else f"{self.status}: {self.error}"
        return f"<row {self.model}{where}, seed {self.seed}: {outcome}>"


UNKNOWN = Estimate(math.nan, math.nan)
QUANTITIES = ("test_error", "train_error", "train_objective")
# numbers of a row that have a column in the store
STORED = (*QUANTITIES, "label_variance", "misclassification", "error_estimate")


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
    corrected: bool  # by control variates
    seconds: float
    status: str
    error: str
    relative_error: Estimate = UNKNOWN  # mean test error / mean Var y
    misclassification: Estimate = UNKNOWN  # of labels ±1
    error_estimate: float = math.nan  # of a theory

    def __repr__(self) -> str:
        where = f" at {settings_text(self.point)}" if self.point else ""
        errors = f"test_error {self.test_error}, train_error {self.train_error}"
        seeds = f", {self.seeds} seeds" if self.seeds else ""
        return f"<summary {self.model}{where}: {errors}{seeds}>"

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
        for name in ("relative_error", "misclassification"):
            estimate = getattr(self, name)
            if math.isfinite(estimate.mean):  # constant labels have none, and few labels are ±1
                record[name] = estimate.mean
                record[f"{name}_se"] = number_or_none(estimate.standard_error)
        if self.model in THEORIES:
            record["error_estimate"] = number_or_none(self.error_estimate)
        record |= {"seeds": self.seeds, "corrected": self.corrected}
        record |= {"status": self.status, "seconds": round(self.seconds, 4)}
        return record | ({"error": self.error} if self.error else {})


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Results:
    """All rows of an experiment, point by point."""

    name: str
    rows: tuple[Row, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([self._headline(), text_table(*self._table())])

    def _repr_html_(self) -> str:
        return html_table(self._headline(), *self._table())

    def _headline(self) -> str:
        points = len({row.number for row in self.rows})
        models = len({row.model for row in self.rows})
        failed = sum(row.status != "ok" for row in self.rows)
        counts = [f"{points} point{'s' * (points != 1)}", f"{models} model{'s' * (models != 1)}"]
        counts += [f"{len(self.rows)} rows" + f" ({failed} failed)" * bool(failed)]
        return f'Results "{self.name}": {", ".join(counts)}'

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """One line for each point and model: the errors with their standard errors."""
        found = self.summaries()
        keys = list(dict.fromkeys(key for s in found for key in s.point))
        names = [key.rpartition(".")[2] for key in keys]
        header = [*names, "model", "test error", "train error", "seeds"]
        lines = [
            [*(_cell(s.point.get(k)) for k in keys), s.model, str(s.test_error), str(s.train_error),
             str(s.seeds or "–")]
            for s in found
        ]  # fmt: skip
        return header, lines

    def groups(self) -> dict[tuple[int, str], list[Row]]:
        """The rows of each (number of the point, model)."""
        groups: dict[tuple[int, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.number, row.model), []).append(row)
        return groups

    def summaries(self) -> list[Summary]:
        groups = self.groups()
        return [self._summary(rows, groups) for rows in groups.values()]

    def _summary(self, rows: list[Row], groups: dict[tuple[int, str], list[Row]]) -> Summary:
        point, model = rows[0].point, rows[0].model
        good = _good(rows)
        failed = [row for row in rows if row.status != "ok"]
        network = groups.get((rows[0].number, "network"), [])
        estimates = {q: estimate(good, q) for q in QUANTITIES}
        return Summary(
            point,
            model,
            **estimates,
            test_difference=relative_difference(good, network, "test_error"),
            train_difference=relative_difference(good, network, "train_error"),
            seeds=0 if model in THEORIES else len(good),
            corrected=model not in THEORIES and bool(usable(controls_of(good, "test_error"))),
            seconds=sum(row.seconds for row in rows),
            status="failed" if failed else "ok",
            error=failed[0].error if failed else "",
            relative_error=relative_error(good),
            misclassification=estimate(good, "misclassification"),
            error_estimate=good[0].error_estimate if good else math.nan,
        )

    def as_json(self) -> dict[str, Any]:
        from onegrad.results.verdict import verdicts

        rows = [s.as_json() for s in self.summaries()]
        return {"name": self.name, "rows": rows, "verdict": [v.as_json() for v in verdicts(self)]}

    def plot(self, *quantities: str, x: str | None = None, ax: Any = None) -> Any:
        """Errors against a swept key: dots with error bars, equivalent models, theory lines.

        quantities : a panel for each of test_error (the default), train_error, train_objective
        x : the swept key along the axis; the numeric one with the most values unless given
        ax : where to draw, for one quantity
        Returns the matplotlib axes, one or an array of them.
        """
        return plots().plot_results(self, quantities, x, ax)

    def to_pandas(self) -> pd.DataFrame:
        """One line per row: swept keys, model, seed, errors, seconds, status."""
        from onegrad.results.frames import to_pandas

        return to_pandas(self)

    def to_xarray(self) -> xr.Dataset:
        """The errors with one labelled dimension per swept key, then model and seed.

        Keys that do not form a grid, those swept together for instance, share the dimension
        `point` and are its coordinates. Theories stand at seed 0; what is missing or failed is NaN.
        """
        from onegrad.results.frames import to_xarray

        return to_xarray(self)

    def export(self, path: str | Path) -> Path:
        """Write all rows to a .csv, .parquet or .nc (NetCDF) file."""
        from onegrad.results.frames import export

        return export(self, path)


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def relative_error(rows: Sequence[Row]) -> Estimate:
    """Mean test error / mean Var y, to first order in the fluctuations of both around their plain
    means: the mean of (T_i − R·(V_i − V̄))/V̄, R = T̄/V̄, corrected by the test error's controls."""
    power = [row.label_variance for row in rows]
    mean = sum(power) / len(power) if power else math.nan
    if not mean > 0:  # constant labels, or rows that do not know it
        return UNKNOWN
    if rows[0].model in THEORIES:
        return Estimate(rows[0].relative_error, 0.0)
    ratio = sum(row.test_error for row in rows) / len(rows) / mean
    values = [
        (row.test_error - ratio * (v - mean)) / mean for row, v in zip(rows, power, strict=True)
    ]
    return Estimate.of(values, controls_of(rows, "test_error"))


def relative_difference(rows: Sequence[Row], reference: Sequence[Row], quantity: str) -> Estimate:
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


def _good(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.status == "ok"]


def estimate(rows: Sequence[Row], quantity: str) -> Estimate:
    """The mean of a model's good rows, corrected by the controls that all of them have."""
    rows = _good(rows)
    values = [getattr(row, quantity) for row in rows]
    if rows and rows[0].model in THEORIES:
        return Estimate(Estimate.of(values).mean, 0.0)
    return Estimate.of(values, controls_of(rows, quantity))


def controls_of(rows: Sequence[Row], quantity: str) -> list[list[float]]:
    """Of every control variate that all rows have: its values beside theirs."""
    if quantity not in QUANTITIES or not all(row.controls for row in rows):
        return []
    values = zip(*([getattr(c, quantity) for c in row.controls] for row in rows), strict=True)
    return [list(column) for column in values if all(map(math.isfinite, column))]


def paired_difference(rows: Sequence[Row], reference: Sequence[Row], quantity: str) -> Estimate:
    """Mean of (model − reference) over common seeds, relative to the reference's mean; both are
    corrected by the controls that all rows have, as their means are."""
    others = {row.seed: row for row in _good(reference)}
    rows = [row for row in _good(rows) if row.seed in others]
    base = [others[row.seed] for row in rows]
    scale = estimate(base, quantity).mean if rows else 0.0
    if scale == 0:
        return Estimate(math.nan, math.nan)
    pairs = zip(rows, base, strict=True)
    gaps = [(getattr(row, quantity) - getattr(other, quantity)) / scale for row, other in pairs]
    return Estimate.of(gaps, controls_of(rows, quantity))
