"""Spectra of an experiment: one draw of each point, stored as a row and never computed twice."""

from __future__ import annotations

import time
from pathlib import Path

from onegrad.results.rows import SPECTRUM, Row
from onegrad.runs.store import Store
from onegrad.spec.experiment import Experiment, Point
from onegrad.spectrum.report import SpectrumReport, spectrum


def run_spectra(experiment: Experiment, out: str | Path) -> list[tuple[Point, SpectrumReport]]:
    """The report of every point; what `out`/results.sqlite does not have yet is drawn and stored,
    point by point."""
    store = Store(out)
    try:
        rows = store_spectra(experiment, store)
    finally:
        store.close()
    reports = []
    for point, row in zip(experiment.points, rows, strict=True):
        assert row.spectrum is not None
        reports.append((point, SpectrumReport.of_record(row.spectrum)))
    return reports


def store_spectra(experiment: Experiment, store: Store) -> list[Row]:
    """A row for every point, those that are missing computed."""
    found = []
    for point in experiment.points:
        rows = store.rows(point, [SPECTRUM], 1)
        if not rows:
            start = time.process_time()
            record = spectrum(point.problem, point.compare.seed).record()
            seconds = time.process_time() - start
            rows = [
                Row(point.settings, SPECTRUM, 0, seconds=seconds, number=point.number,
                    spectrum=record)
            ]  # fmt: skip
            store.add([(point, rows[0])])
        found += rows
    return found
