"""A spec file: one problem, what to compare on it, and what to sweep over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool

from onegrad.compute.backend import check_device
from onegrad.data import DATA_MODELS
from onegrad.data.arrays import Arrays
from onegrad.data.labels import ComponentLabels, GivenLabels, SingleIndex
from onegrad.data.multi_index import MultiIndex
from onegrad.errors import SpecError, did_you_mean
from onegrad.problem import EXPERIMENT_KEYS, Network, Problem, Scaling, Training
from onegrad.simulate.control_variates import random_labels
from onegrad.simulate.models import MODELS, THEORIES, VARIANTS
from onegrad.simulate.network.rounding import worth_rounding
from onegrad.spec.fields import Count, Real, Section, Whole, home, override
from onegrad.spec.figure_options import FigureOptions
from onegrad.spec.overrides import quick_tables, with_changes
from onegrad.spec.presets import read_spec
from onegrad.spec.sweep import Axis, in_sweep, read_axes, settings_of
from onegrad.spec.toml_text import to_toml
from onegrad.text.display import count_of

MODEL_NAMES = tuple(MODELS)
_FEWEST_TESTS = 5000
_LONGEST_NAME = 300


def _known_model(name: str) -> str:
    if name not in MODELS:
        raise SpecError.choice("compare.models", name, (*MODEL_NAMES, *VARIANTS))
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
        description=f"a list from {', '.join((*MODEL_NAMES, *VARIANTS))}",
        examples=[["network", "hermite"]],
    )  # fmt: skip
    seeds: Count | Literal["auto"] = Field(
        default=20, description="number of repetitions; auto: as many as `precision` asks for",
        examples=[20],
    )  # fmt: skip
    precision: Annotated[Real, Field(gt=0, lt=1)] = Field(
        default=0.01, examples=[0.01],
        description="of seeds = \"auto\": standard error of every mean test error, relative to it",
    )  # fmt: skip
    fewest_seeds: Count | Literal["auto"] = Field(
        default="auto", examples=[8],
        description='of seeds = "auto": repetitions at least; auto: 8, a standard error of fewer '
        "is too uncertain to stop by; 4 where control variates need no fitted factor",
    )  # fmt: skip
    most_seeds: Count = Field(
        default=1000, description='of seeds = "auto": repetitions at most', examples=[1000]
    )
    control_variates: StrictBool | Literal["auto"] = Field(
        default="auto", description="correct the mean errors by control variates, other teachers "
        'on the same inputs (docs/control-variates.md): fewer seeds for the same error bar; auto: '
        'where seeds = "auto"', examples=["auto"],
    )  # fmt: skip
    accuracy: Annotated[Real, Field(gt=0, lt=1)] = Field(
        default=0.01, examples=[0.01],
        description="of theory: relative accuracy of its numerics; from 0.03 on a draft",
    )  # fmt: skip
    finite_size: StrictBool = Field(
        default=True, examples=[True], description="of theory: correct the errors for terms of "
        "order 1/n (docs/book/chance-and-size.md); false: the limit of large sizes, as "
        "theory-limit",
    )  # fmt: skip
    seed: Whole = Field(
        default=0, ge=0, le=2**63 - 1, description="root of every random number", examples=[0]
    )
    redraw: Literal["all", "network"] = Field(
        default="all", description="what every repetition draws anew: data and network, or the "
        "network alone, on one data set", examples=["all"],
    )  # fmt: skip
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
    dtype: Literal["auto", "float64", "float32"] = Field(
        default="auto", description="precision of the large arrays: auto is float32 in large "
        "problems where that changes no error by more than 1e-6, else float64 (docs/devices.md)",
        examples=["float64"],
    )  # fmt: skip

    @property
    def largest_count(self) -> int:
        return self.most_seeds if self.seeds == "auto" else self.seeds

    @property
    def simulated(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if name not in THEORIES)

    @property
    def theories(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if name in THEORIES)


# The classes behind each table of a spec, one for each of its models; arrays come from Python.
TABLES: dict[str, tuple[type[Section], ...]] = {
    "data": tuple(model for model in DATA_MODELS if model is not Arrays),
    "labels": (SingleIndex, MultiIndex, ComponentLabels, GivenLabels),
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
    number: int = 0  # its place among the points of its experiment

    def __post_init__(self) -> None:
        left, asked = self.problem.rows_left, self.compare.test_samples
        if left is not None and asked is not None and asked > left:
            raise SpecError.of(
                "compare.test_samples", asked,
                f"must be at most {left}: what step and readout leave of these data",
                f"For example {left}, or leave it out to use what there is",
            )  # fmt: skip
        if self.compare.control_variates is True and not random_labels(self.problem):
            raise SpecError.of(
                "compare.control_variates", True,
                "needs labels that are drawn anew in each repetition: a random teacher or label "
                "noise, on isotropic or mixture data",
                'Use "auto", or leave it out',
            )  # fmt: skip
        if self.compare.control_variates is True and self.compare.redraw == "network":
            raise SpecError.of(
                "compare.control_variates", True,
                "needs data that are drawn anew in each repetition",
                'Set compare.redraw = "all", or leave control_variates out',
            )  # fmt: skip

    @property
    def degree(self) -> int | None:
        return None if self.compare.degree == "auto" else self.compare.degree

    @property
    def precision(self) -> Literal["float64", "float32"]:
        """Of the large arrays: as told, or by the problem."""
        if self.compare.dtype != "auto":
            return self.compare.dtype
        single = self.compare.device == "cpu" and worth_rounding(self.problem)
        return "float32" if single else "float64"

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
    zipped: tuple[str, ...] = ()  # swept keys whose lists advance together
    tables: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def controlled(self) -> bool:
        """Whether control variates are computed beside the simulated models."""
        wanted = self.compare.control_variates
        if wanted == "auto":
            random = all(random_labels(p.problem) for p in self.points)
            wanted = self.compare.seeds == "auto" and self.compare.redraw == "all" and random
        return bool(wanted and self.compare.simulated)

    def as_toml(self) -> str:
        """The spec as a file that `onegrad run` takes; functions of Python stand there by name."""
        written = {
            name: t.model_dump(mode="json", exclude_none=True) if isinstance(t, Section) else t
            for name, t in self.tables.items()
        }
        return to_toml({**written, "name": self.name})

    def check_data(self) -> None:
        """Raise before the first row what every row would raise: files that are missing."""
        for data in {repr(p.problem.data): p.problem.data for p in self.points}.values():
            data.check_at_hand()

    @classmethod
    def read(
        cls,
        spec: str | Path | Mapping[str, Any],
        changes: Sequence[str] = (),
        quick: bool = False,
    ) -> Experiment:
        """From a preset's name, a TOML file or a nested mapping.

        quick : fewer points and seeds, and the name says so; then `changes`, each "key=value",
            are set
        """
        tables = read_spec(spec)
        if not quick:
            return cls.from_tables(with_changes(tables, changes))
        experiment = cls.from_tables(with_changes(quick_tables(tables), changes))
        return replace(experiment, name=f"{experiment.name} (quick: {_extent(experiment)})")

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Experiment:
        _check_tables(tables)
        name = tables.get("name", "experiment")
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable():
            raise SpecError.of(
                "name", name, f"must be a text of one line, at most {_LONGEST_NAME} characters",
                'For example "impact of width"',
            )  # fmt: skip
        compare = Compare(**_table(tables, "compare"))
        axes = read_axes(_table(tables, "sweep"), sweepable_keys())
        figure = FigureOptions(**_table(tables, "figure"))
        sweep: dict[str, tuple[Any, ...]] = {}
        for axis in axes:
            sweep |= dict(zip(axis.keys, zip(*axis.values, strict=True), strict=True))
        figure.check(compare.models, sweep)
        points = _points(tables, axes)
        zipped = tuple(key for axis in axes if axis.zipped for key in axis.keys)
        return cls(name, compare, sweep, points, figure, zipped, tables)


def _extent(experiment: Experiment) -> str:
    """`n = 200, 3 seeds`; a range where sizes are swept."""
    sizes = sorted({point.problem.dim for point in experiment.points})
    size = " to ".join(f"{n}" for n in dict.fromkeys((sizes[0], sizes[-1])))
    compare = experiment.compare
    if not compare.simulated:
        return f"n = {size}"
    if compare.seeds == "auto":
        return f"n = {size}, standard errors of {100 * compare.precision:g} %"
    return f"n = {size}, {count_of(compare.seeds, 'seed')}"


def _points(tables: Mapping[str, Any], axes: Sequence[Axis]) -> tuple[Point, ...]:
    plan = list(settings_of(axes))
    points = []
    for number, settings in enumerate(plan):
        try:
            points.append(replace(_point(tables, settings), number=number))
        except SpecError as error:
            everywhere = True
            if settings is not plan[-1]:  # find out whether the sweep causes the error
                try:
                    _point(tables, plan[-1])
                    everywhere = False
                except SpecError as other:
                    everywhere = str(other) == str(error)
            elif len(plan) > 1:
                everywhere = False
            raise in_sweep(error, settings, axes, everywhere) from None
    return tuple(points)


def _point(tables: Mapping[str, Any], settings: dict[str, Any]) -> Point:
    changed: Mapping[str, Any] = tables
    for key, value in settings.items():
        changed = override(changed, key, value)
    own = Compare(**_table(changed, "compare"))
    return Point(settings, Problem.from_spec(changed), own)


def _check_tables(tables: Mapping[str, Any]) -> None:
    tables_allowed = [*EXPERIMENT_KEYS, *Problem.model_fields]
    for key, value in tables.items():
        if key not in tables_allowed:
            raise SpecError.of(
                key, value, f"is not a known key; a spec takes {', '.join(tables_allowed)}",
                home(key) or did_you_mean(key, tables_allowed),
            )  # fmt: skip


def table_keys(table: str) -> list[str]:
    """Every key that a table of a spec may have, whatever its model."""
    return list(dict.fromkeys(k for c in TABLES.get(table, ()) for k in c.model_fields))


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = tables.get(name, {})
    if not isinstance(value, Mapping):
        raise SpecError.of(name, value, "must be a table of settings", f"Write [{name}]")
    return {str(k): v for k, v in value.items()}


def sweepable_keys() -> list[str]:
    """Every dotted key that a [sweep] may list."""
    keys = [f"{table}.{key}" for table in Problem.model_fields for key in table_keys(table)]
    return [*keys, "compare.degree"]
