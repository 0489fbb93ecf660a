"""What is read off rows: means, standard errors, differences paired seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onegrad.results.estimates import FITTED_FROM, Estimate, usable
from onegrad.results.rows import EXTRAS, QUANTITIES, Row
from onegrad.simulate.control_variates import own_controls
from onegrad.simulate.models import THEORIES
from onegrad.text.display import settings_text

UNKNOWN = Estimate(math.nan, math.nan)
Groups = dict[tuple[int, str], list[Row]]


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
    corrected: bool  # whether control variates correct the means
    seconds: float
    status: str
    error: str
    relative_error: Estimate = UNKNOWN  # mean test error / mean Var y
    misclassification: Estimate = UNKNOWN  # defined for labels ±1
    error_estimate: float = math.nan  # relative, of a theory
    test_loss: Estimate = UNKNOWN  # mean of the readout's own loss
    train_loss: Estimate = UNKNOWN
    calibration: Estimate = UNKNOWN  # defined for the logistic loss

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
        for name in ("relative_error", *EXTRAS):
            estimate = getattr(self, name)
            # Not defined for constant labels, or for labels other than ±1
            if math.isfinite(estimate.mean):
                record[name] = estimate.mean
                record[f"{name}_se"] = number_or_none(estimate.standard_error)
        if self.model in THEORIES:
            record["error_estimate"] = number_or_none(self.error_estimate)
        record |= {"seeds": self.seeds, "corrected": self.corrected}
        record |= {"status": self.status, "seconds": round(self.seconds, 4)}
        return record | ({"error": self.error} if self.error else {})


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def grouped(rows: Sequence[Row]) -> Groups:
    """The rows of each (number of the point, model)."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault((row.number, row.model), []).append(row)
    return groups


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One for each point and model."""
    groups = grouped(rows)
    return [_summary(group, groups) for group in groups.values()]


def _summary(rows: list[Row], groups: Groups) -> Summary:
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
        corrected=model not in THEORIES
        and bool(usable(controls_of(good, "test_error"), own_controls([model]))),
        seconds=sum(row.seconds for row in rows),
        status="failed" if failed else "ok",
        error=failed[0].error if failed else "",
        relative_error=relative_error(good),
        **{name: estimate(good, name) for name in EXTRAS},
        error_estimate=good[0].error_estimate if good else math.nan,
    )


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
    controls = controls_of(rows, "test_error")
    factors_known = own_controls([rows[0].model])
    # Dividing by Var y has already removed the scatter of the label power
    if factors_known and len(rows) < FITTED_FROM:
        controls = [[c / mean for c in column] for column in controls[:1]]
    return Estimate.of(values, controls, factors_known)


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
    factors_known = bool(rows) and own_controls([rows[0].model])
    return Estimate.of(values, controls_of(rows, quantity), factors_known)


def controls_of(rows: Sequence[Row], quantity: str) -> list[list[float]]:
    """Of every control variate that all rows have: its values beside theirs; a loss has those of
    the error that it stands for."""
    quantity = {"test_loss": "test_error", "train_loss": "train_error"}.get(quantity, quantity)
    if quantity not in QUANTITIES or not all(row.controls for row in rows):
        return []
    values = zip(*([getattr(c, quantity) for c in row.controls] for row in rows), strict=True)
    return [list(column) for column in values if all(map(math.isfinite, column))]


def paired_difference(rows: Sequence[Row], reference: Sequence[Row], quantity: str) -> Estimate:
    """Mean of (model − reference) over common seeds, relative to the reference's mean; corrected by
    the controls of both that all rows have: with known factors, or the same controls, it is the
    difference of the corrected means."""
    others = {row.seed: row for row in _good(reference)}
    rows = [row for row in _good(rows) if row.seed in others]
    base = [others[row.seed] for row in rows]
    scale = estimate(base, quantity).mean if rows else 0.0
    if scale == 0:
        return Estimate(math.nan, math.nan)
    pairs = zip(rows, base, strict=True)
    gaps = [(getattr(row, quantity) - getattr(other, quantity)) / scale for row, other in pairs]
    controls, others_controls = controls_of(rows, quantity), controls_of(base, quantity)
    factors_known = own_controls([rows[0].model, base[0].model])
    if len(controls) != len(others_controls):
        return Estimate.of(gaps)
    if controls and factors_known and len(rows) < FITTED_FROM:
        both = zip(controls[0], others_controls[0], strict=True)
        difference = [(own - other) / scale for own, other in both]
        return Estimate.of(gaps, [difference, *controls[1:]], factors_known)
    if controls and controls[0] != others_controls[0]:
        controls = [*controls, others_controls[0]]
    return Estimate.of(gaps, controls)
