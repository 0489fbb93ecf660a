"""One look for all figures: colours that survive colour blindness, marks that mean a model."""

from __future__ import annotations

import csv
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onegrad.results.results import Results
from onegrad.results.rows import EXTRAS, QUANTITIES
from onegrad.results.summaries import Summary
from onegrad.simulate.models import MODELS
from onegrad.simulate.models.base import Mark
from onegrad.spec.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe & Ito's palette, without its yellow (too pale on white)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

# Marks of simulated models and of theories; `mark_of` derives variants.
MARKS: dict[str, Mark] = {name: m.mark for name, m in MODELS.items() if m.mark.marker}
LINES = {name: m.mark.line for name, m in MODELS.items() if m.mark.line}

LABELS = {
    "network.width": "neurons k",
    "network.width_ratio": "width over samples, k/m",
    "network.activation": "activation",
    "training.samples": "samples m",
    "training.total": "samples of step and readout together",
    "training.ridge": "ridge",
    "training.rate": "learning rate η",
    "training.steps": "steps on the first layer",
    "training.batch": "samples of the steps",
    "training.optimiser": "optimiser",
    "training.loss": "loss of the readout",
    "training.delta": "δ of the Huber loss",
    "scaling.strength": "strength β",
    "scaling.weighting": "weighting α  (0: data spread, 1: learning rate)",
    "scaling.exponent": "step exponent α",
    "data.dim": "inputs n",
    "data.weights": "weight of the first component",
    "data.alignment": "alignment of the components",
    "data.rank": "covariance rank",
    "data.spread": "spread θ",
    "data.mean": "norm of the means",
    "labels.noise": "label noise",
    "test_error": "test error (MSE)",
    "train_error": "training error (MSE)",
    "train_objective": "training objective",
    "misclassification": "misclassification",
    "test_loss": "test loss",
    "train_loss": "training loss",
    "calibration": "calibration error",
}

# keys whose effect depends on ratios: logarithmic axes
RATIOS = frozenset({
    "network.width", "network.width_ratio", "training.samples", "training.step_samples",
    "training.total",
    "training.ridge", "training.rate", "data.dim", "data.spread", "scaling.constant",
})  # fmt: skip

RC: Any = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "errorbar.capsize": 2.0,
}


def save_figure(
    figure: Figure, folder: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> list[Path]:
    """figure.png, figure.pdf, and the numbers behind them as figure.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"figure.{suffix}" for suffix in ("png", "pdf", "csv")]
    for path in written[:2]:
        figure.savefig(path)
    with written[2].open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        writer.writerows(rows)
    return written


def quantity_rows(experiment: Experiment, results: Results) -> tuple[list[str], list[list[Any]]]:
    """Header and lines of a CSV with every error of every model at every point."""
    keys = list(experiment.sweep)
    summaries = results.summaries()
    names = (*QUANTITIES, "relative_error", *(q for q in EXTRAS if _told(summaries, q)))
    header = [*keys, "model", "seeds", *(q + s for q in names for s in ("", "_se"))]
    lines = []
    for s in summaries:
        numbers = [v for quantity in names for v in getattr(s, quantity)]
        lines.append([*(s.point[k] for k in keys), s.model, s.seeds, *numbers])
    return header, lines


def _told(summaries: Sequence[Summary], quantity: str) -> bool:
    """Whether a number that not every problem has is there, and is not an error once more."""
    error = quantity.replace("_loss", "_error")
    values = [(getattr(s, quantity).mean, getattr(s, error).mean) for s in summaries]
    return any(math.isfinite(a) and (a != b or error == quantity) for a, b in values)


def curve_name(experiment: Experiment, point: dict[str, Any], axes: Sequence[str]) -> str:
    """What tells a curve or a panel apart: the swept keys that are not along the axes."""
    hidden = set(axes)
    if hidden & set(experiment.zipped):
        hidden |= set(experiment.zipped)
    return ", ".join(_setting(k, v) for k, v in point.items() if k not in hidden)


def _setting(key: str, value: Any) -> str:
    """A swept key in a legend; names speak for themselves, and so does a step."""
    if key == "training.rate" and isinstance(value, int | float):
        return f"one step, η = {tick(value)}" if value else "no step (random features)"
    if key == "labels.preprocess":
        return "labels as they are" if value == "none" else "linear part removed"
    return plain(value) if isinstance(value, str) else f"{key.rpartition('.')[2]} = {tick(value)}"


def tick(value: Any) -> str:
    """A value beside an axis; mixtures by their first weight."""
    if isinstance(value, list | tuple):
        value = value[0]
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def head(figure: Figure, title: str, caption: str) -> None:
    """Title above and caption below, broken into lines that fit the figure's width."""
    width = figure.get_figwidth()
    figure.suptitle(textwrap.fill(plain(title), int(width * 10)))  # letters to the inch, by size
    figure.supxlabel(textwrap.fill(caption, int(width * 16)), fontsize=8, color="#444444")


def plain(text: str) -> str:
    """Somebody's own name for a figure: a $ in it is a letter, not the beginning of mathematics,
    and a name that begins with _ is not hidden from the legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def mark_of(model: str) -> Mark:
    """How a model looks, or a variant such as hermite:1."""
    return MODELS[model].mark


def label(key: str) -> str:
    return LABELS.get(key, key)
