"""Errors against one swept key: dots with error bars, equivalent models, theory lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.figures.caption import caption
from onegrad.figures.published_layer import draw_published, published_handles, published_points
from onegrad.figures.style import (
    COLOURS,
    LINES,
    RATIOS,
    RC,
    curve_name,
    head,
    label,
    mark_of,
    quantity_rows,
    save_figure,
)
from onegrad.figures.theory_lines import (
    NOTHING,
    TheoryLine,
    best_constant,
    position,
    theory_line,
)
from onegrad.results.results import Results
from onegrad.results.summaries import Summary
from onegrad.spec.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curves = dict[str, list[Summary]]


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
    chosen = [s for s in results.summaries() if s.model in shown]
    curves, failed = curves_of(chosen, lambda s: curve_name(experiment, s.point, (axis,)))
    with matplotlib.rc_context(RC):
        quantities = experiment.figure.quantities
        figure = Figure(figsize=(2.4 + 3.6 * len(quantities), 4.6), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(quantities)))
        lines = theory_lines(curves, axis, quantities)
        layers = [published_points(experiment, quantity) for quantity in quantities]
        constant = []
        for panel, quantity, published in zip(panels, quantities, layers, strict=True):
            draw_panel(panel, curves, lines, axis, quantity, bool(published))
            draw_failed(panel, list(curves), failed, axis)
            draw_published(panel, published, axis)
            if quantity == "test_error" and curves:
                at = {
                    id(s): position(s.point.get(axis, 0)) for part in curves.values() for s in part
                }
                fine = {
                    name: (line.x, line.power)
                    for (name, _), line in lines.items()
                    if line.power is not None
                }
                constant += best_constant(panel, curves, at, fine)
        handles = [
            *legend_handles(curves, failed),
            *published_handles([p for layer in layers for p in layer]),
            *constant,
        ]
        figure.legend(handles=handles, loc="outside right center")
        bars = "error bars: standard error of the network"
        if any(layers):
            bars += ", pale: spread between data sets"
        head(figure, experiment.name, caption(experiment, results, bars))
    return figure


def curves_of(
    summaries: Iterable[Summary], name: Callable[[Summary], str]
) -> tuple[Curves, Curves]:
    """The summaries of each curve: first those with numbers, then the failed ones."""
    curves: Curves = {}
    failed: Curves = {}
    for s in summaries:
        group = curves if math.isfinite(s.test_error.mean) else failed
        group.setdefault(name(s), []).append(s)
    return curves, failed


def theory_lines(
    curves: Curves, axis: str, quantities: Sequence[str]
) -> dict[tuple[str, str], TheoryLine]:
    """The line of every theory of every curve, by (curve, model)."""
    found = {}
    for name, summaries in curves.items():
        for model in LINES:
            chosen = [s for s in summaries if s.model == model]
            if chosen:
                found[name, model] = theory_line(chosen, axis, quantities)
    return found


def draw_panel(
    panel: Axes,
    curves: Curves,
    lines: dict[tuple[str, str], TheoryLine],
    axis: str,
    quantity: str,
    spread: bool,
) -> None:
    """spread : also the standard deviation between repetitions, as a pale bar"""
    values: list[float] = []
    for i, (name, summaries) in enumerate(curves.items()):
        for model in dict.fromkeys(s.model for s in summaries):
            chosen = [s for s in summaries if s.model == model]
            x = [position(s.point.get(axis, 0)) for s in chosen]
            y = np.array([getattr(s, quantity).mean for s in chosen])
            e = np.nan_to_num([getattr(s, quantity).standard_error for s in chosen])
            colour = COLOURS[i % len(COLOURS)]
            values += [v for v in y if v > 0]
            if model in LINES and len(chosen) == 1:
                panel.axhline(float(y[0]), color=colour, linestyle=LINES[model], lw=1.3, zorder=1)
            elif model in LINES:
                line = lines[name, model]
                panel.plot(
                    line.x, line.errors[quantity], color=colour, linestyle=LINES[model], lw=1.3,
                    zorder=1, marker=".", markersize=2.5, markevery=line.marks,
                )  # fmt: skip
            else:
                # the other models share the network's draws: their own bars would mislead
                bars = e if model == "network" else None
                panel.errorbar(x, y, yerr=bars, **_mark(model, colour))
                if model == "network" and spread:
                    between = e * np.sqrt([s.seeds for s in chosen])
                    panel.vlines(x, y - between, y + between, color=colour, alpha=0.2, lw=4)
    if axis:
        xs = [position(s.point[axis]) for summaries in curves.values() for s in summaries]
        above = sorted({x for x in xs if x > 0})
        if axis in RATIOS and min(xs) == 0 and len(above) > 2 and above[-1] / above[0] > 8:
            panel.set_xscale("symlog", linthresh=above[0])
            ticks = [0.0, *_spaced(above)]
            panel.set_xticks(ticks, [_tick(x) for x in ticks])
            panel.minorticks_off()
        elif axis in RATIOS and min(xs) > 0 and max(xs) / min(xs) >= 4:
            panel.set_xscale("log")
            ticks = _spaced(sorted(set(xs)))
            panel.set_xticks(ticks, [_tick(x) for x in ticks])
            panel.minorticks_off()
        elif all(x == int(x) for x in xs) and len(set(xs)) <= 10:
            panel.set_xticks(sorted(set(xs)))
    else:
        panel.set_xticks([])
    values = [v for v in values if v > NOTHING * max(values)]
    if values and max(values) / min(values) > 8 and not spread:  # as published: linear
        _log_scale(panel)
    panel.set_xlabel(label(axis))
    panel.set_ylabel(label(quantity))


def draw_failed(panel: Axes, names: list[str], failed: Curves, axis: str) -> None:
    """Crosses above the axis for models without a number, one line for each model and curve."""
    lines: dict[tuple[str, str], list[float]] = {}
    for name, summaries in failed.items():
        for s in summaries:
            lines.setdefault((s.model, name), []).append(position(s.point.get(axis, 0)))
    for i, ((_, name), x) in enumerate(lines.items()):
        colour = COLOURS[names.index(name) % len(COLOURS)] if name in names else "#555555"
        panel.plot(
            x, [0.02 + 0.035 * i] * len(x), transform=panel.get_xaxis_transform(), **_CROSS,
            color=colour,
        )  # fmt: skip


_CROSS: dict[str, Any] = {
    "marker": "x", "markersize": 5, "markeredgewidth": 1.2, "linestyle": "none", "zorder": 4,
}  # fmt: skip


def _models(curves: Curves) -> list[str]:
    return list(dict.fromkeys(s.model for summaries in curves.values() for s in summaries))


def _log_scale(panel: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())


def _tick(x: float) -> str:
    return f"{x:.3g}" if x < 1000 else f"{x:g}"


_DIGITS = 34  # digits that fit side by side under a panel
_GAP = 0.6  # gap between two labels, in widths of a digit
_EVEN = 1.05


def _spaced(values: list[float], labels: int = 11) -> list[float]:
    """Those of the sorted values that leave room for their labels on a logarithmic axis, `labels`
    side by side at most; every second or third of evenly spaced ones."""
    digit = math.log(values[-1] / values[0]) / _DIGITS
    least = max(math.log(1.35), digit * _DIGITS / labels)

    def fit(a: float, b: float) -> bool:
        return math.log(b / a) >= max(least, digit * ((_size(a) + _size(b)) / 2 + _GAP))

    ratios = [b / a for a, b in itertools.pairwise(values)]
    if max(ratios) <= _EVEN * min(ratios):
        strides = (values[::step] for step in range(1, len(values)))
        fitting = (some for some in strides if all(fit(*pair) for pair in itertools.pairwise(some)))
        return next(fitting, values[:1])
    chosen = values[:1]
    for value in values[1:]:
        if fit(chosen[-1], value):
            chosen.append(value)
    return chosen


def _size(x: float) -> float:
    """Of a label, in digits; a point is half as wide."""
    return len(_tick(x)) - 0.5 * ("." in _tick(x))


def _mark(model: str, colour: str) -> dict[str, Any]:
    mark = mark_of(model)
    return {
        "color": colour,
        "marker": mark.marker,
        "markersize": mark.size,
        "markerfacecolor": colour if mark.filled else "none",
        "linestyle": "none",
        "linewidth": 0,
        "elinewidth": 1.0,
        "markeredgewidth": 1.0,
        "zorder": 3 if mark.filled else 2,
    }


def legend_handles(curves: Curves, failed: Curves) -> list[Any]:
    """One for every curve's colour, one for every model's mark, and one for what failed."""
    from matplotlib.lines import Line2D

    handles = []
    for i, name in enumerate(curves):
        if name:
            handles.append(Line2D([], [], color=COLOURS[i % len(COLOURS)], lw=3, label=name))
    for model in _models(curves):
        if model in LINES:
            line = Line2D([], [], color="#555555", linestyle=LINES[model], lw=1.3, label=model)
            handles.append(line)
            continue
        style = {k: v for k, v in _mark(model, "#555555").items() if k != "elinewidth"}
        handles.append(Line2D([], [], label=model, **style))
    if failed:
        words = f"failed: {', '.join(_models(failed))}"
        handles.append(Line2D([], [], label=words, color="#555555", **_CROSS))
    return handles
