"""The main job: compute what is missing of an experiment, and store every row as it arrives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from onegrad.errors import SpecError, verb
from onegrad.gaussian.activation import get_activation, names, register_activation
from onegrad.problem import Problem
from onegrad.results.results import Results
from onegrad.results.rows import SPECTRUM
from onegrad.runs.coordinator import Coordinator, Progress
from onegrad.runs.cost import Agree
from onegrad.runs.engines import Dask, Local, open_engine
from onegrad.runs.progress import progress_line
from onegrad.runs.schedule import interim_analyses
from onegrad.runs.store import Store, version_of
from onegrad.spec.experiment import Experiment
from onegrad.spec.figure_options import FigureOptions
from onegrad.spec.presets import Spec, preset_names, read_spec
from onegrad.text.strict_json import json_text

_USUAL: dict[str, Any] = {"models": ["network", "theory"], "seeds": 10}


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    engine: Local | Dask = Local(),
    progress: Progress | None = None,
    agree: Agree | None = None,
) -> Results:
    """Compute the rows that `out`/results.sqlite does not have yet; write results.json beside it.

    Rows that failed are tried again. What was computed before an interruption is never lost and
    never repeated; more seeds or points add to what is there. A second run on the same folder waits
    until the first has ended. `agree` is told the cost before anything starts.
    """
    store = Store(out)
    results = _computed(experiment, store, engine, progress, agree)
    made = provenance(experiment)
    results = replace(results, provenance=made)
    text = json_text({**results.as_json(), "provenance": made}, indent=1)
    (Path(out) / "results.json").write_text(text + "\n", encoding="utf-8")
    if "spec" in made:
        (Path(out) / "spec.toml").write_text(made["spec"], encoding="utf-8")
    return results


def provenance(experiment: Experiment) -> dict[str, str]:
    """What it takes to make the rows again: the version of the program and of each model's numbers,
    seeds, and the spec; no spec where it holds arrays of Python."""
    compare = experiment.compare
    seeds = compare.seeds if compare.seeds != "auto" else f"auto, to {compare.precision:g}"
    made = {
        "onegrad": version("onegrad"),
        "models": ", ".join(f"{name} {version_of(name)}" for name in compare.models),
        "seed": str(compare.seed), "seeds": str(seeds),
    }  # fmt: skip
    with suppress(SpecError, TypeError, ValueError):
        made["spec"] = experiment.as_toml()
    return made


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
    alone = replace(
        experiment, compare=compare.model_copy(update={"models": compare.simulated}),
        figure=FigureOptions(),  # the file's own options may ask for a figure of spectra
    )  # fmt: skip
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
            if isinstance(engine, Local) and not coordinator.complete:
                experiment.check_data()  # workers elsewhere may have files that are not here
            if agree is not None:
                agree(coordinator.cost())
            coordinator.run()
        if experiment.figure.draws_spectra:
            from onegrad.runs.spectra import store_spectra  # the theory is loaded where it is asked

            store_spectra(experiment, store)
        return stored_results(experiment, store)
    finally:
        store.close()


def stored_results(experiment: Experiment, store: Store) -> Results:
    """The experiment's rows as the store has them, point by point.

    With `seeds = "auto"` those that the rule asks for, even if the store has more.
    """
    compare, found, spectra = experiment.compare, [], []
    for point in experiment.points:
        own = point.compare  # seeds and precision are the point's, the models the experiment's
        rows = store.rows(point, compare.simulated, own.largest_count)
        if not experiment.controlled:
            rows = [replace(row, controls=()) for row in rows]
        if own.seeds == "auto":
            errors = {
                model: {row.seed: row.test_error for row in rows if row.model == model}
                for model in compare.simulated
            }
            controls = {
                model: {
                    row.seed: [c.test_error for c in row.controls]
                    for row in rows
                    if row.model == model and row.controls
                }
                for model in compare.simulated
            }
            analyses = interim_analyses(own, errors, controls if experiment.controlled else None)
            *_, count = analyses
            rows = [row for row in rows if row.seed < count]
        found += rows
        found += store.rows(point, compare.theories, 1)
        if experiment.figure.draws_spectra:
            spectra += store.rows(point, [SPECTRUM], 1)
    return Results(experiment.name, tuple(found), tuple(spectra))


@verb
def run(
    spec: Spec | Problem,
    out: str | Path | None = None,
    engine: Local | Dask = Local(),
    quick: bool = False,
    progress: bool = True,
) -> Results:
    """`onegrad run` from Python: a preset's name, a TOML file, a nested mapping, or a Problem.

    Draws nothing: `run(…).plot()` does. Of a Problem it is network and theory, ten seeds.

    out : folder for the rows, as the command chooses it unless given: results/<name>
    engine : Local(workers) or Dask(address); no number depends on it
    quick : at most four values of each key and five seeds, as --quick; sizes and theory stay
    progress : a line that says how far it is, on a terminal, in a notebook or in a pipe
    """
    if isinstance(spec, Problem):
        tables = {name: getattr(spec, name) for name in Problem.model_fields}
        spec = {**tables, "name": "one problem", "compare": dict(_USUAL)}
    experiment = Experiment.read(spec, quick=quick)
    folder = out or default_folder(spec, experiment.name, quick)
    with _told(experiment, progress) as told:
        return run_experiment(experiment, folder, engine, told)


@verb
def sweep(
    problem: Problem | Spec,
    keys: Mapping[str, Sequence[Any]],
    models: str | Sequence[str] | None = None,
    seeds: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    engine: Local | Dask = Local(),
    **compare: Any,
) -> Results:
    """Compute all models at all values of some dotted keys; several keys make a grid.

    problem : a Problem, or a spec, whose [compare] holds where nothing else is asked for and which
        may leave out what is swept
    keys : {"network.width_ratio": [0.3, 1, 3]}, or NumPy arrays; activations may be functions
    models, seeds : by default network and theory, 10
    out : folder in which rows are kept and taken from; in memory unless given
    engine : Local(workers) or Dask(address)
    compare : further keys of a spec's [compare], seed=1 for instance

    >>> problem = Problem.from_spec({"data": {"model": "isotropic", "dim": 30},
    ...     "network": {"width": 20}, "training": {"samples": 40, "rate": 1.0}})
    >>> found = sweep(problem, {"network.width": [20, 30]}, models="network", seeds=2,
    ...     progress=False)
    >>> len(found.rows)
    4
    """
    if not keys:
        example = 'For example {"network.width_ratio": [0.3, 1, 3]}'
        raise SpecError.of("keys", dict(keys), "must name what changes, and its values", example)
    if isinstance(problem, Problem):
        tables = problem.tables_for(keys)
        stated: Mapping[str, Any] = {}
    else:
        read = read_spec(problem)
        tables = {name: table for name, table in read.items() if name in Problem.model_fields}
        stated = read.get("compare", {})
    wanted: dict[str, Any] = {**_USUAL, **stated}
    if models is not None:
        wanted["models"] = [models] if isinstance(models, str) else list(models)
    if seeds is not None:
        wanted["seeds"] = seeds
    named = {key: _named(key, values) for key, values in keys.items()}
    title = "error against " + ", ".join(key.rpartition(".")[2] for key in keys)
    experiment = Experiment.from_tables(
        {**tables, "name": title, "compare": wanted | compare, "sweep": named}
    )
    with _told(experiment, progress) as told:
        if out is None:
            return _computed(experiment, Store(None), engine, told, None)
        return run_experiment(experiment, out, engine, told)


def default_folder(spec: Spec, name: str, quick: bool = False) -> Path:
    """results/<name>: of the preset or file, or of the experiment where there is no file."""
    if isinstance(spec, Mapping):
        stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "experiment"
    else:
        stem = str(spec) if str(spec) in preset_names() else Path(spec).stem
    return Path("results") / f"{stem}{'-quick' if quick else ''}"


def _told(experiment: Experiment, wanted: bool) -> AbstractContextManager[Progress | None]:
    return progress_line(experiment) if wanted else nullcontext()


def _named(key: str, values: Any) -> Any:
    """Arrays as lists; functions and activations of a swept key by name, known in this process from
    now on."""
    if isinstance(values, np.ndarray | range):
        values = list(values) if isinstance(values, range) else values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str):
        return values
    return [_known(v, key) if callable(v) else _plain(v) for v in values]


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's own."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _known(function: Any, key: str) -> str:
    activation = get_activation(function, key)
    if activation.name not in names():
        register_activation(activation)
    return activation.name
