"""The main job: compute what is missing of an experiment, and store every row as it arrives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError
from onegrad.results.rows import Results
from onegrad.runs.coordinator import Coordinator, Progress
from onegrad.runs.engines import open_engine
from onegrad.runs.schedule import interim_analyses
from onegrad.runs.store import Store
from onegrad.specs.experiment import Experiment


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    progress: Progress | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Results:
    """Compute the rows that `out`/results.sqlite does not have yet; write results.json beside it.

    Rows that failed are tried again. What was computed before an interruption is never lost and
    never repeated; more seeds or points add to what is there. Engine, workers and scheduler: see
    `run`; no number depends on them.
    """
    store = Store(out)
    try:
        with open_engine(experiment, engine, workers, scheduler) as opened:
            Coordinator(experiment, store, opened, progress).run()
        results = stored_results(experiment, store)
    finally:
        store.close()
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    (Path(out) / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def simulate_experiment(
    experiment: Experiment,
    progress: Progress | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Results:
    """All points and seeds of a spec, the theories left out; nothing is stored."""
    compare = experiment.compare
    if not compare.simulated:
        raise SpecError.of(
            "compare.models", list(compare.models), "has nothing to simulate",
            "Add the network, or use `onegrad predict`",
        )  # fmt: skip
    alone = replace(experiment, compare=compare.model_copy(update={"models": compare.simulated}))
    store = Store(None)
    try:
        with open_engine(alone, engine, workers, scheduler) as opened:
            Coordinator(alone, store, opened, progress).run()
        return stored_results(alone, store)
    finally:
        store.close()


def stored_results(experiment: Experiment, store: Store) -> Results:
    """The experiment's rows as the store has them, point by point.

    With `seeds = "auto"` those that the rule asks for, even if the store has more.
    """
    results = Results(experiment.name)
    compare = experiment.compare
    for point in experiment.points:
        rows = store.rows(point, experiment.repeated, compare.largest_count)
        if compare.seeds == "auto":
            errors = {
                model: {row.seed: row.test_error for row in rows if row.model == model}
                for model in experiment.repeated
            }
            *_, count = interim_analyses(compare, errors)
            rows = [row for row in rows if row.seed < count]
        results.rows += rows
        results.rows += store.rows(point, compare.theories, 1)
    return results


def run(
    spec: str | Path | Mapping[str, Any],
    out: str | Path = "results",
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Results:
    """`onegrad run` from Python: a preset's name, a TOML file or a nested mapping.

    engine : "local" or "dask"; dask if a scheduler is given, else local
    workers : processes on this machine, by default one per core where there is enough to do
    scheduler : address of a dask scheduler, tcp://host:8786
    """
    return run_experiment(Experiment.read(spec), out, None, engine, workers, scheduler)
