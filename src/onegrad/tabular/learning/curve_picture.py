"""The picture of a learning curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onegrad.figures.style import COLOURS, RC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onegrad.tabular.learning.curve import LearningCurve


def draw_curve(curve: LearningCurve, ax: Axes | None = None) -> Axes:
    """Measured scores with standard errors; the forecast with what holds 68 and 95 % of scores.

    The three largest subsets and the forecast rule the axis: a fit to very few rows must not
    flatten everything else.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        with plt.rc_context(RC):
            ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")[1]
    measured, score = curve.measured, curve.score
    scores = [score.of(error) for error in measured.errors]
    ax.errorbar(
        measured.rows, scores, measured.noise * measured.errors, fmt="o", color=COLOURS[0],
        capsize=2, label="measured on held-out rows", zorder=3,
    )  # fmt: skip
    farthest = min(max(8 * curve.rows, 2 * curve.fitted), 16 * curve.fitted)
    ahead = [curve.at(n) for n in np.geomspace(curve.fitted, farthest, 30).round()]
    rows = [point.rows for point in ahead]
    outer, inner = [(p.low, p.high) for p in ahead], [p.inner for p in ahead]
    for ends, shown, share in ((outer, 0.15, "95 %"), (inner, 0.25, "68 %")):
        ax.fill_between(
            rows, *np.transpose(ends), color=COLOURS[0], alpha=shown, lw=0, label=f"holds {share}"
        )
    ax.plot(rows, [p.score for p in ahead], color=COLOURS[0], lw=2, label="forecast")
    ax.axvline(curve.rows, color="0.6", lw=0.8, label=f"your {curve.rows:,} rows")
    seen = [*scores[-3:], *(value for point in ahead for value in point.inner)]
    least, most = min(seen), max(seen)
    room = 0.08 * (most - least) or 0.01
    ax.set_ylim(least - room, min(most + room, score.best + room / 2))
    outside = sum(not least - room <= value <= most + room for value in scores)
    if outside:
        ax.annotate(
            f"{outside} dot{'s' * (outside > 1)} of small subsets outside", (0.98, 0.03),
            xycoords="axes fraction", fontsize=8, color="0.4", ha="right",
        )  # fmt: skip
    ax.set(xscale="log", xlabel="rows", ylabel=score.name)
    ax.legend(fontsize=8, loc="best")
    return ax
