"""How far models are from the network against one swept key, and with which power of it they go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.figures.caption import caption
from onegrad.figures.style import COLOURS, RC, curve_name, head, label, save_figure
from onegrad.results.estimates import Estimate, least_squares
from onegrad.results.results import Results
from onegrad.results.summaries import Summary
from onegrad.results.verdict import ERRORS
from onegrad.spec.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = ("o", "s", "^", "D", "v")
_SURE = 2.0  # standard errors from which on a deviation counts in the fit


def save_deviations(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """figure.png, figure.pdf, and the relative deviations with their slopes as figure.csv."""
    axis = next(iter(experiment.figure.along(experiment.sweep)), "")
    curves = deviation_curves(experiment, results, axis)
    header = [axis, "curve", "model", "quantity", "deviation", "deviation_se", "slope", "slope_se"]
    rows: list[Sequence[Any]] = []
    for (name, model, quantity), points in curves.items():
        fit = fitted_power(points)
        rows += [(x, name, model, quantity, *difference, *fit) for x, difference in points]
    return save_figure(draw_deviations(experiment, results, axis), folder, header, rows)


def deviation_curves(
    experiment: Experiment, results: Results, axis: str
) -> dict[tuple[str, str, str], list[tuple[float, Estimate]]]:
    """(curve, model, quantity) → points (x, relative difference to the network), in order of x."""
    shown = experiment.figure.models or experiment.compare.models
    curves: dict[tuple[str, str, str], list[tuple[float, Estimate]]] = {}
    for s in results.summaries():
        if s.model == "network" or s.model not in shown:
            continue
        for quantity in experiment.figure.quantities:
            if quantity in ERRORS and math.isfinite(_difference(s, quantity).mean):
                key = curve_name(experiment, s.point, (axis,)), s.model, quantity
                point = float(s.point.get(axis, 0)), _difference(s, quantity)
                curves.setdefault(key, []).append(point)
    return {key: sorted(points) for key, points in curves.items()}


def fitted_power(points: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The slope of log|deviation| against log x, weighted, from points that stand out of the noise.

    NaN where fewer than three do: what is left is noise.
    """
    sure = [(x, d) for x, d in points if x > 0 and abs(d.mean) > _SURE * d.standard_error > 0]
    if len(sure) < 3:
        return Estimate(math.nan, math.nan)
    y = np.log([abs(d.mean) for _, d in sure])
    weight = np.array([abs(d.mean) / d.standard_error for _, d in sure])
    design = np.column_stack([weight, weight * np.log([x for x, _ in sure])])
    (_, slope), (_, row), _ = least_squares(design, weight * y)
    return Estimate(float(slope), float(np.linalg.norm(row)))


def draw_deviations(experiment: Experiment, results: Results, axis: str) -> Figure:
    """One panel per error, both axes logarithmic; colour tells the curve, the mark the model."""
    import matplotlib
    from matplotlib.figure import Figure

    quantities = [q for q in experiment.figure.quantities if q in ERRORS]
    curves = deviation_curves(experiment, results, axis)
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(1.0 + 4.6 * len(quantities), 5.2), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(quantities)))
        for panel, quantity in zip(panels, quantities, strict=True):
            chosen = {key[:2]: points for key, points in curves.items() if key[2] == quantity}
            _draw_panel(panel, chosen)
            panel.set_xlabel(label(axis))
            panel.set_ylabel(f"|model − network| in % of it, {label(quantity)}")
        bars = "error bars: standard errors, slopes: powers fitted to what exceeds two of them"
        head(figure, experiment.name, caption(experiment, results, bars))
    return figure


def _draw_panel(panel: Axes, curves: dict[tuple[str, str], list[tuple[float, Estimate]]]) -> None:
    names = list(dict.fromkeys(name for name, _ in curves))
    models = list(dict.fromkeys(model for _, model in curves))
    for (name, model), points in curves.items():
        fit = fitted_power(points)
        power = "" if math.isnan(fit.mean) else f", slope {fit.mean:.2f} ± {fit.standard_error:.2f}"
        mean = 100 * np.abs([d.mean for _, d in points])
        error = 100 * np.nan_to_num([d.standard_error for _, d in points])
        panel.errorbar(
            [x for x, _ in points], mean, yerr=[np.minimum(error, 0.9 * mean), error],
            color=COLOURS[names.index(name) % len(COLOURS)], linewidth=0.8, elinewidth=1.0,
            marker=_MARKS[models.index(model) % len(_MARKS)], markersize=5,
            label=", ".join(part for part in (name, model) if part) + power,
        )  # fmt: skip
    points = [point for curve in curves.values() for point in curve]
    if any(x > 0 for x, _ in points):
        panel.set_xscale("log")
    if any(difference.mean for _, difference in points):
        panel.set_yscale("log")
    if curves:
        panel.legend(fontsize=7)


def _difference(summary: Summary, quantity: str) -> Estimate:
    return Estimate(*getattr(summary, ERRORS[quantity]))
