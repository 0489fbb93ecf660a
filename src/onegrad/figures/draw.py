"""The figure that a spec asks for, from its rows: one function per kind."""

from __future__ import annotations

from pathlib import Path

from onegrad.figures.curves import save_curves
from onegrad.figures.deviations import save_deviations
from onegrad.figures.maps import save_difference_map, save_map
from onegrad.figures.scaling import save_scaling
from onegrad.results.results import Results
from onegrad.spec.experiment import Experiment

KINDS = {
    "curves": save_curves,
    "deviations": save_deviations,
    "scaling": save_scaling,
    "map": save_map,
    "difference-map": save_difference_map,
}


def save_figure_of(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """figure.png, figure.pdf, and the numbers behind them as figure.csv; nothing where no point
    has a number."""
    if all(row.status != "ok" for row in results.rows):
        return []
    return KINDS[experiment.figure.kind](experiment, results, folder)
