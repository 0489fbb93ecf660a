"""Every published figure, run as it was made: which, at which points, into which store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError, did_you_mean
from onegrad.results.results import Results
from onegrad.runs.store import point_spec
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import override
from onegrad.spec.presets import SOURCES, known_tables, preset_names
from onegrad.spec.published import published_figure
from onegrad.spec.sweep import ZIP, flat
from onegrad.theory.options import DRAFT
from onegrad.validate.common_shift import CommonShift, common_shift
from onegrad.validate.reproduced import Agreement, agreements

_VALUES, _SEEDS = 4, 5  # of --quick: values of a key, repetitions
_LARGE = 1500  # inputs from which on one repetition has to do


@dataclass(frozen=True)
class Reproduction:
    """One figure: its experiment, where its rows are kept, and what came out.

    store : folder of the rows; figures with the same points share the first one's
    results : None for spectra, which have no rows
    whole : of a quick one, how many points and repetitions the figure has
    """

    name: str
    experiment: Experiment
    store: Path
    results: Results | None = None
    whole: tuple[int, int] | None = None

    @property
    def seconds(self) -> float:
        """Processor time of all rows, as stored: an interruption takes nothing from it."""
        return sum(row.seconds for row in self.results.rows) if self.results else 0.0

    @cached_property
    def found(self) -> list[Agreement]:
        """Network, models and theory against the published points, where there are some."""
        return agreements(self.experiment, self.results) if self.results else []

    @cached_property
    def shift(self) -> CommonShift | None:
        """How far the published figure is as a whole, where one data set moves all its points."""
        return common_shift(self.experiment, self.results) if self.results else None


def chosen_figures(targets: Iterable[str] = ()) -> list[str]:
    """Presets of the sources named, figures by their name with or without the source; all unless
    some are named."""
    figures = [name for name in preset_names() if "/" in name and not name.startswith("ours/")]
    chosen: list[str] = []
    for target in targets:
        own = [f for f in figures if target in (f, *f.split("/"))]
        if not own:
            known = [*(s for s in SOURCES if s and s != "ours"), *figures]
            raise SpecError.of(
                "figure", target, "must be a source or a figure of one",
                did_you_mean(target, known) or "All of them: onegrad list",
            )  # fmt: skip
        chosen += [f for f in own if f not in chosen]
    return chosen or figures


def planned(names: Sequence[str], out: Path, quick: bool) -> list[Reproduction]:
    """The experiments; those that differ in models or picture alone share a store."""
    stores: dict[tuple[str, ...], Path] = {}
    plan = []
    for name in names:
        tables: Mapping[str, Any] = known_tables(name)
        full = experiment = Experiment.from_tables(tables)
        if quick:
            images = full.points[0].problem.data.own_nodes
            experiment = Experiment.from_tables(few_points(tables, images))
        whole = (len(full.points), int(full.compare.seeds)) if quick else None
        key = tuple(repr(point_spec(point)) for point in experiment.points)
        store = stores.setdefault(key, out / name)
        plan.append(Reproduction(name, experiment, store, whole=whole))
    return plan


def few_points(tables: Mapping[str, Any], own_nodes: bool = False) -> Mapping[str, Any]:
    """The same figure at some of its published points, five repetitions, sizes as published.

    own_nodes : of data whose theory takes samples as nodes, which needs up to a minute a point at
        5 neurons a sample: it is a draft then, with its error estimate

    Smaller sizes would be another problem: θ, η and the labels' scale are powers of n.
    """
    sweep = dict(tables.get("sweep", {}))
    zipped = flat(sweep.pop(ZIP, {}))
    figure = tables.get("figure", {}).get("published", "")
    lists: dict[str, Any] = {
        key: _few(key, values, figure) if not isinstance(values[0], str) else values
        for key, values in flat(sweep).items()
    }
    if zipped:
        lists[ZIP] = {key: _spaced(values) for key, values in zipped.items()}
    large = tables["data"].get("dim", 0) >= _LARGE
    changed = override(tables, "compare.seeds", 2 if large else _SEEDS)
    said = "quick: some of the points, few repetitions"
    if own_nodes:
        changed = override(changed, "compare.accuracy", DRAFT)
        said += ", a draft of the theory"
    changed = {**changed, "name": f"{tables.get('name', 'experiment')} ({said})"}
    return {**changed, "sweep": lists} if lists else changed


def _few(key: str, values: Sequence[Any], figure: str) -> list[Any]:
    """At most four values; of those with a published point where there are any."""
    known = list(values)
    if figure:
        places = [p.point[key] for p in published_figure(figure).points if key in p.point]
        first = [v[0] if isinstance(v, list) else v for v in values]
        known = [
            v
            for v, x in zip(values, first, strict=True)
            if any(abs(x - place) <= 1e-3 * max(1.0, abs(place)) for place in places)
        ] or known
    return _spaced(known)


def _spaced(values: Sequence[Any]) -> list[Any]:
    if len(values) <= _VALUES:
        return list(values)
    last = len(values) - 1
    return [values[round(i * last / (_VALUES - 1))] for i in range(_VALUES)]
