"""The main job: compute what is missing of an experiment, and store every row as it arrives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onegrad.experiments.predict import theory_row
from onegrad.experiments.results import Results, Row
from onegrad.experiments.simulate import Progress, group_points, run_group
from onegrad.experiments.spec import Experiment, Point
from onegrad.experiments.store import Store


def run_experiment(
    experiment: Experiment, out: str | Path, progress: Progress | None = None
) -> Results:
    """Compute the rows that `out`/results.sqlite does not have yet; write results.json beside it.

    Rows that failed are tried again. What was computed before an interruption is never lost and
    never repeated; more seeds or points add to what is there.
    """
    store = Store(out)
    try:
        _simulate_missing(experiment, store, progress)
        for name in experiment.compare.theories:
            for point in experiment.points:
                if not _good(store.rows(point, [name], 1)):
                    store.add([(point, theory_row(point, name)[0])])
        results = stored_results(experiment, store)
    finally:
        store.close()
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    (Path(out) / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def _simulate_missing(experiment: Experiment, store: Store, progress: Progress | None) -> None:
    """Seed by seed, so that the first rows of every curve arrive early."""
    models, seeds = experiment.compare.simulated, experiment.compare.seeds
    done = {
        id(point): {(r.model, r.seed) for r in _good(store.rows(point, models, seeds))}
        for point in experiment.points
    }
    groups = group_points(experiment.points)
    for seed in range(seeds):
        for group in groups:
            missing = {id(p): [m for m in models if (m, seed) not in done[id(p)]] for p in group}
            if progress is not None:
                stored = sum(len(models) - len(left) for left in missing.values())
                progress([Row({}, "stored", seed)] * stored)
            left = [point for point in group if missing[id(point)]]
            if not left:
                continue
            wanted = [m for m in models if any(m in missing[id(p)] for p in left)]
            rows = run_group(left, wanted, seed)
            owner = {id(point.settings): point for point in left}
            pairs: list[tuple[Point, Row]] = [(owner[id(row.point)], row) for row in rows]
            new = [(point, row) for point, row in pairs if row.model in missing[id(point)]]
            store.add(new)
            if progress is not None:
                progress([row for _, row in new])


def _good(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.status == "ok"]


def stored_results(experiment: Experiment, store: Store) -> Results:
    """The experiment's rows as the store has them, point by point."""
    results = Results(experiment.name)
    for point in experiment.points:
        compare = experiment.compare
        results.rows += store.rows(point, compare.simulated, compare.seeds)
        results.rows += store.rows(point, compare.theories, 1)
    return results


def run(spec: str | Path | Mapping[str, Any], out: str | Path = "results") -> Results:
    """`onegrad run` from Python: a preset's name, a TOML file or a nested mapping."""
    return run_experiment(Experiment.read(spec), out)
