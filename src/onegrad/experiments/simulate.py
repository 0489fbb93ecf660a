"""Monte Carlo: every model on every repetition, on common random numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onegrad.equivalents import MODELS
from onegrad.errors import AssumptionError, ConvergenceError, SpecError, did_you_mean
from onegrad.experiments.results import Estimate, Results, Row, Summary
from onegrad.experiments.spec import Compare, Experiment, Point
from onegrad.network.model import Fitted
from onegrad.network.risk import sampled_risk
from onegrad.network.trial import Trial
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.threads import blas_threads

Progress = Callable[[list[Row]], None]


def run_cell(point: Point, models: Sequence[str], seed: int) -> list[Row]:
    """One repetition of one point: a row per model.

    A model whose assumptions do not hold, or whose numbers do not settle, gives a failed row;
    the others go on.
    """
    with blas_threads(point.problem):
        return _run_cell(point, models, seed)


def _run_cell(point: Point, models: Sequence[str], seed: int) -> list[Row]:
    trial = Trial(point.problem, Streams(point.compare.seed, seed), point.degree)
    fitted: dict[str, Fitted] = {}
    seconds: dict[str, float] = {}
    failures: dict[str, str] = {}
    for name in models:
        start = time.perf_counter()
        try:
            fitted[name] = MODELS[name](trial)
        except (AssumptionError, ConvergenceError) as error:
            failures[name] = str(error)
        seconds[name] = time.perf_counter() - start
    start = time.perf_counter()
    risks = sampled_risk(trial, fitted, point.test_samples) if fitted else {}
    share = (time.perf_counter() - start) / max(1, len(fitted))
    rows = []
    for name in models:
        if name in failures:
            rows.append(
                Row(point.settings, name, seed, seconds=seconds[name], status="failed",
                    error=failures[name])
            )  # fmt: skip
            continue
        readout = fitted[name].readout
        rows.append(
            Row(point.settings, name, seed, risks[name], readout.train_error,
                readout.train_objective, seconds[name] + share)
        )  # fmt: skip
    return rows


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
    test_samples: int | None = None,
) -> Simulation:
    """Repeat a problem `seeds` times and estimate the errors of each model.

    Raises if a model cannot be computed. The models share all random numbers, so that their
    differences are paired.
    """
    for name in models:
        if name not in MODELS:
            raise SpecError.of(
                "models", name, f"must be from {', '.join(MODELS)}", did_you_mean(name, MODELS)
            )
    root = int(rng.integers(2**63 - 1)) if isinstance(rng, np.random.Generator) else int(rng)
    compare = Compare(
        models=tuple(models), seeds=seeds, seed=root,
        degree="auto" if degree is None else degree, test_samples=test_samples,
    )  # fmt: skip
    results = Results("simulation")
    for seed in range(seeds):
        rows = run_cell(Point({}, problem, compare), models, seed)
        for row in rows:
            if row.status != "ok":
                raise AssumptionError(f"{row.model}: {row.error}")
        results.rows += rows
    return Simulation(results)


def simulate_experiment(experiment: Experiment, progress: Progress | None = None) -> Results:
    """All points and seeds of a spec; the seeds of all points advance together."""
    models = experiment.compare.simulated
    results = Results(experiment.name)
    for seed in range(experiment.compare.seeds):
        for point in experiment.points:
            rows = run_cell(point, models, seed)
            results.rows += rows
            if progress is not None:
                progress(rows)
    # one curve after the other, however they were computed
    order = {repr(p.settings): i for i, p in enumerate(experiment.points)}
    results.rows.sort(key=lambda row: order[repr(row.point)])
    return results
