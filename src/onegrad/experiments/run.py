"""The main job: compute what a spec asks for, store it, draw it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onegrad.experiments.predict import theory_row
from onegrad.experiments.results import Results
from onegrad.experiments.simulate import Progress, simulate_experiment
from onegrad.experiments.spec import Experiment


def run_experiment(
    experiment: Experiment, out: str | Path, progress: Progress | None = None
) -> Results:
    """Simulate every point and write results.json to `out`."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = simulate_experiment(experiment, progress)
    for name in experiment.compare.theories:
        results.rows += [theory_row(point, name)[0] for point in experiment.points]
    text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    return results


def run(spec: str | Path | Mapping[str, Any], out: str | Path = "results") -> Results:
    """`onegrad run` from Python: a preset's name, a TOML file or a nested mapping."""
    return run_experiment(Experiment.read(spec), out)
