"""A spec file: one problem, what to compare on it, and what to sweep over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from onegrad.backend import check_device
from onegrad.data.arrays import File
from onegrad.data.digits import Digits
from onegrad.data.fashion_mnist import FashionMnist
from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import ComponentLabels, GivenLabels, SingleIndex
from onegrad.data.mixture import Mixture
from onegrad.equivalents import MODELS
from onegrad.errors import SpecError, did_you_mean
from onegrad.experiments.results import THEORIES
from onegrad.problem import EXPERIMENT_KEYS, Network, Problem, Scaling, Training
from onegrad.sections import Count, Real, Section, Whole, override, read_toml

MODEL_NAMES = (*MODELS, *THEORIES)
_MOST_POINTS = 100_000
_FEWEST_TESTS = 5000
_OURS = ("quickstart", "three-components")  # presets of no paper's figure


def _known_model(name: str) -> str:
    if name not in MODEL_NAMES:
        raise SpecError.of(
            "compare.models", name, f"must be from {', '.join(MODEL_NAMES)}",
            did_you_mean(name, MODEL_NAMES),
        )  # fmt: skip
    return name


def _no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise SpecError.of(
            "compare.models", list(values), "must name each model once",
            f"For example {list(dict.fromkeys(values))}",
        )  # fmt: skip
    return values


class Compare(Section):
    """Which models, how many repetitions, from which seed."""

    table: ClassVar[str] = "compare"
    models: Annotated[
        tuple[Annotated[str, AfterValidator(_known_model)], ...], AfterValidator(_no_repeats)
    ] = Field(
        default=("network", "hermite", "conditional-gaussian"), min_length=1,
        description=f"a list from {', '.join(MODEL_NAMES)}", examples=[["network", "hermite"]],
    )  # fmt: skip
    seeds: Count | Literal["auto"] = Field(
        default=20, description="number of repetitions; auto: as many as `precision` asks for",
        examples=[20],
    )  # fmt: skip
    precision: Annotated[Real, Field(gt=0, lt=1)] = Field(
        default=0.01, examples=[0.01],
        description="of seeds = \"auto\": standard error of every mean test error, relative to it",
    )  # fmt: skip
    most_seeds: Count = Field(
        default=1000, description='of seeds = "auto": repetitions at most', examples=[1000]
    )
    seed: Whole = Field(
        default=0, ge=0, le=2**63 - 1, description="root of every random number", examples=[0]
    )
    degree: Annotated[Whole, Field(ge=1, le=30)] | Literal["auto"] = Field(
        default="auto", description="degree of the polynomial models; auto follows the rule",
        examples=["auto"],
    )  # fmt: skip
    risk: Literal["auto", "exact", "sampled"] = Field(
        default="auto", description="test error: exact where it is known, or on a test set",
        examples=["auto"],
    )  # fmt: skip
    test_samples: Count | None = Field(
        default=None, description="size of a sampled test set (default: 5·samples, at least 5000)",
        examples=[5000],
    )  # fmt: skip
    device: Annotated[str, AfterValidator(check_device)] = Field(
        default="cpu", description='where the large arrays live: "cpu" (NumPy), "torch" (torch on '
        'the CPU), "cuda" or "cuda:1" (torch on a GPU); the random numbers are the same',
        examples=["cpu"],
    )  # fmt: skip
    dtype: Literal["float64", "float32"] = Field(
        default="float64", description="precision of the large arrays; float32 is faster and has "
        "an error of its own (docs/devices.md)", examples=["float64"],
    )  # fmt: skip

    @property
    def repetitions(self) -> str:
        """How often, in words."""
        if self.seeds != "auto":
            return f"{self.seeds} seeds"
        return f"seeds until {100 * self.precision:g} % is reached"

    @property
    def largest_count(self) -> int:
        return self.most_seeds if self.seeds == "auto" else self.seeds

    @property
    def simulated(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if name not in THEORIES)

    @property
    def theories(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if name in THEORIES)


class FigureOptions(Section):
    """What is drawn; no number depends on it."""

    table: ClassVar[str] = "figure"
    kind: Literal["curves", "weight-spectrum", "feature-spectrum"] = Field(
        default="curves", description="errors as curves, or histograms of singular values",
        examples=["curves"],
    )  # fmt: skip
    quantities: tuple[Literal["test_error", "train_error", "train_objective"], ...] = Field(
        default=("test_error", "train_error"), min_length=1, max_length=3,
        description="a list from test_error, train_error, train_objective, one panel each",
        examples=[["test_error", "train_error"]],
    )  # fmt: skip


# The classes behind each table of a spec, one for each of its models.
TABLES: dict[str, tuple[type[Section], ...]] = {
    "data": (Mixture, Isotropic, FashionMnist, Digits, File),
    "labels": (SingleIndex, ComponentLabels, GivenLabels),
    "network": (Network,),
    "training": (Training,),
    "scaling": (Scaling,),
    "compare": (Compare,),
    "figure": (FigureOptions,),
}


@dataclass(frozen=True)
class Point:
    """One setting of the swept keys, and the problem that it makes."""

    settings: dict[str, Any]
    problem: Problem
    compare: Compare

    def __post_init__(self) -> None:
        left, asked = self.problem.rows_left, self.compare.test_samples
        if left is not None and asked is not None and asked > left:
            raise SpecError.of(
                "compare.test_samples", asked,
                f"must be at most {left}: what step and readout leave of these data",
                f"For example {left}, or leave it out to use what there is",
            )  # fmt: skip

    @property
    def degree(self) -> int | None:
        return None if self.compare.degree == "auto" else self.compare.degree

    @property
    def test_samples(self) -> int:
        wanted = self.compare.test_samples or max(5 * self.problem.samples, _FEWEST_TESTS)
        return min(wanted, self.problem.rows_left or wanted)


@dataclass(frozen=True)
class Experiment:
    """A validated spec: every point of the sweep is known to be a valid problem."""

    name: str
    compare: Compare
    sweep: dict[str, tuple[Any, ...]]
    points: tuple[Point, ...]
    figure: FigureOptions

    @classmethod
    def read(cls, spec: str | Path | Mapping[str, Any]) -> Experiment:
        """From a preset's name, a TOML file or a nested mapping."""
        if isinstance(spec, Mapping):
            return cls.from_tables(spec)
        if str(spec) in preset_names():
            return cls.from_tables(read_toml(preset_path(str(spec))))
        try:
            return cls.from_tables(read_toml(spec))
        except SpecError as error:
            near = did_you_mean(spec, preset_names())
            if near and not Path(spec).exists():
                raise SpecError.of("spec", str(spec), "no such file or preset", near) from None
            raise error

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Experiment:
        _check_tables(tables)
        name = tables.get("name", "experiment")
        if not isinstance(name, str):
            raise SpecError.of("name", name, "must be a text", 'For example "impact of width"')
        compare = Compare(**_table(tables, "compare"))
        sweep = {key: _sweep_values(key, v) for key, v in _flat(_table(tables, "sweep")).items()}
        count = math.prod(len(values) for values in sweep.values())
        if count > _MOST_POINTS:
            raise SpecError.of(
                "sweep", f"{count} points", f"must have at most {_MOST_POINTS} points",
                "Shorten the lists",
            )  # fmt: skip
        points = []
        for values in itertools.product(*sweep.values()):
            settings = dict(zip(sweep, values, strict=True))
            changed: Mapping[str, Any] = tables
            for key, value in settings.items():
                changed = override(changed, key, value)
            own = Compare(**_table(changed, "compare"))
            points.append(Point(settings, Problem.from_spec(changed), own))
        figure = FigureOptions(**_table(tables, "figure"))
        return cls(name, compare, sweep, tuple(points), figure)


def _check_tables(tables: Mapping[str, Any]) -> None:
    known = [*EXPERIMENT_KEYS, *Problem.model_fields]
    for key, value in tables.items():
        if key not in known:
            raise SpecError.of(
                key, value, f"is not a known key; a spec takes {', '.join(known)}",
                _home(key) or did_you_mean(key, known),
            )  # fmt: skip


def _home(key: str) -> str:
    """Where a key that stands outside its table belongs."""
    homes = [name for name in Problem.model_fields if key in table_keys(name)]
    return f"It belongs in [{homes[0]}]" if homes else ""


def table_keys(table: str) -> list[str]:
    """Every key that a table of a spec may have, whatever its model."""
    return list(dict.fromkeys(k for c in TABLES.get(table, ()) for k in c.model_fields))


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = tables.get(name, {})
    if not isinstance(value, Mapping):
        raise SpecError.of(name, value, "must be a table of settings", f"Write [{name}]")
    return {str(k): v for k, v in value.items()}


def _flat(sweep: Mapping[str, Any]) -> dict[str, Any]:
    """Accept "network.width" = […] and [sweep.network] width = […] alike."""
    flat: dict[str, Any] = {}
    for key, value in sweep.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{k}": v for k, v in _flat(value).items()})
        else:
            flat[key] = value
    return flat


def _sweep_values(key: str, values: Any) -> tuple[Any, ...]:
    table, _, name = key.rpartition(".")
    swept = [f"{t}.{k}" for t in Problem.model_fields for k in table_keys(t)] + ["compare.degree"]
    if key not in swept:
        raise SpecError.of(
            f"sweep.{key}", values, "is not a key of the problem (write it as table.key)",
            did_you_mean(key, swept) or _home(name or table),
        )  # fmt: skip
    if not isinstance(values, list | tuple) or not values:
        raise SpecError.of(
            f"sweep.{key}", values, "must be a list of at least one value",
            f'For example "{key}" = [{values!r}]' if values else "Remove the line or add values",
        )  # fmt: skip
    if len({repr(v) for v in values}) < len(values):
        raise SpecError.of(
            f"sweep.{key}", values, "must list each value once", "Remove the repeated ones"
        )
    return tuple(values)


def preset_names() -> list[str]:
    folder = resources.files("onegrad.experiments") / "presets"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name[0] != "_")


def preset_groups() -> dict[str, list[tuple[str, str]]]:
    """(name, title) of every preset, by where its figure comes from."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in preset_names():
        tables = read_toml(preset_path(name))
        isotropic = tables["network"]["convention"] == "isotropic"
        source = "Isotropic data (Moniri, Lee, Hassani, Dobriban 2024)"
        if name in _OURS:
            source = "Ours"
        elif tables["data"]["model"] == "fashion-mnist":
            source = "Fashion-MNIST (Demir & Dogan 2025)"
        elif not isotropic:
            source = "Mixtures with structure (Demir & Dogan 2025)"
        groups.setdefault(source, []).append((name, tables["name"]))
    return dict(sorted(groups.items(), key=lambda group: group[0] == "Ours"))


def preset_path(name: str) -> Path:
    return Path(str(resources.files("onegrad.experiments") / "presets" / f"{name}.toml"))
