"""Published points on our figures: small black crosses with their reading error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.figures.theory_lines import position
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import PublishedPoint, comparable, is_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_MARKS = {"network": "x", "hermite": "+"}
_NAMES = {"network": "published network", "hermite": "published hermite"}


def published_points(experiment: Experiment, quantity: str) -> list[PublishedPoint]:
    """Those of the figure that the experiment names, at the points that it has."""
    figure = comparable(experiment)
    if figure is None:
        return []
    return [
        p
        for p in figure.points
        if p.quantity == quantity and any(is_at(p, point) for point in experiment.points)
    ]


def draw_published(panel: Axes, points: Sequence[PublishedPoint], axis: str) -> None:
    """Crosses for the network, plus signs for the Hermite model."""
    for model, marker in _MARKS.items():
        chosen = [p for p in points if p.model == model and axis in p.point]
        if not chosen:
            continue
        panel.errorbar(
            [position(p.point[axis]) for p in chosen], [p.value for p in chosen],
            yerr=[p.error for p in chosen], color="black", marker=marker, markersize=4.5,
            markeredgewidth=0.8, linestyle="none", elinewidth=0.6, capsize=0, zorder=5,
        )  # fmt: skip


def published_handles(points: Sequence[PublishedPoint]) -> list[Line2D]:
    """Lines of the legend, for the models that there are points of."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"color": "black", "linestyle": "none", "markersize": 4.5}
    return [
        Line2D([], [], marker=marker, markeredgewidth=0.8, label=_NAMES[model], **style)
        for model, marker in _MARKS.items()
        if any(p.model == model for p in points)
    ]


def draw_published_discs(
    panel: Axes,
    points: Sequence[PublishedPoint],
    image: Any,
    across: tuple[str, Sequence[float]],
    up: tuple[str, Sequence[float]],
    below: float = 0.0,
) -> None:
    """On a map: discs in the colours of its scale, so that a disc that is seen is a difference.

    across, up : the key of each axis and its values, one cell each
    below : how far below the middle of a cell, where a number stands
    """
    x = [float(np.interp(p.point[across[0]], across[1], range(len(across[1])))) for p in points]
    y = [float(np.interp(p.point[up[0]], up[1], range(len(up[1])))) - below for p in points]
    panel.scatter(
        x, y, c=[p.value for p in points], cmap=image.cmap, norm=image.norm, s=22,
        edgecolors="black", linewidths=0.5, zorder=3,
    )  # fmt: skip
