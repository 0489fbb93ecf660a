"""Lines on the panels of curves: the theory through the points of the run, and the best constant.

Nothing is computed while a figure is drawn. A theory's errors are interpolated as logarithms where
they are positive, positions as logarithms where ratios count, by piecewise cubics that neither
overshoot nor add an extremum between two points [fritsch1984]; small marks on the line are the
points themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.figures.style import RATIOS
from onegrad.results.summaries import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

NOTHING = 1e-4  # share of a curve's largest error that counts as zero
_GRID = 200  # places of a line, in addition to its points
_NO_CURVE = ("data.rank", "compare.degree")  # nothing lies between two of their values


@dataclass(frozen=True)
class TheoryLine:
    """Positions along the axis, every error there by its name, and Var y where it is known.

    marks : where among the positions the points of the run are
    """

    x: Array
    errors: dict[str, Array]
    power: Array | None
    marks: list[int]


def theory_line(summaries: Sequence[Summary], axis: str, quantities: Sequence[str]) -> TheoryLine:
    """The line of one theory through the points of one curve, which stand along `axis`; straight
    between two points, and where nothing lies between them."""
    points = sorted(summaries, key=lambda s: position(s.point.get(axis, 0)))
    x = np.array([position(s.point.get(axis, 0)) for s in points])
    exact = {q: np.array([getattr(s, q).mean for s in points]) for q in quantities}
    power = np.array([label_power(s) for s in points])
    grid, ratios = x, axis in RATIOS and x[0] > 0
    if len(x) > 2 and axis not in _NO_CURVE and np.all(np.diff(x) > 0):
        fine = (np.geomspace if ratios else np.linspace)(x[0], x[-1], _GRID)
        grid = np.unique(np.concatenate([x, fine[1:-1]]))
    place = np.log if ratios else np.asarray
    lines = {q: _through(place(x), y, place(grid)) for q, y in exact.items()}
    known = _through(place(x), power, place(grid)) if np.all(np.isfinite(power)) else None
    return TheoryLine(grid, lines, known, np.searchsorted(grid, x).tolist())


def _through(x: Array, y: Array, at: Array) -> Array:
    """Points that have no number are left out, and nothing is drawn beyond those that have one."""
    finite = np.isfinite(y)
    if at.shape == x.shape or finite.sum() < 2:
        return y if at.shape == x.shape else np.full(at.shape, np.nan)
    from scipy.interpolate import PchipInterpolator

    positive = bool(np.all(y[finite] > 0))
    values = np.log(y[finite]) if positive else y[finite]
    interpolated = PchipInterpolator(x[finite], values, extrapolate=False)(at)
    return np.exp(interpolated) if positive else np.asarray(interpolated)


def position(value: Any) -> float:
    """Where a swept value stands on an axis; mixtures by their first weight."""
    return float(value[0] if isinstance(value, list | tuple) else value)


# --- the best constant predictor, whose error is Var y ------------------------------------------

_NAME = "best constant, Var y"
_STYLE: dict[str, Any] = {"color": "#888888", "linestyle": (0, (1, 1.5)), "linewidth": 0.8}


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
            panel.axhline(float(y[0]), zorder=0.5, **_STYLE)
        else:
            panel.plot(x, y, zorder=0.5, **_STYLE)
    panel.set_ylim(low, high)
    return [Line2D([], [], label=_NAME, **_STYLE)] if drawn else []


def _same(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> bool:
    """Curves of other activations, say, have the same labels."""
    return all(a.shape == b.shape and np.allclose(a, b) for a, b in zip(one, other, strict=True))
