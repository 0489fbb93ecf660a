"""What the page shows and lets one change: taken from the declarations of the spec.

Label, help, declared range and options of a control come from the field itself; here stands only
which fields get a slider, and over which part of their range it runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from onegrad import __version__
from onegrad.declared import allowed, read_toml
from onegrad.explorer.bounds import DATA_MODELS
from onegrad.figures.style import COLOURS, LABELS, MARKS, RATIOS
from onegrad.gaussian.activation import Activation, names
from onegrad.specs.catalogue import preset_groups, preset_path
from onegrad.specs.citations import bibliography
from onegrad.specs.experiment import TABLES

_MIXED = ("regression", "classification")
_ALONE = ("isotropic",)
_ALL = (*_MIXED, *_ALONE)


@dataclass(frozen=True)
class Slider:
    """A number with a slider from `low` to `high`; what may be typed is what the field takes.

    kind : "linear", "log" or "whole"; `over` names a key in whose units it is shown (m/n);
    `first` says that the key is a list of which the first entry is moved (mixture weights);
    `unset` is what it means to leave a key out whose field has no default of its own
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


SLIDERS = (
    Slider("scaling.strength", "β", "strength", 0.0, 1.0, tasks=_MIXED),
    Slider("scaling.weighting", "α", "weighting", 0.0, 1.0, tasks=_MIXED),
    Slider("scaling.exponent", "α", "step exponent", -0.3, 0.47, tasks=_ALONE),
    Slider("scaling.constant", "c", "step factor", 0.1, 10.0, "log", tasks=_ALONE, unset=1.0),
    Slider("network.width_ratio", "k/m", "width over samples", 0.1, 10.0, "log"),
    Slider("training.samples", "m/n", "samples over inputs", 0.2, 10.0, "log", over="data.dim"),
    Slider("training.ridge", "λ", "ridge", 1e-6, 10.0, "log"),
    Slider("data.weights", "ρ", "mixture ratio", 0.02, 0.98, tasks=_MIXED, first=True),
    Slider("data.alignment", "cos", "alignment", -1.0, 1.0, tasks=_MIXED),
    Slider("data.rank", "r", "rank", 0, 16, "whole", tasks=("regression",)),
    Slider("data.rank", "r", "rank", 1, 2, "whole", tasks=("classification",)),
    Slider("data.mean", "|μ|", "norm of the means", 0.0, 4.0, tasks=_MIXED),
    Slider("labels.noise", "s", "label noise", 0.0, 1.0),
    Slider("data.dim", "n", "inputs", 50, 2000, "log"),
)

# (key, title, tasks): the options are those of the field, or the known activations
PICKERS = (
    ("network.activation", "activation", _ALL),
    ("labels.link", "link", ("regression", "isotropic")),
    ("training.gradient", "gradient", _ALONE),
)
LINKS = ("hermite(0, 1, 0.5)", "hermite(0, 1, 0.5, 0.3)", "hermite(0, 0, 1)")

_COMMON: dict[str, Any] = {
    "network": {"convention": "mixture", "activation": "relu", "width_ratio": 1.0},
    "training": {"samples": 500, "ridge": 1e-4},
    "scaling": {"strength": 0.74, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 10, "seed": 0},
}
TASKS: dict[str, dict[str, Any]] = {
    "regression": {
        "title": "mixture, single-index labels",
        "about": "two Gaussian clouds with a spike in each covariance; y = link(ξᵀx) + noise",
        "axis": "network.width_ratio",
        "activations": ["relu", "tanh"],
        "tables": {
            "data": {"model": "mixture", "dim": 500, "weights": [0.5, 0.5], "rank": 1},
            "labels": {"model": "single-index", "link": "relu"},
            **_COMMON,
        },
    },
    "classification": {
        "title": "mixture, which component",
        "about": "two Gaussian clouds with a spike in each covariance; y = +1 or −1 tells which",
        "axis": "scaling.strength",
        "tables": {
            "data": {"model": "mixture", "dim": 500, "weights": [0.5, 0.5], "rank": 1},
            "labels": {"model": "component"},
            **_COMMON,
        },
    },
    "isotropic": {
        "title": "isotropic data, single-index labels",
        "about": "x ~ N(0, I); y = link(βᵀx) + noise; the step is η = c·m^α",
        "axis": "scaling.exponent",
        "tables": {
            "data": {"model": "isotropic", "dim": 400},
            "labels": {"model": "single-index", "link": "hermite(0, 1, 0.5)", "noise": 0.1},
            "network": {"convention": "isotropic", "activation": "relu", "width_ratio": 0.75},
            "training": {"samples": 800, "ridge": 0.01},
            "scaling": {"exponent": 0.3, "constant": 2.0},
            "compare": {"models": ["network", "spiked", "theory"], "seeds": 10, "seed": 0},
        },
    },
}


def about(stored: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything that the page needs to know before it asks for anything."""
    return {
        "type": "hello",
        "version": __version__,
        "stored": stored,
        "tasks": TASKS,
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
        "help": field.description,
        "allowed": allowed(field),
        "default": slider.unset if default is None else default,
        "low": slider.low,
        "high": slider.high,
        "kind": slider.kind,
        "over": slider.over,
        "first": slider.first,
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
    options = [option for option in get_args(field.annotation) if isinstance(option, str)]
    if not options:
        options = [*names(), *(LINKS if key == "labels.link" else ())]
    return {
        "key": key,
        "title": title,
        "help": field.description,
        "default": default_of(field),
        "options": options,
        "tasks": tasks,
    }


def presets() -> list[dict[str, Any]]:
    """The papers' figures on data that the page knows, grouped by paper."""
    groups = []
    for source, members in preset_groups().items():
        entries = []
        for preset in members:
            tables = read_toml(preset_path(preset.name))
            if tables["data"]["model"] in DATA_MODELS:
                entries.append({"name": preset.name, "title": preset.title, "tables": tables})
        if entries:
            groups.append({"source": source, "presets": entries})
    return groups


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
