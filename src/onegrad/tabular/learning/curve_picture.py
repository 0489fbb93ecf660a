"""The picture of a learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onegrad.figures.style import COLOURS, RC
from onegrad.tabular.learning.curve_point import CurvePoint
from onegrad.tabular.learning.subsets import Subset

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(
    count: int, subsets: Sequence[Subset], points: Sequence[CurvePoint], ax: Axes | None = None
) -> Axes:
    """Measured dots with standard errors; forecasts with two standard deviations as a band.

    count : rows of the table; points : forecasts from the smallest subset on
    """
    import matplotlib.pyplot as plt

    if ax is None:
        with plt.rc_context(RC):
            ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")[1]
    sizes = [one.rows for one in subsets]
    ax.errorbar(
        sizes, [one.mean for one in subsets], [one.standard_error for one in subsets],
        fmt="o", color=COLOURS[0], capsize=2, label="measured on held-out rows", zorder=3,
    )  # fmt: skip
    grid = [point.rows for point in points]
    ahead = [point for point in points if point.rows >= sizes[-1]]
    rows = [point.rows for point in ahead]
    ax.fill_between(
        rows, [p.low for p in ahead], [p.high for p in ahead], color=COLOURS[0], alpha=0.18, lw=0,
        label="two standard deviations",
    )  # fmt: skip
    ax.plot(rows, [p.error for p in ahead], color=COLOURS[0], lw=2, label="theory, anchored")
    ax.plot(grid, [p.theory for p in points], color="0.45", lw=1, ls=":", label="theory as it is")
    ax.plot(grid, [p.power_law for p in points], color=COLOURS[1], lw=1, ls="--", label="power law")
    ax.axvline(count, color="0.6", lw=0.8, label=f"your {count:,} rows")
    top = max(1.0, max(one.mean + one.standard_error for one in subsets)) * 1.05
    if max(p.high for p in ahead) < 0.6 * top and max(one.mean for one in subsets) < 0.6:
        top = 1.25 * max(one.mean for one in subsets)
    ax.set(xscale="log", xlabel="rows", ylabel="error / error of the best constant", ylim=(0, top))
    if top >= 1:
        ax.axhline(1.0, color="0.3", lw=0.8, ls="-.", label="best constant")
    ax.legend(fontsize=8)
    return ax
