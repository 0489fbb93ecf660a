"""Heat maps over two swept keys: errors of each model, or differences to a reference model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.figures.caption import caption
from onegrad.figures.published_layer import draw_published_discs, published_points
from onegrad.figures.style import RC, curve_name, head, label, quantity_rows, save_figure, tick
from onegrad.results.estimates import Estimate
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.results.summaries import estimate, relative_difference
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import PublishedPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TICKS = 10  # most cells along an axis for which each value is printed
_MOST_WRITTEN = 64  # most cells of a panel in which the number is printed


@dataclass(frozen=True)
class _Cells:
    """One panel: a number and its standard error in every cell, [vertical, horizontal]."""

    values: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True)
class _Scale:
    """How a cell's number is coloured and written; `dots`: whether uncertain ones get a dot."""

    norm: Any
    colours: str
    label: str
    written: Any
    dots: bool = False


def save_map(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """The first of figure.quantities, a row of panels per model."""
    return save_figure(draw_map(experiment, results), folder, *quantity_rows(experiment, results))


def draw_map(experiment: Experiment, results: Results) -> Figure:
    """One colour scale for all panels, logarithmic where the errors span more than a factor 8."""
    from matplotlib.colors import LogNorm, Normalize

    quantity = experiment.figure.quantities[0]
    panels = _panels(experiment, results, lambda rows, _: estimate(rows, quantity))
    finite = _finite(panels)
    positive = finite[finite > 0]
    log = positive.size == finite.size and finite.size and finite.max() / finite.min() > 8
    norm = (LogNorm if log else Normalize)(*_range(finite))
    text = caption(experiment, results, *_remarks(experiment))
    return _draw(experiment, panels, _Scale(norm, "cividis", label(quantity), _short), text)


def save_difference_map(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Each model minus figure.reference, in percent of the reference."""
    reference = experiment.figure.reference
    quantity = experiment.figure.quantities[0]
    header = [*experiment.sweep, "model", "reference", "quantity", "percent", "percent_se"]
    rows = []
    for point, model, difference in _differences(experiment, results):
        numbers = (100 * difference.mean, 100 * difference.standard_error)
        rows.append([*point.values(), model, reference, quantity, *numbers])
    return save_figure(draw_difference_map(experiment, results), folder, header, rows)


def draw_difference_map(experiment: Experiment, results: Results) -> Figure:
    """Red is worse than the reference, blue better; a dot marks what two standard errors cover.

    Beyond 50 % the colour scale is logarithmic outside ±5 %, so that small differences are seen.
    """
    from matplotlib.colors import Normalize, SymLogNorm

    reference = experiment.figure.reference
    quantity = experiment.figure.quantities[0]

    def compare(rows: list[Row], base: list[Row]) -> Estimate:
        mean, error = relative_difference(rows, base, quantity)
        return Estimate(100 * mean, 100 * error)

    panels = _panels(experiment, results, compare)
    finite = np.abs(_finite(panels))
    most = float(finite.max()) if finite.size else 1.0
    norm = SymLogNorm(5.0, vmin=-most, vmax=most) if most > 50 else Normalize(-most, most)
    name = f"{label(quantity)}: percent above {reference}"
    text = caption(experiment, results, "·: within two standard errors of zero",
                   *_remarks(experiment))  # fmt: skip
    return _draw(experiment, panels, _Scale(norm, "RdBu_r", name, _percent, dots=True), text)


def _differences(
    experiment: Experiment, results: Results
) -> list[tuple[dict[str, Any], str, Estimate]]:
    groups = results.groups()
    quantity = experiment.figure.quantities[0]
    found = []
    for point in experiment.points:
        base = groups.get((point.number, experiment.figure.reference), [])
        for model in _models(experiment):
            rows = groups.get((point.number, model), [])
            difference = relative_difference(rows, base, quantity)
            found.append((point.settings, model, difference))
    return found


def _models(experiment: Experiment) -> list[str]:
    shown = experiment.figure.models or experiment.compare.models
    if experiment.figure.kind == "difference-map":
        return [model for model in shown if model != experiment.figure.reference]
    return list(shown)


def _panels(experiment: Experiment, results: Results, number: Any) -> dict[tuple[str, str], _Cells]:
    """(model, other keys) -> cells; `number` makes one of the model's and the reference's rows."""
    across, up = experiment.figure.along(experiment.sweep)
    columns = _steps(experiment, across)
    lines = _steps(experiment, up)
    groups = results.groups()
    panels: dict[tuple[str, str], _Cells] = {}
    for model in _models(experiment):
        for point in experiment.points:
            name = curve_name(experiment, point.settings, (across, up))
            shape = (len(lines), len(columns))
            blank = _Cells(np.full(shape, np.nan), np.full(shape, np.nan))
            cells = panels.setdefault((model, name), blank)
            rows = groups.get((point.number, model), [])
            base = groups.get((point.number, experiment.figure.reference), [])
            at = (lines.index(point.settings[up]), columns.index(point.settings[across]))
            if rows:
                cells.values[at], cells.errors[at] = number(rows, base)
    return panels


def _steps(experiment: Experiment, key: str) -> list[Any]:
    """The values along an axis, in order; mixtures and names as they come."""
    values = list({repr(v): v for v in experiment.sweep[key]}.values())
    if all(isinstance(v, int | float) for v in values):
        return sorted(values)
    return values


def _finite(panels: dict[tuple[str, str], _Cells]) -> np.ndarray:
    values = np.concatenate([cells.values.ravel() for cells in panels.values()])
    return values[np.isfinite(values)]


def _range(values: np.ndarray) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _short(value: float) -> str:
    return f"{value:.2g}"


def _percent(value: float) -> str:
    return f"{value:+.0f}" if abs(value) >= 10 else f"{value:+.1f}"


def _draw(
    experiment: Experiment,
    panels: dict[tuple[str, str], _Cells],
    scale: _Scale,
    text: str,
) -> Figure:
    import matplotlib
    from matplotlib.colors import LogNorm, SymLogNorm
    from matplotlib.figure import Figure

    across, up = experiment.figure.along(experiment.sweep)
    columns, lines = _steps(experiment, across), _steps(experiment, up)
    published = published_points(experiment, experiment.figure.quantities[0])
    models = list(dict.fromkeys(model for model, _ in panels))
    names = list(dict.fromkeys(name for _, name in panels))
    most = max(len(columns), len(lines))
    cell = max(0.42, min(0.62, 3.6 / most)) if most <= _MOST_TICKS else 4.2 / most
    width, height = cell * len(columns) + 0.7, cell * 0.8 * len(lines) + 0.55
    size = (width * len(names) + 1.5, height * len(models) + 1.2)
    with matplotlib.rc_context(RC | {"axes.grid": False, "axes.spines.left": False,
                                     "axes.spines.bottom": False}):  # fmt: skip
        figure = Figure(figsize=(max(size[0], 5.5), size[1]), layout="constrained")
        grid = figure.subplots(len(models), len(names), squeeze=False, sharex=True, sharey=True)
        image = None
        for i, model in enumerate(models):
            for j, name in enumerate(names):
                panel, cells = grid[i, j], panels[model, name]
                image = panel.imshow(
                    cells.values, origin="lower", aspect="auto", cmap=scale.colours, norm=scale.norm
                )
                panel.set_xticks(*_ticks(columns))
                panel.set_yticks(*_ticks(lines))
                panel.tick_params(length=0)
                panel.set_title(", ".join(filter(None, (name, model))), fontsize=9.5)
                if cells.values.size <= _MOST_WRITTEN:
                    _write(panel, cells, image, scale)
                layer = [p for p in published if _belongs(p, model, name) and not p.bound]
                if layer:
                    below = 0.3 if cells.values.size <= _MOST_WRITTEN else 0.0
                    draw_published_discs(panel, layer, image, (across, columns), (up, lines), below)
        assert image is not None
        bar = figure.colorbar(
            image, ax=grid, label=scale.label, shrink=0.8 if len(models) > 1 else 1.0
        )
        if isinstance(scale.norm, LogNorm | SymLogNorm):
            ticks = _round_ticks(scale.norm)
            bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks], minor=False)
            bar.minorticks_off()
        for panel in grid[-1]:
            panel.set_xlabel(_brief(across))
        for panel in grid[:, 0]:
            panel.set_ylabel(_brief(up))
        head(figure, experiment.name, text)
    return figure


def _remarks(experiment: Experiment) -> list[str]:
    published = published_points(experiment, experiment.figure.quantities[0])
    return ["discs: published"] if published else []


def _belongs(point: PublishedPoint, model: str, name: str) -> bool:
    """Whether a published point is one of this panel: of its model, or of the model's gap."""
    activation = point.point.get("network.activation", "")
    return point.model in (model, f"gap:{model}") and (not name or activation in name.split(", "))


def _ticks(values: list[Any]) -> tuple[list[int], list[str]]:
    """Cells that have room for their value: all of ten, six or so of more."""
    last = len(values) - 1
    few = range(len(values)) if last < _MOST_TICKS else [round(i * last / 5) for i in range(6)]
    shown = [f"{values[i]:.2g}" if isinstance(values[i], float) else tick(values[i]) for i in few]
    return list(few), shown


def _round_ticks(norm: Any) -> list[float]:
    """1, 2 and 5 times powers of ten that a logarithmic scale covers, of both signs if it does."""
    round_numbers = [t * 10.0**p for p in range(-12, 12) for t in (1, 2, 5)]
    if norm.vmin > 0:
        return [t for t in round_numbers if norm.vmin <= t <= norm.vmax]
    positive = [t for t in round_numbers if norm.linthresh <= t <= norm.vmax]
    if len(positive) > 5:  # no room for more on both sides
        positive = positive[::2]
    return [*(-t for t in reversed(positive)), 0.0, *positive]


def _brief(key: str) -> str:
    """An axis label without its explanation, which has no room under a small panel."""
    return label(key).partition("  ")[0]


def _write(panel: Any, cells: _Cells, image: Any, scale: _Scale) -> None:
    for (i, j), value in np.ndenumerate(cells.values):
        if not math.isfinite(value):
            panel.text(j, i, "×", ha="center", va="center", color="#888888")
            continue
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        unsure = scale.dots and abs(value) <= 2 * cells.errors[i, j]
        text = scale.written(value) + ("·" if unsure else "")
        panel.text(
            j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black"
        )
