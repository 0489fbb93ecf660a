"""Histograms of singular values with their limiting density and the marked spikes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onegrad.compute.backend import Array
from onegrad.figures.caption import spectrum_caption
from onegrad.figures.style import COLOURS, RC, head, label, save_figure
from onegrad.spec.experiment import Experiment
from onegrad.spectrum.report import MatrixSpectrum, SpectrumReport
from onegrad.text.display import count_of
from onegrad.theory.spectra.law import SpectralLaw

_FAR = 3.0  # outliers beyond this many bulk edges compress the axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_spectra(experiment: Experiment, reports: list[SpectrumReport], folder: Path) -> list[Path]:
    """figure.png, figure.pdf, and every singular value as figure.csv."""
    labels = [
        ", ".join(f"{label(k)} = {v}" for k, v in point.settings.items())
        for point in experiment.points
    ]
    which = "weights" if experiment.figure.kind == "weight-spectrum" else "features"
    pairs = list(zip(labels, reports, strict=True))
    text = spectrum_caption(experiment)
    header = [*experiment.sweep, "matrix", "step", "rank", "singular_value"]
    rows = []
    for point, report in zip(experiment.points, reports, strict=True):
        spectra = {"weights": report.weight_values, "features": report.feature_values}
        for matrix, values in spectra.items():
            for step, column in zip(("before", "after"), values, strict=True):
                for i, value in enumerate(column, start=1):
                    rows.append([*point.settings.values(), matrix, step, i, value])
    return save_figure(draw_spectra(experiment.name, pairs, which, text), folder, header, rows)


def draw_spectra(
    name: str, reports: list[tuple[str, SpectrumReport]], which: str, caption: str
) -> Figure:
    """One panel per point: `which` is "weights" (before and after the step) or "features"."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        columns = min(2, len(reports)) if which == "features" else 2
        rows = -(-len(reports) // columns) if which == "features" else len(reports)
        figure = Figure(figsize=(4.9 * columns, 3.3 * rows + 0.6), layout="constrained")
        panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for panel in panels:
            panel.set_visible(False)
        for i, (label, report) in enumerate(reports):
            if which == "features":
                draw_features(panels[i], label, report)
            else:
                draw_weights(panels[2 * i], panels[2 * i + 1], label, report)
        head(figure, name, caption)
    return figure


def _histogram(panel: Axes, nonzero: Array, bulk: SpectralLaw, colour: str) -> None:
    panel.set_visible(True)
    top = float(np.sqrt(bulk.edge))
    inside = nonzero[nonzero < 1.3 * top]
    panel.hist(
        inside, bins=60, weights=np.full(inside.size, 60 / (1.3 * top) / max(nonzero.size, 1)),
        range=(0, 1.3 * top), color=colour, alpha=0.35, label="one draw",
    )  # fmt: skip
    grid = np.linspace(1e-4, top * 1.02, 800)
    panel.plot(
        grid, bulk.singular_density(grid), color="#222222", lw=1.3, label="limiting density"
    )  # fmt: skip
    panel.set_xlabel("singular value")
    panel.set_ylabel("density")


def _compress(panel: Axes, edge: float) -> None:
    """A linear axis over the bulk and a logarithmic one beyond, so that both can be seen; the
    axis says so."""
    panel.set_xlabel("singular value (logarithmic beyond twice the edge)")
    low, high = panel.get_xlim()
    panel.set_xscale("symlog", linthresh=2 * edge)
    panel.set_xlim(max(low, -0.05 * edge), high)
    ticks = [0.0, float(f"{edge / 2:.1g}"), float(f"{edge:.2g}")]
    ticks += [
        t * 10.0**p for p in range(-2, 4) for t in (1, 2, 5) if 1.9 * edge < t * 10.0**p < high
    ]
    panel.set_xticks(ticks, [f"{t:g}" for t in ticks])
    panel.minorticks_off()


def _mark(panel: Axes, values: Array, colour: str, label: str, **style: object) -> None:
    height = 0.05 * panel.get_ylim()[1]
    panel.plot(values, np.full(len(values), height), linestyle="none", color=colour, label=label,
               **style)  # type: ignore[arg-type]  # fmt: skip


def _draw_matrix(panel: Axes, title: str, values: Array, one: MatrixSpectrum | None) -> None:
    """Singular values of one matrix; with their limit, if `one` has it, and its outliers marked."""
    limit = None if one is None else one.limit
    if limit is not None:
        _histogram(panel, values, limit.law, COLOURS[0])
    else:
        panel.set_visible(True)
        panel.hist(values, bins=60, density=True, color=COLOURS[0], alpha=0.35, label="one draw")
        panel.set_xlabel("singular value")
        panel.set_ylabel("density")
    if one is not None and one.outliers is not None:
        outliers = one.leading[: one.outliers]
        _mark(panel, outliers, COLOURS[1], "outliers found", marker="o", markersize=5)
        if limit is not None:
            predicted = np.array(one.predicted)
            _mark(panel, predicted, "#222222", "outliers predicted", marker="|", markersize=16)
        if len(outliers) and outliers[0] > _FAR * one.edge:
            _compress(panel, one.edge)
    panel.set_title(title, fontsize=10)
    panel.legend(fontsize=8, loc="upper right")


def _counted(label: str, one: MatrixSpectrum) -> str:
    prefix = f"{label}: " if label else ""
    if one.outliers is None:
        return f"{prefix}features after the step"
    return f"{prefix}{count_of(one.outliers, 'outlier')} of the features"


def draw_features(panel: Axes, label: str, report: SpectrumReport) -> None:
    features = report.features
    values = features.after if features.after.size else features.leading
    _draw_matrix(panel, _counted(label, features), values, features)


def draw_weights(left: Axes, right: Axes, label: str, report: SpectrumReport) -> None:
    weights, prefix = report.weights, f"{label}: " if label else ""
    _draw_matrix(left, f"{prefix}weights before the step", weights.before, None)
    after = weights.after if weights.after.size else weights.leading
    _draw_matrix(right, f"{prefix}weights after the step", after, weights)
