"""Small pictures of the presets, at small sizes; kept as long as the spec is."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from small import small_tables

from onegrad.errors import OnegradError
from onegrad.spec.experiment import Experiment
from onegrad.spec.overrides import with_changes
from onegrad.spec.presets import preset_names, preset_path, read_spec


def draw_all(folder: Path) -> dict[str, str]:
    """File names of the pictures by preset; none where the data are missing."""
    wanted = {name: _file(name) for name in preset_names()}
    for old in folder.glob("*.png"):
        if old.name not in wanted.values():
            old.unlink()
    new = [name for name, file in wanted.items() if not (folder / file).exists()]
    if len(new) > 1:
        with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            list(pool.map(_draw, new, [folder / wanted[name] for name in new]))
    elif new:
        _draw(new[0], folder / wanted[new[0]])
    return {name: file for name, file in wanted.items() if (folder / file).exists()}


def _file(name: str) -> str:
    """A name that changes with the spec."""
    digest = hashlib.sha256(preset_path(name).read_bytes()).hexdigest()[:8]
    return f"{name.replace('/', '-')}-{digest}.png"


def _draw(name: str, path: Path) -> None:
    from onegrad.figures.curves import draw_curves
    from onegrad.figures.histograms import draw_spectra
    from onegrad.figures.maps import draw_difference_map, draw_map
    from onegrad.runs.engines import Local
    from onegrad.runs.run import simulate_experiment
    from onegrad.spectrum.report import spectrum

    try:
        experiment = Experiment.read(_small(name))
        if experiment.figure.draws_spectra:
            kind = "weights" if experiment.figure.kind == "weight-spectrum" else "features"
            reports = [("", spectrum(p.problem)) for p in experiment.points[:2]]
            figure = draw_spectra("", reports, kind, "")
        else:
            results = _with_theory(experiment, simulate_experiment(experiment, Local(1)))
            draw = {"map": draw_map, "difference-map": draw_difference_map}
            figure = draw.get(experiment.figure.kind, draw_curves)(experiment, results)
    except OnegradError:  # the images of Fashion-MNIST are not on this machine
        return
    for legend in [*figure.legends, *(panel.get_legend() for panel in figure.axes)]:
        if legend is not None:
            legend.remove()
    if experiment.figure.draws_spectra:
        for panel in figure.axes:
            panel.set_xlabel("singular value")
    figure.suptitle("")
    figure.supxlabel("")
    figure.set_size_inches(4.4, 2.9)
    figure.savefig(path, dpi=70)


def _small(name: str) -> Mapping[str, Any]:
    """One panel: the network, the theory, and what it is compared with; sizes cut down."""
    tables = with_changes(small_tables(read_spec(name)), ["compare.seeds=8"])
    figure, compare = tables.get("figure", {}), tables["compare"]
    if figure.get("kind", "curves") not in ("curves", "map", "difference-map"):
        return tables
    reference = figure.get("reference")
    wanted = {"network", "theory", reference or "network"}
    models = [m for m in compare.get("models", ["network"]) if m in wanted] or ["network"]
    if figure.get("kind") == "difference-map":
        models = compare.get("models", models)
    figure = {k: v for k, v in figure.items() if k not in ("models", "published")}
    figure["quantities"] = figure.get("quantities", ["test_error"])[:1]
    if figure.get("kind") == "map":
        figure["models"] = ["network"]
    return {**tables, "figure": figure, "compare": {**compare, "models": models}}


def _with_theory(experiment: Experiment, results):
    """The theory's rows too where the law of the data is known; points of a curve share the means
    over chance, which makes the build of the site minutes shorter."""
    from onegrad.predict.predict import predict_curve, theory_of

    points, compare = experiment.points, experiment.compare
    law_known = all(point.problem.data.known for point in points)
    rows = []
    for model in compare.theories if law_known else ():
        predictions = predict_curve(
            [point.problem for point in points], theory_of(model, compare), rng=compare.seed
        )
        rows += [_row(*pair, model) for pair in zip(points, predictions, strict=True)]
    return replace(results, rows=(*results.rows, *rows))


def _row(point, prediction, model: str):
    from onegrad.results.rows import Row

    wrong = prediction.misclassification
    return Row(
        point.settings, model, 0, prediction.test_error, prediction.train_error,
        prediction.train_objective, 0.0, "failed" if prediction.status == "failed" else "ok",
        prediction.error, number=point.number, label_variance=prediction.label_variance,
        misclassification=math.nan if wrong is None else wrong, test_loss=prediction.test_loss,
        train_loss=prediction.train_loss,
    )  # fmt: skip
