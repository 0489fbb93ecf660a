"""Measurements of the theory: seconds per point, a curve against the simulation, growth with n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed.measure import TARGET, bench_problem, clock
from onegrad.errors import OnegradError
from onegrad.predict.predict import predict, predict_curve
from onegrad.problem import Problem
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Compare, Point

_MIXTURE: dict[str, Any] = {
    "data": {"model": "mixture", "dim": 1000},
    "network": {"width": 1000, "activation": "relu"},
    "training": {"samples": 1000, "ridge": 1e-4},
    "scaling": {"strength": 0.74, "weighting": 0.5},
}
_ISOTROPIC: dict[str, Any] = {
    "data": {"model": "isotropic", "dim": 500},
    "network": {"width": 1000, "activation": "relu", "convention": "isotropic"},
    "training": {"samples": 1000, "ridge": 1e-2},
    "scaling": {"exponent": 0.29},
}
# What is changed, table by table, from the mixture at k = m = n = 1000.
SETTINGS: dict[str, dict[str, Any]] = {
    "relu": {},
    "tanh": {"network": {"activation": "tanh"}},
    "sigmoid": {"network": {"activation": "sigmoid"}},
    "erf, k/m = 0.3": {"network": {"activation": "erf", "width": 300}},
    "relu, k/m = 3": {"network": {"width": 3000}},
    "strength 0.33": {"scaling": {"strength": 0.33}},
    "component labels": {"labels": {"model": "component"}, "network": {"activation": "tanh"}},
    "three components": {"data": {"weights": [0.5, 0.3, 0.2]}},
    "rank 3": {"data": {"rank": 3}},
    "means": {"data": {"mean": 2.0}},
}


def problems() -> dict[str, Problem]:
    """The settings that are timed, by name."""
    found = {}
    for name, changes in SETTINGS.items():
        tables = {
            key: {**_MIXTURE.get(key, {}), **changes.get(key, {})}
            for key in dict.fromkeys([*_MIXTURE, *changes])
        }
        found[name] = Problem.from_spec(tables)
    found["isotropic"] = Problem.from_spec(_ISOTROPIC)
    return found


def seconds_per_point(names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Each setting to 1 % on one thread: the better of two runs."""
    rows = []
    with threadpool_limits(limits=1, user_api="blas"):
        for name, problem in problems().items():
            if names is None or name in names:
                rows.append({"setting": name, **_timed(problem)})
    return rows


def _timed(problem: Problem) -> dict[str, Any]:
    try:
        runs = [clock(lambda: predict(problem, accuracy=TARGET)) for _ in range(2)]
    except OnegradError as error:
        return {"seconds": math.nan, "cpu": math.nan, "status": str(error)}
    said = runs[0][1]
    return {
        "seconds": min(spent.seconds for spent, _ in runs),
        "cpu": min(spent.cpu for spent, _ in runs),
        "test_error": said.test_error,
        "error_estimate": said.error_estimate,
        "status": said.status,
    }


def independence(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """The same ratios at several n: the cost should not depend on it."""
    with threadpool_limits(limits=1, user_api="blas"):
        return [{"n": n, **_timed(bench_problem(n, n, n, "tanh"))} for n in sizes]


def curve(dim: int, count: int, seeds: int = 3) -> dict[str, Any]:
    """`count` widths from 0.1·m to 3·m at n = m, on one thread: theory, and our own simulation.

    The simulation's time to a standard error of 1 % is (relative variance between seeds, pooled
    over the curve)/0.01² × CPU seconds per seed of all points.
    """
    widths = np.unique(np.geomspace(0.1, 3.0, count) * dim).round().astype(int)
    tasks = [bench_problem(dim, int(k), dim, "relu") for k in widths]
    simulated = 0.0
    errors = np.empty((seeds, len(tasks)))
    off = []
    with threadpool_limits(limits=1, user_api="blas"):
        spent, predicted = clock(lambda: predict_curve(tasks, accuracy=TARGET, throw=True))
        theory = spent.cpu
        for i, (problem, said) in enumerate(zip(tasks, predicted, strict=True)):
            for seed in range(seeds):
                point = Point({}, problem, Compare(seeds=1))
                own = seeds * i + seed  # no draw twice: the variance is pooled over the curve
                spent, rows = clock(lambda p=point, s=own: run_group([p], ["network"], s))  # type: ignore[misc]
                simulated += spent.cpu / seeds
                errors[seed, i] = rows[0].test_error
            off.append(said.test_error / errors[:, i].mean() - 1)
    relative = errors / errors.mean(axis=0)
    variance = float(np.sum((relative - 1) ** 2)) / ((seeds - 1) * len(tasks))
    needed = variance / TARGET**2 * simulated
    return {
        "n": dim, "points": len(tasks), "theory_cpu": theory, "simulation_cpu_per_seed": simulated,
        "spread_percent": 100 * math.sqrt(variance), "simulation_cpu_to_1_percent": needed,
        "ratio": needed / theory, "mean_difference_percent": 100 * float(np.mean(off)),
    }  # fmt: skip
