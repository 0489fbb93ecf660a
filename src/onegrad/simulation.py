"""Monte Carlo: every model on every repetition, on common random numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.array_pool import Pool
from onegrad.compute.backend import get_backend
from onegrad.compute.threads import blas_threads, threads_for
from onegrad.control_variates import CONTROLS, Companions
from onegrad.errors import AssumptionError, ConvergenceError, SpecError, did_you_mean
from onegrad.models import MODELS, SIMULATED
from onegrad.models.base import Fitted
from onegrad.models.exact_risk import exact_risk
from onegrad.models.memory import check_memory
from onegrad.network.trial import Draw, Reuse, Trial, draw_key
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.results.rows import Estimate, Results, Row, Summary
from onegrad.risk.sampled import sampled_risk
from onegrad.specs.experiment import Compare, Point


def group_points(points: Sequence[Point]) -> list[list[Point]]:
    """Points that share their draws, in the order of their first member."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        c = point.compare
        key = f"{draw_key(point.problem)} {c.seed} {c.device} {c.dtype}"
        groups.setdefault(key, []).append(point)
    return list(groups.values())


def run_group(
    points: Sequence[Point],
    models: Sequence[str],
    seed: int,
    threads: int | None = None,
    pool: Pool | None = None,
) -> list[Row]:
    """One repetition of points with the same draw: a row per point and model.

    Draws and the products with the initial weights are shared by all, the trained layer, its
    features and their Gram matrix by points that differ in the ridge alone. A model whose
    assumptions do not hold, or whose numbers do not settle, gives a failed row; the others go on.
    threads : of the linear algebra library, `threads_for` the problem by default
    pool : of large arrays, for those who run many repetitions one after the other
    """
    problem, compare = points[0].problem, points[0].compare
    streams = Streams(compare.seed, seed)
    backend = get_backend(compare.device, compare.dtype)
    rows = []
    layers = by_layer(points).values()
    reuse = reuse_of(models, len(layers), ridges=max(len(members) for members in layers))
    check_memory(problem, models, reuse, backend)
    with blas_threads(threads or threads_for(problem.operations), backend):
        draw = Draw(problem, streams, reuse, backend, pool)
        companions = Companions(draw)
        own = [name for name in models if name not in CONTROLS]
        for members in layers:
            first = members[0]
            trial = Trial(first.problem, streams, first.degree, draw, len(members) > 1)
            rows += _run_layer(trial, members, own, seed)
            if len(own) < len(models):
                rows += _control_rows(trial, members, companions, seed)
            if reuse.layers:
                draw.train.keep_only(draw.weights)
            del trial  # and its trained layer, before the next one is made
    order = {id(point): i for i, point in enumerate(points)}
    rows.sort(key=lambda pair: order[id(pair[0])])
    return [row for _, row in rows]


def reuse_of(models: Sequence[str], layers: int = 1, ridges: int = 1) -> Reuse:
    """What these models share: only those of the trained layer leave the initial one behind."""
    controlled = not set(models).isdisjoint(CONTROLS)
    products = sum(name not in ("linear", "kernel", *CONTROLS) for name in models)
    # controls ask for the products with the initial weights once in each layer
    shared = products > 1 or (controlled and layers > 1)
    initial = not set(models) <= {"network", "hermite", "linear", "kernel"}
    return Reuse(layers > 1, shared, initial, ridges > 1)


def by_layer(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points whose trained first layer is the same: they differ in the ridge alone."""
    layers: dict[str, list[Point]] = {}
    for point in points:
        p = point.problem
        key = repr((p.network.activation, p.rate, p.training.gradient, point.degree))
        layers.setdefault(key, []).append(point)
    return layers


def _run_layer(
    trial: Trial, points: Sequence[Point], models: Sequence[str], seed: int
) -> list[tuple[Point, Row]]:
    rows: list[tuple[Point, Row]] = []
    sampled: dict[int, tuple[Point, str, Fitted, float]] = {}
    for name in models:
        start = time.perf_counter()
        try:
            fit = MODELS[name].fit
            assert fit is not None, f"{name} is not simulated"
            fitted = fit(trial)
        except (AssumptionError, ConvergenceError) as error:
            for point in points:
                row = Row(point.settings, name, seed, status="failed", error=str(error))
                rows.append((point, row))
            continue
        for i, point in enumerate(points):
            try:
                if i:
                    fitted = fitted.at_ridge(point.problem.effective_ridge)
                risk = _exact(trial, fitted, point.compare.risk)
            except (AssumptionError, ConvergenceError) as error:
                row = Row(point.settings, name, seed, status="failed", error=str(error))
                rows.append((point, row))
                continue
            now = time.perf_counter()
            if risk is None:
                sampled[len(sampled)] = (point, name, fitted, now - start)
            else:
                rows.append((point, _row(point, name, seed, fitted, risk, now - start)))
            start = now
    if sampled:
        start = time.perf_counter()
        count = max(point.test_samples for point, *_ in sampled.values())
        risks, errors = _sampled(trial, {i: entry[2] for i, entry in sampled.items()}, count)
        share = (time.perf_counter() - start) / len(sampled)
        for i, (point, name, fitted, seconds) in sampled.items():
            if i in errors:
                row = Row(point.settings, name, seed, status="failed", error=errors[i])
            else:
                row = _row(point, name, seed, fitted, risks[i], seconds + share)
            rows.append((point, row))
    # models in the order asked for, whichever way their risk was computed
    rows.sort(key=lambda pair: models.index(pair[1].model))
    return rows


def _control_rows(
    trial: Trial, points: Sequence[Point], companions: Companions, seed: int
) -> list[tuple[Point, Row]]:
    """The control variates of all models of a layer: for each of its points."""
    start = time.perf_counter()
    try:
        found = companions.controls(trial, [p.problem.effective_ridge for p in points])
    except (AssumptionError, ConvergenceError) as error:
        failed = Row({}, "", seed, status="failed", error=str(error))
        return [
            (point, replace(failed, point=point.settings, model=name))
            for point in points
            for name in CONTROLS
        ]
    seconds = (time.perf_counter() - start) / len(points) / len(CONTROLS)
    return [
        (point, Row(point.settings, name, seed, *control, seconds))
        for point, both in zip(points, found, strict=True)
        for name, control in zip(CONTROLS, both, strict=True)
    ]


def _sampled(
    trial: Trial, models: dict[int, Fitted], count: int
) -> tuple[dict[int, float], dict[int, str]]:
    """Risks on one test set; if a model cannot predict there, the others on their own."""
    try:
        return sampled_risk(trial, models, count), {}
    except (AssumptionError, ConvergenceError) as error:
        if len(models) == 1:
            return {}, dict.fromkeys(models, str(error))
    risks: dict[int, float] = {}
    errors: dict[int, str] = {}
    for i, model in models.items():
        alone, failed = _sampled(trial, {i: model}, count)
        risks |= alone
        errors |= failed
    return risks, errors


def _exact(trial: Trial, fitted: Fitted, risk: str) -> float | None:
    """The risk without a test set, or None if it has to be sampled."""
    if risk == "sampled":
        return None
    try:
        return exact_risk(trial, fitted).value
    except (AssumptionError, ConvergenceError):
        if risk == "exact":
            raise
        return None


def _row(point: Point, name: str, seed: int, fitted: Fitted, risk: float, seconds: float) -> Row:
    errors = (risk, fitted.readout.train_error, fitted.readout.train_objective)
    return Row(point.settings, name, seed, *errors, seconds)


@dataclass(frozen=True)
class Simulation:
    """The outcome of `simulate`: estimates of each model; the first one's are at hand directly."""

    results: Results

    @property
    def estimates(self) -> dict[str, Summary]:
        return {summary.model: summary for summary in self.results.summaries()}

    @property
    def _first(self) -> Summary:
        return self.results.summaries()[0]

    @property
    def test_error(self) -> Estimate:
        return self._first.test_error

    @property
    def train_error(self) -> Estimate:
        return self._first.train_error

    @property
    def train_objective(self) -> Estimate:
        return self._first.train_objective

    def difference(self, model: str) -> Estimate:
        """Test error of `model` minus the network's, relative to it, paired seed by seed."""
        return self.estimates[model].test_difference


def simulate(
    problem: Problem,
    models: Sequence[str] = ("network",),
    seeds: int = 20,
    rng: int | np.random.Generator = 0,
    degree: int | None = None,
    risk: str = "auto",
    test_samples: int | None = None,
    device: str = "cpu",
    dtype: str = "float64",
    companions: bool = False,
) -> Simulation:
    """Repeat a problem `seeds` times and estimate the errors of each model.

    Raises if a model cannot be computed. The models share all random numbers, so that their
    differences are paired. risk : "exact" (no test set), "sampled" (on `test_samples` samples,
    5·m by default), or "auto": exact where it is known. device, dtype : where the large arrays
    live and in which precision, as `compare.device` and `compare.dtype` of a spec. companions :
    correct the means by companions of the teacher, as `compare.companions`: smaller error bars.
    """
    for name in models:
        if name not in SIMULATED:
            raise SpecError.of(
                "models",
                name,
                f"must be from {', '.join(SIMULATED)}",
                did_you_mean(name, SIMULATED),
            )
    if isinstance(models, str):
        models = (models,)
    root = int(rng.integers(2**63 - 1)) if isinstance(rng, np.random.Generator) else int(rng)
    compare = Compare(
        models=tuple(models), seeds=seeds, seed=root,
        degree="auto" if degree is None else degree, risk=risk, test_samples=test_samples,
        device=device, dtype=dtype, companions=companions,
    )  # fmt: skip
    point = Point({}, problem, compare)
    asked = (*models, *(CONTROLS if compare.companions is True else ()))
    results, pool = Results("simulation"), Pool()
    for seed in range(seeds):
        rows = run_group([point], asked, seed, pool=pool)
        for row in rows:
            if row.status != "ok":
                raise AssumptionError(f"{row.model}: {row.error}")
        results.rows += rows
    return Simulation(results)
