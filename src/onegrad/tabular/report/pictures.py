"""The pictures of the report, each as an SVG inside the page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

from onegrad.figures.style import COLOURS, RC, plain
from onegrad.tabular.report.analysis import Analysis
from onegrad.tabular.report.scores import STEP, measure_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DOTS = 1500


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
    table = analysis.table
    spread = table.x.std(axis=0)
    alive = spread > 0
    x = ((table.x - table.x.mean(axis=0)) / np.where(alive, spread, 1.0))[:, alive]
    low, high = np.percentile(x, [0.5, 99.5], axis=0)
    x, y = np.clip(x, low, high), table.y
    keep = np.random.default_rng(0).permutation(len(y))[:_MOST_DOTS]
    figure, axes = _axes()
    if x.shape[1] == 1 and table.task == "regression":
        axes.plot(x[keep, 0], y[keep], ".", color=COLOURS[0], ms=4, alpha=0.5)
        axes.set(xlabel=plain(analysis.table.names[0]), ylabel=plain(analysis.table.label))
        return data_uri(figure)
    _, _, directions = np.linalg.svd(x[keep], full_matrices=False)
    along = np.column_stack([x[keep] @ directions[:2].T, np.zeros(len(keep))])[:, :2]
    if table.task == "classification":
        for colour, name in zip(COLOURS, table.classes, strict=False):
            rows = y[keep] == name
            axes.plot(*along[rows].T, ".", color=colour, ms=4, alpha=0.55, label=plain(name))
        rest = ~np.isin(y[keep], table.classes[: len(COLOURS)])
        if rest.any():
            axes.plot(*along[rest].T, ".", color="0.7", ms=3, alpha=0.5, label="(others)", zorder=0)
        axes.legend(title=plain(table.label), loc="upper left", bbox_to_anchor=(1, 1))
    else:
        dots = axes.scatter(along[:, 0], along[:, 1], c=y[keep], s=8, cmap="cividis")
        figure.colorbar(dots, label=plain(table.label))
    axes.set(xlabel="first principal direction", ylabel="second principal direction")
    return data_uri(figure)


def learning(analysis: Analysis) -> str:
    """Measured errors, and the forecast with its bar."""
    figure, axes = _axes(6.4, 3.9)
    analysis.curve.plot(axes)
    return data_uri(figure)


def comparison(analysis: Analysis) -> str:
    """Scores of all models, the best constant among them."""
    names = list(analysis.scores)[::-1]
    figure, axes = _axes(6.4, 0.6 + 0.42 * len(names))
    estimates = [analysis.scores[name].estimate for name in names]
    errors = [e.standard_error if np.isfinite(e.standard_error) else 0.0 for e in estimates]
    colours = [COLOURS[0] if name == STEP else "0.6" for name in names]
    axes.barh(names, [e.mean for e in estimates], xerr=errors, color=colours, height=0.6)
    least = min(0.0, *(e.mean for e in estimates))
    axes.set(xlabel=f"{measure_name(analysis.table)} on held-out rows", xlim=(max(least, -1.0), 1))
    return data_uri(figure)
