"""The error of the best constant predictor, Var y, as a thin line where it fits on the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.results.summaries import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

NAME = "best constant, Var y"
STYLE: dict[str, Any] = {"color": "#888888", "linestyle": (0, (1, 1.5)), "linewidth": 0.8}


def label_power(summary: Summary) -> float:
    """Mean Var y at a point; NaN where it is not known."""
    return float(np.divide(summary.test_error.mean, summary.relative_error.mean))


def best_constant(
    panel: Axes,
    curves: Mapping[str, Sequence[Summary]],
    positions: Mapping[int, float],
    fine: Mapping[str, tuple[np.ndarray, np.ndarray]] = MappingProxyType({}),
) -> list[Line2D]:
    """Add the lines, one for each different one, without moving the axis; what the legend says.

    positions : by the id of a summary, where it stands on the horizontal axis. A line of which
        nothing lies within the limits is left out.
    fine : by the name of a curve, Var y on a grid of its own
    """
    from matplotlib.lines import Line2D

    low, high = panel.get_ylim()
    drawn: list[tuple[np.ndarray, np.ndarray]] = []
    for name, summaries in curves.items():
        first = [s for s in summaries if s.model == summaries[0].model]
        points = sorted((positions[id(s)], label_power(s)) for s in first)
        x, y = fine.get(name, np.array(points).T)
        if not np.any((low <= y) & (y <= high)) or any(_same((x, y), one) for one in drawn):
            continue
        drawn.append((x, y))
        if len(points) == 1:
            panel.axhline(float(y[0]), zorder=0.5, **STYLE)
        else:
            panel.plot(x, y, zorder=0.5, **STYLE)
    panel.set_ylim(low, high)
    return [Line2D([], [], label=NAME, **STYLE)] if drawn else []


def _same(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> bool:
    """Curves of other activations, say, have the same labels."""
    return all(a.shape == b.shape and np.allclose(a, b) for a, b in zip(one, other, strict=True))
