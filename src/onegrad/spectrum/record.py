"""Spectra as plain records, which a store keeps and which give the same report back.

A record is JSON: what was drawn, its limits, and under "numbers" those with a column of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from onegrad.results.rows import SPECTRUM_NUMBERS
from onegrad.spectrum.report import MatrixSpectrum, SpectrumReport
from onegrad.theory.spectral.draws import Outlier
from onegrad.theory.spectral.law import SpectralLaw
from onegrad.theory.spectral.structured import MatrixLimit


def spectrum_record(report: SpectrumReport) -> dict[str, Any]:
    """The record of a report."""
    plain: dict[str, Any] = _plain(asdict(report))
    plain["numbers"] = {
        f"{matrix}_{name}": None if math.isnan(value) else value
        for matrix, one in (("weight", report.weights), ("feature", report.features))
        for name, value in zip(SPECTRUM_NUMBERS, _numbers(one), strict=True)
    }
    return plain


def spectrum_report(record: Mapping[str, Any]) -> SpectrumReport:
    """The report of a record."""
    return SpectrumReport(
        _matrix(record["weights"]), _matrix(record["features"]), record["note"],
        record["expected_outliers"],
    )  # fmt: skip


def _numbers(one: MatrixSpectrum) -> tuple[float, ...]:
    """In the order of SPECTRUM_NUMBERS."""
    predicted, count = one.predicted, one.outliers
    return (
        one.edge, one.threshold, math.nan if count is None else count,
        math.nan if one.limit is None else len(predicted), float(one.leading[0]),
        predicted[0] if predicted else math.nan, one.distance,
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


def _with_arrays(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.array(v) if isinstance(v, list) else v for key, v in record.items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else value
