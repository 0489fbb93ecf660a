"""Errors against one swept key: dots with error bars, equivalent models, theory lines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.figures.caption import caption
from onegrad.figures.style import (
    COLOURS,
    LINES,
    MARKS,
    RATIOS,
    RC,
    curve_name,
    head,
    label,
    quantity_rows,
    save_figure,
)
from onegrad.results.rows import Results, Summary
from onegrad.specs.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_curves(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """figure.png, figure.pdf and the numbers behind them as figure.csv."""
    figure = draw_curves(experiment, results)
    return save_figure(figure, folder, *quantity_rows(experiment, results))


def draw_curves(experiment: Experiment, results: Results) -> Figure:
    """One panel per error; colour tells the other swept keys, the mark tells the model."""
    import matplotlib
    from matplotlib.figure import Figure

    axis = next(iter(experiment.figure.along(experiment.sweep)), "")
    shown = experiment.figure.models or experiment.compare.models
    curves: dict[str, list[Summary]] = {}
    for s in results.summaries():
        if s.model in shown and math.isfinite(s.test_error.mean):
            curves.setdefault(curve_name(experiment, s.point, (axis,)), []).append(s)
    with matplotlib.rc_context(RC):
        quantities = experiment.figure.quantities
        figure = Figure(figsize=(2.4 + 3.6 * len(quantities), 4.6), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(quantities)))
        for panel, quantity in zip(panels, quantities, strict=True):
            _draw_panel(panel, curves, axis, quantity)
        _legend(figure, curves)
        bars = "error bars: standard error of the network"
        head(figure, experiment.name, caption(experiment, results, bars))
    return figure


def _position(summary: Summary, axis: str) -> float:
    """Where a point stands on the horizontal axis; mixtures by their first weight."""
    value = summary.point.get(axis, 0)
    return float(value[0] if isinstance(value, list | tuple) else value)


def _draw_panel(panel: Axes, curves: dict[str, list[Summary]], axis: str, quantity: str) -> None:
    values: list[float] = []
    for i, summaries in enumerate(curves.values()):
        for model in dict.fromkeys(s.model for s in summaries):
            chosen = [s for s in summaries if s.model == model]
            x = [_position(s, axis) for s in chosen]
            y = np.array([getattr(s, quantity).mean for s in chosen])
            e = np.nan_to_num([getattr(s, quantity).standard_error for s in chosen])
            colour = COLOURS[i % len(COLOURS)]
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
        xs = [_position(s, axis) for summaries in curves.values() for s in summaries]
        if axis in RATIOS and min(xs) > 0 and max(xs) / min(xs) > 8:
            panel.set_xscale("log")
            ticks = _spaced(sorted(set(xs)))
            panel.set_xticks(ticks, [f"{x:g}" for x in ticks])
            panel.minorticks_off()
        elif all(x == int(x) for x in xs) and len(set(xs)) <= 10:
            panel.set_xticks(sorted(set(xs)))
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


def _legend(figure: Figure, curves: dict[str, list[Summary]]) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for i, name in enumerate(curves):
        if name:
            handles.append(Line2D([], [], color=COLOURS[i % len(COLOURS)], lw=3, label=name))
    for model in dict.fromkeys(s.model for summaries in curves.values() for s in summaries):
        if model in LINES:
            line = Line2D([], [], color="#555555", linestyle=LINES[model], lw=1.3, label=model)
            handles.append(line)
            continue
        style = {k: v for k, v in _mark(model, "#555555").items() if k != "elinewidth"}
        handles.append(Line2D([], [], label=model, **style))
    figure.legend(handles=handles, loc="outside right center")
