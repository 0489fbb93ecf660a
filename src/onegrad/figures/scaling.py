"""Scaling laws: test errors against each of two swept sizes and against both, with exponents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.errors import SpecError
from onegrad.figures.caption import caption
from onegrad.figures.style import COLOURS, RC, head, label, mark_of, save_figure, tick
from onegrad.results.estimates import Estimate
from onegrad.results.exponents import ScalingExponent, scaling_exponents
from onegrad.results.results import Results
from onegrad.results.summaries import Summary
from onegrad.spec.experiment import Experiment
from onegrad.text.display import settings_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROOM = 0.3  # share of the panel's height kept free for the legend


def save_scaling(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """figure.png, figure.pdf, and the exponents of every curve and model as figure.csv."""
    header = ["along", "at", "model", "exponent", "exponent_se", "local"]
    rows: list[Sequence[Any]] = []
    for name, axis, part in panels_of(experiment, results):
        for one in _exponents(part, axis):
            local = " ".join(f"{value:.4g}" for value in one.local)
            rows.append([name, settings_text(one.point), one.model, *one.exponent, local])
    return save_figure(draw_scaling(experiment, results), folder, header, rows)


def panels_of(experiment: Experiment, results: Results) -> list[tuple[str, str, Results]]:
    """(title, key along the axis, rows): each of the two keys, then both in a fixed ratio."""
    axes = experiment.figure.along(experiment.sweep)
    panels_of = [(f"against {label(axis)}", axis, results) for axis in axes]
    if len(axes) == 2:
        first, second = axes
        ratios = Counter(
            {p: p[1] / p[0] for p in {(r.point[first], r.point[second]) for r in results.rows}
             if p[0] > 0}.values()
        )  # fmt: skip
        # the ratio with the most points; away from one, where networks interpolate
        ratio = max(ratios, key=lambda r: (ratios[r], abs(math.log(r))), default=1.0)
        rows = tuple(
            replace(row, point={k: v for k, v in row.point.items() if k != first})
            for row in results.rows
            if row.point[second] == ratio * row.point[first]
        )
        named = f"both, {label(second)} = {ratio:g} · {label(first)}"
        panels_of.append((named, second, Results(results.name, rows)))
    return panels_of


def draw_scaling(experiment: Experiment, results: Results) -> Figure:
    """A panel for each, both axes logarithmic: dots of networks, lines of the theory, and in the
    legend the exponents of both."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = experiment.figure.models or experiment.compare.models
    with matplotlib.rc_context(RC):
        parts = panels_of(experiment, results)
        figure = Figure(figsize=(0.6 + 4.4 * len(parts), 4.8), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(parts), sharey=True))
        for panel, (title, axis, part) in zip(panels, parts, strict=True):
            _draw_panel(panel, axis, [s for s in part.summaries() if s.model in shown],
                        _exponents(part, axis))  # fmt: skip
            panel.set_title(title, fontsize=10)
            panel.set_xlabel(label(axis))
        panels[0].set_ylabel(label("test_error"))
        low, high = panels[0].get_ylim()
        panels[0].set_ylim(low, high * (high / low) ** _ROOM)
        bars = "error bars: standard errors; exponents: test error ∝ size^−exponent, fitted"
        head(figure, experiment.name, caption(experiment, results, bars))
    return figure


def _exponents(results: Results, axis: str) -> list[ScalingExponent]:
    """None where a curve has fewer than three points."""
    try:
        return scaling_exponents(results, axis)
    except SpecError:
        return []


def _draw_panel(
    panel: Axes, axis: str, summaries: list[Summary], exponents: list[ScalingExponent]
) -> None:
    from matplotlib.ticker import LogLocator

    curves: dict[str, dict[str, list[Summary]]] = {}
    for s in summaries:
        if s.status == "ok" and s.test_error.mean > 0:
            rest = settings_text({k: v for k, v in s.point.items() if k != axis})
            curves.setdefault(rest, {}).setdefault(s.model, []).append(s)
    for number, (name, models) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        fits = {one.model: one.exponent for one in exponents if settings_text(one.point) == name}
        powers = [_power(model, fits.get(model)) for model in models]
        legend = ": ".join(part for part in (name, ", ".join(powers)) if part)
        for model, group in models.items():
            group.sort(key=lambda s: float(s.point[axis]))
            mark = mark_of(model)
            panel.errorbar(
                [float(s.point[axis]) for s in group], [s.test_error.mean for s in group],
                yerr=None if mark.line else [s.test_error.standard_error for s in group],
                color=colour, linestyle=mark.line or "none", marker=mark.marker or None,
                markersize=5, linewidth=1.3,
                label=legend if model == next(iter(models)) else None,
            )  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")
    values = sorted({s.point[axis] for s in summaries})
    panel.set_xticks(values, [tick(v) for v in values])
    panel.minorticks_off()
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if curves:
        panel.legend(fontsize=7, title="exponents", title_fontsize=7)


def _power(model: str, fit: Estimate | None) -> str:
    if fit is None:
        return model
    exact = bool(mark_of(model).line)
    return f"{model} {fit.mean:.2f}" + ("" if exact else f" ± {fit.standard_error:.2f}")
