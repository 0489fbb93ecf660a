"""Errors against one swept key: dots with error bars, equivalent models, theory lines."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.experiments.results import Results, Summary
from onegrad.experiments.spec import Experiment
from onegrad.figures.style import COLOURS, LINES, MARKS, RATIOS, RC, label, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_curves(experiment: Experiment, results: Results) -> Figure:
    """One panel per error; colour tells the other swept keys, the mark tells the model."""
    import matplotlib
    from matplotlib.figure import Figure

    axis = horizontal_key(experiment)
    summaries = [s for s in results.summaries() if math.isfinite(s.test_error.mean)]
    with matplotlib.rc_context(RC):
        quantities = experiment.figure.quantities
        figure = Figure(figsize=(2.4 + 3.6 * len(quantities), 4.6), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(quantities)))
        for panel, quantity in zip(panels, quantities, strict=True):
            _draw_panel(panel, summaries, axis, quantity)
        figure.suptitle(experiment.name)
        _legend(figure, summaries, axis)
        figure.supxlabel(caption(experiment), fontsize=8, color="#444444")
    return figure


def horizontal_key(experiment: Experiment) -> str:
    """The numeric key with the most values; the others become separate curves."""
    numeric = {
        key: len(values)
        for key, values in experiment.sweep.items()
        if key == "data.weights" or all(isinstance(v, int | float) for v in values)
    }
    return max(numeric, key=lambda key: numeric[key]) if numeric else ""


def _position(summary: Summary, axis: str) -> float:
    """Where a point stands on the horizontal axis; mixtures by their first weight."""
    value = summary.point.get(axis, 0)
    return float(value[0] if isinstance(value, list | tuple) else value)


def _curve_of(summary: Summary, axis: str) -> str:
    others = [
        v if isinstance(v, str) else f"{k.rpartition('.')[2]} = {v:g}"
        for k, v in summary.point.items()
        if k != axis
    ]
    return ", ".join(others)


def _draw_panel(panel: Axes, summaries: list[Summary], axis: str, quantity: str) -> None:
    curves = list(dict.fromkeys(_curve_of(s, axis) for s in summaries))
    values: list[float] = []
    for model in dict.fromkeys(s.model for s in summaries):
        for curve in curves:
            chosen = [s for s in summaries if s.model == model and _curve_of(s, axis) == curve]
            if not chosen:
                continue
            x = [_position(s, axis) for s in chosen]
            y = np.array([getattr(s, quantity).mean for s in chosen])
            e = np.nan_to_num([getattr(s, quantity).standard_error for s in chosen])
            colour = COLOURS[curves.index(curve) % len(COLOURS)]
            values += [v for v in y if v > 0]
            if model in LINES and len(chosen) == 1:
                panel.axhline(float(y[0]), color=colour, linestyle=LINES[model], lw=1.3, zorder=1)
            elif model in LINES:
                panel.plot(x, y, color=colour, linestyle=LINES[model], lw=1.3, zorder=1)
            else:
                # the other models share the network's draws: their own bars would mislead
                bars = e if model == "network" else None
                panel.errorbar(x, y, yerr=bars, **_mark(model, colour))
    if axis:
        xs = [_position(s, axis) for s in summaries]
        if axis in RATIOS and min(xs) > 0 and max(xs) / min(xs) > 8:
            panel.set_xscale("log")
            ticks = _spaced(sorted(set(xs)))
            panel.set_xticks(ticks, [f"{x:g}" for x in ticks])
            panel.minorticks_off()
    else:
        panel.set_xticks([])
    if values and max(values) / min(values) > 8:
        panel.set_yscale("log")
    panel.set_xlabel(label(axis))
    panel.set_ylabel(label(quantity))


def _spaced(values: list[float], apart: float = 1.35) -> list[float]:
    """Those of the sorted values that leave room for their labels on a logarithmic axis."""
    chosen: list[float] = []
    for value in values:
        if not chosen or value / chosen[-1] >= apart:
            chosen.append(value)
    return chosen


def _mark(model: str, colour: str) -> dict[str, Any]:
    mark = MARKS[model]
    return {
        "color": colour,
        "marker": mark["marker"],
        "markersize": mark["size"],
        "markerfacecolor": colour if mark["fill"] else "none",
        "linestyle": "none",
        "linewidth": 0,
        "elinewidth": 1.0,
        "markeredgewidth": 1.0,
        "zorder": 3 if mark["fill"] else 2,
    }


def _legend(figure: Figure, summaries: list[Summary], axis: str) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for i, curve in enumerate(dict.fromkeys(_curve_of(s, axis) for s in summaries)):
        if curve:
            handles.append(Line2D([], [], color=COLOURS[i % len(COLOURS)], lw=3, label=curve))
    for model in dict.fromkeys(s.model for s in summaries):
        if model in LINES:
            line = Line2D([], [], color="#555555", linestyle=LINES[model], lw=1.3, label=model)
            handles.append(line)
            continue
        style = {k: v for k, v in _mark(model, "#555555").items() if k != "elinewidth"}
        handles.append(Line2D([], [], label=model, **style))
    figure.legend(handles=handles, loc="outside right upper")


def caption(experiment: Experiment, seeds: int | None = None) -> str:
    """What was simulated: sizes, ridge, seeds; swept keys are on the axes already."""
    if seeds == 1:
        return ", ".join([*_sizes(experiment), "one draw"])
    bars = "error bars: standard error of the network"
    return ", ".join([*_sizes(experiment), experiment.compare.repetitions, bars])


def _sizes(experiment: Experiment) -> list[str]:
    problem = experiment.points[0].problem
    parts = {
        "data.dim": f"n = {problem.dim}",
        "training.samples": f"m = {problem.samples}",
        "network.width": f"k = {problem.width}",
        "training.ridge": f"ridge = {problem.training.ridge:g}",
    }
    if problem.scaling.strength is not None:
        parts["scaling.strength"] = f"β = {problem.scaling.strength:g}"
        parts["scaling.weighting"] = f"α = {problem.scaling.weighting:g}"
    if problem.scaling.exponent is not None:
        parts["scaling.exponent"] = (
            f"η = {problem.scaling.constant or 1:g}·m^{problem.scaling.exponent:g}"
        )
    swept = set(experiment.sweep)
    if "network.width_ratio" in swept:
        swept.add("network.width")
    return [text for key, text in parts.items() if key not in swept]


def save_curves(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """figure.png, figure.pdf and the numbers behind them as figure.csv."""
    written = save_figure(draw_curves(experiment, results), folder)
    path = folder / "figure.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        keys = list(experiment.sweep)
        columns = ("test_error", "train_error", "train_objective")
        writer.writerow([*keys, "model", "seeds", *(c + s for c in columns for s in ("", "_se"))])
        for s in results.summaries():
            numbers = [v for c in columns for v in getattr(s, c)]
            writer.writerow([*(s.point[k] for k in keys), s.model, s.seeds, *numbers])
    written.append(path)
    return written
