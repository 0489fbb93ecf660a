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
from onegrad.spec.presets import SOURCES, known_tables, preset_names
from onegrad.spec.published import PublishedFigure, published_figure, published_names
from onegrad.validate.reproduced import Agreement, CommonShift, agreements, common_shift


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

    @property
    def figure(self) -> PublishedFigure | None:
        """What the source plotted, where that is known."""
        return published_figure(self.name) if self.name in published_names() else None

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
            experiment = Experiment.read(tables, quick=True)
        whole = (len(full.points), int(full.compare.seeds)) if quick else None
        key = tuple(repr(point_spec(point)) for point in experiment.points)
        store = stores.setdefault(key, out / name)
        plan.append(Reproduction(name, experiment, store, whole=whole))
    return plan
