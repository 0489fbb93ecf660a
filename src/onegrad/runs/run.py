"""The main job: compute what is missing of an experiment, and store every row as it arrives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError
from onegrad.results.rows import Results
from onegrad.runs.coordinator import Coordinator, Progress
from onegrad.runs.cost import Agree
from onegrad.runs.engines import Dask, Local, open_engine
from onegrad.runs.schedule import interim_analyses
from onegrad.runs.store import Store
from onegrad.specs.catalogue import preset_names
from onegrad.specs.experiment import Experiment


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    engine: Local | Dask = Local(),
    progress: Progress | None = None,
    agree: Agree | None = None,
) -> Results:
    """Compute the rows that `out`/results.sqlite does not have yet; write results.json beside it.

    Rows that failed are tried again. What was computed before an interruption is never lost and
    never repeated; more seeds or points add to what is there. Runs on the same folder at the same
    time share the work. `agree` is told the cost before anything starts.
    """
    store = Store(out)
    results = _computed(experiment, store, engine, progress, agree)
    if store.read_only:
        return results
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    (Path(out) / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def simulate_experiment(
    experiment: Experiment,
    engine: Local | Dask = Local(),
    progress: Progress | None = None,
    agree: Agree | None = None,
) -> Results:
    """All points and seeds of a spec, the theories left out; nothing is stored."""
    compare = experiment.compare
    if not compare.simulated:
        raise SpecError.of(
            "compare.models", list(compare.models), "has nothing to simulate",
            "Add the network, or use `onegrad predict`",
        )  # fmt: skip
    alone = replace(experiment, compare=compare.model_copy(update={"models": compare.simulated}))
    return _computed(alone, Store(None), engine, progress, agree)


def _computed(
    experiment: Experiment,
    store: Store,
    engine: Local | Dask,
    progress: Progress | None,
    agree: Agree | None,
) -> Results:
    try:
        with open_engine(experiment, engine) as opened:
            coordinator = Coordinator(experiment, store, opened, progress)
            if agree is not None:
                agree(coordinator.cost())
            coordinator.run()
        return stored_results(experiment, store)
    finally:
        store.close()


def stored_results(experiment: Experiment, store: Store) -> Results:
    """The experiment's rows as the store has them, point by point.

    With `seeds = "auto"` those that the rule asks for, even if the store has more. Rows of a
    repetition share its control variates, whichever of them brought these.
    """
    compare, found = experiment.compare, []
    for point in experiment.points:
        rows = store.rows(point, compare.simulated, compare.largest_count)
        controls = {row.seed: row.controls for row in rows if row.controls}
        if not experiment.controlled:
            controls = {}
        rows = [replace(row, controls=controls.get(row.seed, ())) for row in rows]
        if compare.seeds == "auto":
            errors = {
                model: {row.seed: row.test_error for row in rows if row.model == model}
                for model in compare.simulated
            }
            values = {seed: [c.test_error for c in both] for seed, both in controls.items()}
            analyses = interim_analyses(compare, errors, values if experiment.controlled else None)
            *_, count = analyses
            rows = [row for row in rows if row.seed < count]
        found += rows
        found += store.rows(point, compare.theories, 1)
    return Results(experiment.name, tuple(found))


def run(
    spec: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    engine: Local | Dask = Local(),
) -> Results:
    """`onegrad run` from Python: a preset's name, a TOML file or a nested mapping.

    out : folder for the rows, as the command chooses it unless given: results/<name>
    engine : Local(workers) or Dask(address); no number depends on it
    """
    experiment = Experiment.read(spec)
    return run_experiment(experiment, out or default_folder(spec, experiment.name), engine)


def default_folder(spec: str | Path | Mapping[str, Any], name: str, quick: bool = False) -> Path:
    """results/<name>: of the preset or file, or of the experiment where there is no file."""
    if isinstance(spec, Mapping):
        stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "experiment"
    else:
        stem = str(spec) if str(spec) in preset_names() else Path(spec).stem
    return Path("results") / f"{stem}{'-quick' if quick else ''}"
