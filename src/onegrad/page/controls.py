"""What the page shows and lets one change: taken from the declarations of the spec.

Declared range and options of a control come from the field itself; here stands which fields get a
slider, over which part of their range it runs, and what they are in the words of a reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from onegrad import __version__
from onegrad.figures.style import COLOURS, LABELS, MARKS, RATIOS
from onegrad.gaussian.activation import Activation, names
from onegrad.page.bounds import DATA_MODELS
from onegrad.page.steps import COUNTS, VERSUS
from onegrad.spec.citations import bibliography
from onegrad.spec.experiment import TABLES
from onegrad.spec.fields import allowed, read_toml
from onegrad.spec.figure_options import FigureOptions
from onegrad.spec.presets import preset_groups, preset_path
from onegrad.spec.published import published_figure, published_names

_MIXED = ("regression", "classification")
_ALONE = ("isotropic", "multi-index")
_ALL = (*_MIXED, *_ALONE)


@dataclass(frozen=True)
class Slider:
    """A number with a slider from `low` to `high`; what may be typed is what the field takes.

    kind : "linear", "log" or "whole"; `over` names a key in whose units it is shown (m/n);
    `first` says that the key is a list of which the first entry is moved (mixture weights);
    `unset` is what it means to leave a key out whose field has no default of its own;
    `by_hand` : only where the spec sets it itself, instead of [scaling] or samples
    """

    key: str
    symbol: str
    title: str
    low: float
    high: float
    kind: Literal["linear", "log", "whole"] = "linear"
    tasks: tuple[str, ...] = _ALL
    over: str = ""
    first: bool = False
    unset: float | None = None
    by_hand: bool = False


SLIDERS = (
    Slider("scaling.strength", "β", "strength", 0.0, 1.0, tasks=_MIXED),
    Slider("scaling.weighting", "α", "weighting", 0.0, 1.0, tasks=_MIXED),
    Slider("scaling.exponent", "τ", "step exponent", -0.3, 0.47, tasks=_ALONE),
    Slider("scaling.constant", "c", "step factor", 0.1, 10.0, "log", tasks=_ALONE, unset=1.0),
    Slider("training.rate", "η", "learning rate", 0.0, 1000.0, by_hand=True),
    Slider("data.spread", "θ", "spread of the data", 0.0, 20.0, tasks=_MIXED, by_hand=True),
    Slider("network.width_ratio", "k/m", "width over samples", 0.1, 10.0, "log"),
    Slider("training.samples", "m/n", "samples over inputs", 0.2, 10.0, "log", over="data.dim"),
    Slider(
        "training.total",
        "M/n",
        "total samples over inputs",
        0.4,
        40.0,
        "log",
        over="data.dim",
        by_hand=True,
    ),
    Slider("training.ridge", "λ", "ridge", 1e-6, 10.0, "log"),
    Slider("data.weights", "ρ", "mixture ratio", 0.02, 0.98, tasks=_MIXED, first=True),
    Slider("data.alignment", "cos", "alignment", -1.0, 1.0, tasks=_MIXED),
    Slider("data.rank", "r", "rank", 0, 16, "whole", tasks=("regression",)),
    Slider("data.rank", "r", "rank", 1, 2, "whole", tasks=("classification",)),
    Slider("data.mean", "|μ|", "norm of the means", 0.0, 4.0, tasks=_MIXED),
    Slider("labels.indices", "q", "indices", 1, 3, "whole", tasks=("multi-index",)),
    Slider("labels.noise", "ε", "label noise", 0.0, 1.0),
    Slider("labels.flip", "p", "flipped labels", 0.0, 0.4, tasks=("classification",)),
    Slider("training.steps", "T", "steps on the first layer", 1, 5, "whole"),
    Slider("data.dim", "n", "inputs", 50, 2000, "log"),
)

# (key, title, tasks): the options are those of the field, or the known activations
PICKERS = (
    ("network.activation", "activation", _ALL),
    ("labels.link", "link", ("regression", "isotropic")),
    ("labels.link", "link", ("multi-index",)),
    ("training.gradient", "gradient", _ALONE),
    ("training.optimiser", "optimiser", _ALL),
    ("training.loss", "loss", _ALL),
    ("data.spectrum", "bulk", _ALL),
    ("data.weights", "classes", ("classification",)),
)
# What comes with an option of a picker, and goes with it.
COMPANIONS: dict[str, dict[str, dict[str, Any]]] = {
    "training.loss": {"huber": {"training.delta": 1.0}},
    "training.optimiser": {"kfac": {"training.damping": 0.1}},
    "data.spectrum": {
        "power-law": {"data.exponent": 0.8},
        "two-level": {"data.levels": [4.0, 0.25], "data.share": 0.2},
    },
}
CLASSES = tuple(range(2, 6))  # components with a label each: of more than two one output for each
CLASSES_HELP = (
    "components with equal weights, and a class for each: labels ±1 of two; of more one output for "
    "each class, fitted to 1 and 0, and the largest one is the class"
)
# What each setting is, in a sentence for a reader who has not seen the spec.
WORDS = {
    "scaling.strength": (
        "how strong step and data are together: learning rate times spread is ηθ = n^β"
    ),
    "scaling.weighting": (
        "the share of the strength that is in the step, η = n^{βα}; the rest spreads the "
        "data, θ = n^{β(1−α)}"
    ),
    "scaling.exponent": (
        "the size of the step: its learning rate is η = c·m^τ for m samples; degree 2 begins "
        "near τ = 1/4, degree 3 near 1/3"
    ),
    "scaling.constant": "a factor of the learning rate η = c·m^τ",
    "training.rate": "the learning rate of the step; 0 is no step at all",
    "data.spread": "how far the clouds stretch along their spikes",
    "network.width_ratio": (
        "neurons for each sample; near 1 a network without ridge repeats the noise of every label"
    ),
    "training.samples": (
        "samples for each input: as many for the step as, drawn anew, for the second layer"
    ),
    "training.total": (
        "samples for each input, of the step and the second layer together: half of them for the "
        "step, or none where its learning rate is 0"
    ),
    "training.ridge": "the penalty on the weights of the second layer",
    "data.weights": "the share of the samples that is in the first cloud",
    "data.alignment": "the cosine between the leading spikes of the two clouds",
    "data.rank": "how many spikes each cloud has: directions in which it is stretched",
    "data.mean": "how far the centre of each cloud is from the origin",
    "labels.indices": "how many directions the labels depend on",
    "labels.noise": "the standard deviation of noise that is added to the labels",
    "labels.flip": "the share of the labels that is turned to the other class",
    "training.steps": "gradient steps on the first layer, before the second one is fitted",
    "data.dim": "numbers in each sample; samples and neurons grow with it",
    "network.activation": "what each neuron does with its input: f(x) = Σ aᵢ σ(wᵢ·x)",
    "labels.link": (
        "how the labels depend on their direction; hermite(0, 1, 0.5) is a line and a parabola"
    ),
    "training.gradient": "exact, or labels-only: as if the network gave 0 before the step",
    "training.optimiser": "how a gradient moves the first layer: gd is gradient descent",
    "training.loss": "what the second layer is fitted by",
    "data.spectrum": (
        "variances of the inputs: flat is the same for all; power-law: they fall from input "
        "to input; two-level: a share is larger"
    ),
}
JOINT_LINKS = ("max", "sum", "product", "xor")
LINKS = ("sign", "hermite(0, 1, 0.5)", "hermite(0, 1, 0.5, 0.3)", "hermite(0, 0, 1)")

_COMMON: dict[str, Any] = {
    "network": {"convention": "mixture", "activation": "relu", "width_ratio": 0.5},
    "training": {"samples": 600, "ridge": 3e-4},
    "scaling": {"strength": 0.9, "weighting": 0.8},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 10, "seed": 0},
}
# The first one is what the page opens with: there the step takes 40 % of the error away.
TASKS: dict[str, dict[str, Any]] = {
    "isotropic": {
        "title": "isotropic data, single-index labels",
        "about": "x ~ N(0, I); y = link(ξᵀx) + noise; the learning rate is η = c·m^τ",
        "axis": "scaling.exponent",
        "tables": {
            "data": {"model": "isotropic", "dim": 300},
            "labels": {"model": "single-index", "link": "hermite(0, 1, 0.5)", "noise": 0.1},
            "network": {"convention": "isotropic", "activation": "relu", "width_ratio": 0.5},
            "training": {"samples": 1200, "ridge": 0.1},
            "scaling": {"exponent": 0.35, "constant": 1.0},
            "compare": {"models": ["network", "spiked", "theory"], "seeds": 10, "seed": 0},
        },
    },
    "multi-index": {
        "title": "isotropic data, several directions",
        "about": "x ~ N(0, I); y = link(ξ₁ᵀx, ξ₂ᵀx, …) + noise: one step finds a single direction, "
        "so nothing of a product",
        "axis": "scaling.exponent",
        "tables": {
            "data": {"model": "isotropic", "dim": 300},
            "labels": {"model": "multi-index", "indices": 2, "link": "max", "noise": 0.1},
            "network": {"convention": "isotropic", "activation": "relu", "width_ratio": 0.5},
            "training": {"samples": 1200, "ridge": 0.1},
            "scaling": {"exponent": 0.35, "constant": 1.0},
            "compare": {"models": ["network", "theory"], "seeds": 10, "seed": 0},
        },
    },
    "regression": {
        "title": "mixture, single-index labels",
        "about": "two Gaussian clouds with a spike in each covariance; y = link(ξᵀx) + noise",
        "axis": "network.width_ratio",
        "activations": ["relu", "tanh"],
        "tables": {
            "data": {"model": "mixture", "dim": 300, "weights": [0.5, 0.5], "rank": 1},
            "labels": {"model": "single-index", "link": "relu"},
            **_COMMON,
        },
    },
    "classification": {
        "title": "mixture, which component",
        "about": "Gaussian clouds apart; y tells which: ±1 of two, one output for each of more",
        "axis": "scaling.strength",
        "quantities": ["misclassification"],
        "tables": {
            "data": {"model": "mixture", "dim": 300, "weights": [0.5, 0.5], "rank": 1, "mean": 1.0},
            "labels": {"model": "component"},
            **_COMMON,
        },
    },
}


# What a curve may show, and its name; each where a row or the theory has it.
QUANTITIES = {
    "test_error": "test error (MSE)",
    "train_error": "training error (MSE)",
    "train_objective": "training objective",
    "relative_error": "test error / Var y",
    "misclassification": "misclassification",
    "test_loss": "test loss",
    "train_loss": "training loss",
}


def about(stored: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything that the page needs to know before it asks for anything."""
    return {
        "type": "hello",
        "version": __version__,
        "stored": stored,
        "tasks": TASKS,
        "quantities": QUANTITIES,
        "drawn": choices(FigureOptions.model_fields["quantities"].annotation),
        "steps": {"counts": COUNTS, "versus": VERSUS},
        "sliders": [slider_json(s) for s in SLIDERS] + (stored["axes"] if stored else []),
        "pickers": [picker_json(*p) for p in PICKERS],
        "presets": presets(),
        "citations": citations(),
        "colours": COLOURS,
        "labels": LABELS,
        "marks": {name: mark.marker for name, mark in MARKS.items()},
    }


def field_of(key: str) -> FieldInfo:
    """The declaration of a dotted key."""
    table, _, name = key.partition(".")
    return next(c.model_fields[name] for c in TABLES[table] if name in c.model_fields)


def default_of(field: FieldInfo) -> Any:
    """What a key is where a spec leaves it out, as a spec would say it; None if it may not."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return None
    return value.name if isinstance(value, Activation) else value


def slider_json(slider: Slider) -> dict[str, Any]:
    field = field_of(slider.key)
    default = default_of(field)
    return {
        "key": slider.key,
        "symbol": slider.symbol,
        "title": slider.title,
        "help": WORDS.get(slider.key, field.description),
        "allowed": allowed(field),
        "default": slider.unset if default is None else default,
        "low": slider.low,
        "high": slider.high,
        "kind": slider.kind,
        "over": slider.over,
        "first": slider.first,
        "by_hand": slider.by_hand,
        "tasks": slider.tasks,
    }


def stored_axis(key: str, values: list[Any]) -> dict[str, Any] | None:
    """A swept key without a slider, as the axis of a stored run: only at its own values."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not numbers or any(key == slider.key for slider in SLIDERS):
        return None
    low, high = min(values), max(values)
    kind: Literal["linear", "log"] = "log" if key in RATIOS and low > 0 else "linear"
    title = LABELS.get(key, key.partition(".")[2].replace("_", " "))
    return slider_json(Slider(key, "", title, low, high, kind, tasks=())) | {"values": values}


def picker_json(key: str, title: str, tasks: tuple[str, ...]) -> dict[str, Any]:
    field = field_of(key)
    if key == "data.weights":
        return {
            "key": key, "title": title, "help": CLASSES_HELP, "default": None,
            "options": [str(count) for count in CLASSES], "companions": {}, "tasks": tasks,
        }  # fmt: skip
    options = list(JOINT_LINKS) if tasks == ("multi-index",) else choices(field.annotation)
    if not options:
        options = [*names(), *(LINKS if key == "labels.link" else ())]
    return {
        "key": key,
        "title": title,
        "help": WORDS[key],
        "default": default_of(field),
        "options": options,
        "companions": COMPANIONS.get(key, {}),
        "tasks": tasks,
    }


def choices(annotation: Any) -> list[str]:
    """The words that a field takes, also where it takes other things too."""
    found: list[str] = []
    for option in get_args(annotation):
        found += [option] if isinstance(option, str) else choices(option)
    return found


def presets() -> list[dict[str, Any]]:
    """The papers' figures on data that the page knows, grouped by paper."""
    groups = []
    for source, members in preset_groups().items():
        entries = []
        for preset in members:
            tables = read_toml(preset_path(preset.name))
            if tables["data"]["model"] in DATA_MODELS and _drawn_by_theory(tables):
                entries.append({
                    "name": preset.name, "title": preset.title, "tables": tables,
                    "published": published_points(preset.name),
                    "one_data_set": preset.name in published_names()
                    and published_figure(preset.name).one_data_set,
                })  # fmt: skip
        if entries:
            groups.append({"source": source, "presets": entries})
    return groups


def _drawn_by_theory(tables: dict[str, Any]) -> bool:
    """Curves of the page are the theory's: a figure of curves without one is for `onegrad run`."""
    models = tables.get("compare", {}).get("models", ["network"])
    kind = tables.get("figure", {}).get("kind", "curves")
    return kind != "curves" or any(name.startswith("theory") for name in models)


def published_points(name: str) -> list[dict[str, Any]]:
    """Points of trained networks in a published figure, where they are known, as plotted there."""
    if name not in published_names():
        return []
    return [
        {"point": dict(p.point), "quantity": p.quantity, "value": p.value, "error": p.error}
        for p in published_figure(name).points
        if p.model == "network"
    ]


def citations() -> dict[str, str]:
    """Every entry of the bibliography as one line of text."""
    lines = {}
    for key, entry in bibliography().items():
        found = dict(re.findall(r"(\w+)\s*=\s*\{(.*)\}", entry))
        found = {name: re.sub(r"[{}]|\\'", "", text) for name, text in found.items()}
        where = found.get("booktitle", found.get("journal", ""))
        people = found["author"].split(" and ")
        shown = ", ".join(person.split(",")[0] for person in people[:4])
        more = " et al." if len(people) > 4 else ""
        lines[key] = f"{shown}{more}: {found['title']}. {where}, {found['year']}."
    return lines
