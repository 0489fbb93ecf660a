"""Spectra as plain records, which a store keeps and which give the same report back.

A record is JSON: everything that was drawn, limits that take seconds, and under "numbers" those
with a column of their own. Limits in closed form are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.results.rows import SPECTRUM_NUMBERS
from onegrad.spectrum.report import Report, SpectrumReport, closed_form_limit
from onegrad.spectrum.structured import MatrixSpectrum, StructuredSpectrum
from onegrad.theory.isotropic.measured import MeasuredSpectrum
from onegrad.theory.spectral.draws import Outlier
from onegrad.theory.spectral.law import SpectralLaw
from onegrad.theory.spectral.structured import MatrixLimit

_DRAWN = (
    "weights", "features", "readout_cosine", "teacher_cosine", "distances", "weight_values",
    "feature_values",
)  # fmt: skip


def spectrum_record(report: Report) -> dict[str, Any]:
    """The record of a report."""
    if isinstance(report, StructuredSpectrum):
        found = asdict(report)
    else:
        found = {name: getattr(report, name) for name in _DRAWN}
        found |= {"weights": asdict(report.weights), "features": asdict(report.features)}
    plain: dict[str, Any] = _plain(found)
    plain["numbers"] = {
        f"{matrix}_{name}": None if math.isnan(value) else value
        for matrix in ("weight", "feature")
        for name, value in zip(SPECTRUM_NUMBERS, _numbers(report, matrix), strict=True)
    }
    return plain


def spectrum_report(problem: Problem, record: Mapping[str, Any]) -> Report:
    """The report of a record of that problem."""
    if "note" in record:
        return StructuredSpectrum(
            _matrix(record["weights"]), _matrix(record["features"]), record["note"],
            record["expected_outliers"],
        )  # fmt: skip
    limit = closed_form_limit(problem)
    assert limit is not None
    return SpectrumReport(
        limit.degree, _measured(record["weights"]), limit.weight_spike, limit.weight_bulk,
        record["readout_cosine"], record["teacher_cosine"], _measured(record["features"]),
        limit.feature_spikes, limit.feature_bulk, limit.norm_outlier, tuple(record["distances"]),
        _pair(record["weight_values"]), _pair(record["feature_values"]),
    )  # fmt: skip


def _numbers(report: Report, matrix: str) -> tuple[float, ...]:
    """In the order of SPECTRUM_NUMBERS."""
    one = report.weights if matrix == "weight" else report.features
    if isinstance(report, StructuredSpectrum):
        assert isinstance(one, MatrixSpectrum)
        predicted, known = one.predicted, one.limit is not None
        leading, count, distance = one.leading, one.outliers, one.distance
    else:
        assert isinstance(one, MeasuredSpectrum)
        spike, known, distance = report.weight_spike, True, math.nan
        predicted = report.feature_spikes.singular_values.tolist()
        if matrix == "weight":
            predicted = [spike.singular_value] if spike.present else []
        leading, count = one.singular_values, one.spikes
    return (
        one.edge, one.threshold, math.nan if count is None else count,
        len(predicted) if known else math.nan, float(leading[0]),
        predicted[0] if predicted else math.nan, distance,
    )  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _matrix(record: Mapping[str, Any]) -> MatrixSpectrum:
    limit = None
    if record["limit"] is not None:
        known = record["limit"]
        outliers = tuple(Outlier(**one) for one in known["outliers"])
        limit = MatrixLimit(
            SpectralLaw(**_with_arrays(known["law"])), outliers, np.array(known["strengths"])
        )
    return MatrixSpectrum(
        np.array(record["before"]), np.array(record["after"]), np.array(record["leading"]),
        _number(record["edge"]), _number(record["threshold"]), record["outliers"],
        tuple(record["alignments"]), limit, _number(record["distance"]),
    )  # fmt: skip


def _measured(record: Mapping[str, Any]) -> MeasuredSpectrum:
    return MeasuredSpectrum(**_with_arrays(record))


def _with_arrays(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.array(v) if isinstance(v, list) else v for key, v in record.items()}


def _pair(values: Any) -> tuple[Array, Array]:
    before, after = (np.array(one) for one in values)
    return before, after


def _number(value: float | None) -> float:
    return math.nan if value is None else value
