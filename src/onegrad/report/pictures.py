"""The pictures of the report, each as an SVG inside the page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

from onegrad.figures.style import COLOURS, MARKS, RC, plain
from onegrad.report.analysis import Analysis, Curve, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DOTS = 1500
_NAMES = {
    "network": "network after one step",
    "random-features": "random features (no step)",
    "linear": "linear model",
}


def data_uri(figure: Figure) -> str:
    """An SVG that needs nothing from outside: letters are drawn as shapes."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


def _axes(width: float = 5.6, height: float = 3.4) -> tuple[Figure, Axes]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(RC):
        figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    return figure, axes


def cloud(analysis: Analysis) -> str:
    """The samples along the two directions in which they vary most."""
    x, y, shown = analysis.prepared.x, analysis.prepared.y, analysis.prepared.shown
    keep = np.random.default_rng(0).permutation(len(y))[:_MOST_DOTS]
    figure, axes = _axes()
    if x.shape[1] == 1:
        axes.plot(x[keep, 0], y[keep], ".", color=COLOURS[0], ms=4, alpha=0.5)
        axes.set(xlabel=plain(analysis.table.names[0]), ylabel=plain(analysis.table.label))
        return data_uri(figure)
    _, _, directions = np.linalg.svd(x[keep], full_matrices=False)
    along = x[keep] @ directions[:2].T
    if shown:
        for sign, colour, name in ((1.0, COLOURS[0], shown[0]), (-1.0, COLOURS[1], shown[1])):
            rows = y[keep] == sign
            axes.plot(*along[rows].T, ".", color=colour, ms=4, alpha=0.55, label=plain(name))
        axes.legend(title=plain(analysis.table.label), loc="upper left", bbox_to_anchor=(1, 1))
    else:
        dots = axes.scatter(along[:, 0], along[:, 1], c=y[keep], s=8, cmap="cividis")
        figure.colorbar(dots, label=f"{plain(analysis.table.label)} (standardised)")
    axes.set(xlabel="first principal direction", ylabel="second principal direction")
    return data_uri(figure)


def scree(analysis: Analysis) -> str:
    """Eigenvalues of the covariance within classes, and where those of noise would end."""
    spikes = analysis.prepared.spikes
    values = spikes.eigenvalues / spikes.noise
    values = values[values > 1e-6 * values[0]]
    rank = np.arange(1, len(values) + 1)
    figure, axes = _axes()
    count = spikes.count
    axes.loglog(rank[:count], values[:count], "o", color=COLOURS[1], ms=5, label="spikes")
    axes.loglog(rank[count:], values[count:], ".", color=COLOURS[0], ms=4, label="the rest")
    if np.isfinite(spikes.edge):
        axes.axhline(spikes.edge / spikes.noise, color="0.35", ls="--", lw=1, label="edge of noise")
    axes.set(xlabel="rank of the direction", ylabel="variance / noise level")
    axes.legend()
    return data_uri(figure)


def standing(place: Standing) -> str:
    """β against the learning rate, with the degrees as bands."""
    figure, axes = _axes()
    exponents = np.linspace(0, 1.0, 50)
    axes.plot(place.dim**exponents, place.data_exponent + exponents, color=COLOURS[0], lw=2)
    top = max(1.1, place.data_exponent + 0.3)
    low = min(0.0, place.data_exponent)
    edges = [low, 1 / 2, 2 / 3, 3 / 4, 1.0, top]
    names = ["degree 1", "degree 2", "degree 3", "degree 4 and more", "no finite degree"]
    for i, (bottom, above, name) in enumerate(zip(edges[:-1], edges[1:], names, strict=True)):
        axes.axhspan(bottom, above, color=str(0.97 - 0.05 * i), zorder=0)
        axes.text(1.01, (bottom + above) / 2, name, va="center", fontsize=8,
                  transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set(xscale="log", xlabel="learning rate η", ylabel="strength β = log(ηθ) / log n")
    axes.set(ylim=(low, top), xlim=(1, place.dim))
    return data_uri(figure)


def curve(values: Curve, label: str) -> str:
    """Measured dots with error bars, the prediction as a line."""
    figure, axes = _axes()
    for colour, (model, estimates) in zip(COLOURS, values.measured.items(), strict=False):
        axes.errorbar(
            values.values, [e.mean for e in estimates], [e.standard_error for e in estimates],
            marker=MARKS[model].marker, ls="none", color=colour, capsize=2, label=_NAMES[model],
        )  # fmt: skip
    pairs = [(v, p) for v, p in zip(values.values, values.predicted, strict=True) if p is not None]
    if pairs:
        axes.plot(*zip(*pairs, strict=True), color=COLOURS[0], lw=1.6, label="theory", zorder=1)
    axes.set(xscale="log", xlabel=label, ylabel="test error (MSE)")
    axes.set_xticks(values.values, [f"{value:g}" for value in values.values], minor=False)
    axes.set_xticks([], minor=True)
    top = 1.08 * axes.dataLim.ymax  # room for the highest dot, however flat the curve
    axes.set_ylim(0, top if np.isfinite(top) and top > 0 else 1.0)
    axes.legend()
    return data_uri(figure)


def gain(analysis: Analysis) -> str:
    """Test error of the three models, each at its own best ridge."""
    figure, axes = _axes(height=2.2)
    models = list(analysis.gain)[::-1]
    means = [analysis.gain[m].mean for m in models]
    errors = [analysis.gain[m].standard_error for m in models]
    colours = [COLOURS[0] if m == "network" else "0.6" for m in models]
    axes.barh([_NAMES[m] for m in models], means, xerr=errors, color=colours, height=0.6)
    axes.set(xlabel="test error (MSE); guessing the mean gives about 1", xlim=(0, None))
    return data_uri(figure)
