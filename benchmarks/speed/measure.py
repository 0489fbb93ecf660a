"""Measurements of the simulation: ours and the straightforward procedure, side by side."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.speed import plain
from benchmarks.speed.precision import Curve, cost_alone, cost_together, relative_variance
from onegrad.problem import Problem
from onegrad.simulate.memory import peak_bytes
from onegrad.simulate.simulate import reuse_of, run_group
from onegrad.spec.experiment import Compare, Point

ACTIVATIONS = ("relu", "tanh", "sigmoid")
MODELS = ("network", "hermite")
TARGET = 0.01  # standard error of the mean test error, relative
TARGETS = {"1_percent": TARGET, "quarter_percent": TARGET / 4}


def bench_problem(dim: int, width: int, samples: int, activation: str) -> Problem:
    """A mixture of two spiked components at strength 0.74: degree 3."""
    return Problem.from_spec(
        {
            "data": {"model": "mixture", "dim": dim},
            "network": {"width": width, "activation": activation},
            "training": {"samples": samples, "ridge": 1e-4},
            "scaling": {"strength": 0.74, "weighting": 0.5},
        }
    )


def points(
    dim: int,
    width: int,
    samples: int,
    activations: Sequence[str],
    dtype: Literal["auto", "float64", "float32"] = "auto",
) -> list[Point]:
    problems = {a: bench_problem(dim, width, samples, a) for a in activations}
    return [
        Point({"network.activation": a}, problem, Compare(seeds=1, dtype=dtype), number)
        for number, (a, problem) in enumerate(problems.items())
    ]


@dataclass(frozen=True)
class Clock:
    """Elapsed and CPU seconds."""

    seconds: float
    cpu: float


def clock(work: Callable[[], Any]) -> tuple[Clock, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Clock(time.perf_counter() - wall, time.process_time() - cpu), result


def mean_clock(clocks: Sequence[Clock]) -> Clock:
    return Clock(
        float(np.mean([c.seconds for c in clocks])), float(np.mean([c.cpu for c in clocks]))
    )


# --- seconds per seed ---------------------------------------------------------------------


def per_seed(dim: int, ratio: float, seeds: int, plain_seeds: int) -> dict[str, Any]:
    """Three activations × (network, Hermite) at one k/m with n = m, on one thread each.

    Ours, ours with control variates and the straightforward procedure take turns, so that all
    meet the same machine. A standard error is bought with control variates, as by
    `seeds = "auto"`; the plain procedure spends on each curve what that curve needs. Its variance
    is that of the exact risk plus that of its test set, s²/(5m), measured on the test set itself.
    """
    width = max(1, round(ratio * dim))
    group = points(dim, width, dim, ACTIVATIONS)
    first = group[0].problem
    setting = plain.Setting(
        dim, width, dim, first.rate, first.spread, first.effective_ridge, first.degree
    )
    rng, run = np.random.default_rng(0), run_group
    double = points(dim, width, dim, ACTIVATIONS, "float64")
    clocks: list[Clock] = []
    in_double: list[Clock] = []
    controlled: list[Clock] = []
    plain_clocks: dict[Curve, list[Clock]] = {}
    test_noise: dict[Curve, list[float]] = {}
    errors: dict[Curve, list[float]] = {}
    controls: dict[Curve, list[list[float]]] = {}
    with threadpool_limits(limits=1, user_api="blas"):
        run_group(points(60, 50, 60, ACTIVATIONS), MODELS, 0, controlled=True)  # first use
        for turn in np.array_split(np.arange(seeds), plain_seeds):
            for seed in turn.tolist():
                clocks.append(clock(partial(run, group, MODELS, seed))[0])
                in_double.append(clock(partial(run, double, MODELS, seed))[0])
                spent, rows = clock(partial(run, group, MODELS, seed, controlled=True))
                controlled.append(spent)
                for row in rows:
                    key = (row.point["network.activation"], row.model)
                    errors.setdefault(key, []).append(row.test_error)
                    controls.setdefault(key, []).append([c.test_error for c in row.controls])
            for a in ACTIVATIONS:
                for model in MODELS:
                    spent, (_, tested) = clock(partial(plain.repetition, setting, a, model, rng))
                    plain_clocks.setdefault((a, model), []).append(spent)
                    relative = tested.variance / tested.mean**2
                    test_noise.setdefault((a, model), []).append(relative)
        cpu_of = _measured(group, mean_clock(controlled).cpu)
    ours = mean_clock(clocks)
    theirs = {key: mean_clock(values) for key, values in plain_clocks.items()}
    noise = {key: float(np.mean(values)) for key, values in test_noise.items()}
    spread = {key: relative_variance(errors[key]) for key in theirs}
    left = {
        key: relative_variance(errors[key], list(zip(*controls[key], strict=True)))
        for key in theirs
    }
    total = sum(c.cpu for c in theirs.values())
    result = {
        "n": dim, "m": dim, "k": width, "seeds": seeds, "plain_seeds": plain_seeds,
        "ours_seconds": ours.seconds, "ours_cpu": ours.cpu,
        "controlled_cpu": mean_clock(controlled).cpu,
        "plain_seconds": sum(c.seconds for c in theirs.values()), "plain_cpu": total,
        "cpu_ratio": total / ours.cpu,
        "double_cpu": mean_clock(in_double).cpu,
        "double_ratio": total / mean_clock(in_double).cpu,
        "spread_percent": 100 * math.sqrt(max(spread.values())),
        "controlled_percent": 100 * math.sqrt(max(left.values())),
        "test_noise_percent": 100 * math.sqrt(max(noise.values())),
    }  # fmt: skip
    plain_variance = {key: spread[key] + noise[key] for key in theirs}
    plain_cpu = {key: spent.cpu for key, spent in theirs.items()}
    for name, target in TARGETS.items():
        bought = cost_together(left, target, cpu_of)
        paid = cost_alone(plain_variance, target, plain_cpu)
        result |= {
            f"ours_cpu_to_{name}": bought, f"plain_cpu_to_{name}": paid,
            f"ratio_to_{name}": paid / bought,
        }  # fmt: skip
    return result | _difference(errors, plain_variance, plain_cpu, ours.cpu)


def _measured(group: Sequence[Point], everything: float) -> Callable[[Sequence[str]], float]:
    """CPU seconds of one seed with control variates of some activations, measured on first use."""
    known = {len(group): everything}

    def cpu(activations: Sequence[str]) -> float:
        if len(activations) not in known:
            some = [p for p in group if p.settings["network.activation"] in activations]
            run = partial(run_group, some, MODELS, controlled=True)
            spent = [clock(partial(run, seed))[0] for seed in (0, 1)]
            known[len(activations)] = mean_clock(spent).cpu
        return known[len(activations)]

    return cpu


def _difference(
    errors: dict[Curve, list[float]],
    plain_variance: dict[Curve, float],
    plain_cpu: dict[Curve, float],
    ours_cpu: float,
) -> dict[str, float]:
    """The same for Hermite model minus network to 1 % of the network's error: no control
    variates are needed where common draws cancel."""
    ours = plain_total = 0.0
    for a in ACTIVATIONS:
        gap = np.subtract(errors[a, "hermite"], errors[a, "network"])
        variance = float(np.var(gap, ddof=1)) / float(np.mean(errors[a, "network"])) ** 2
        ours = max(ours, variance / TARGET**2 * ours_cpu)
        both = [(a, model) for model in MODELS]
        seeds = sum(plain_variance[key] for key in both) / TARGET**2
        plain_total += seeds * sum(plain_cpu[key] for key in both)
    return {
        "ours_cpu_to_1_percent_difference": ours,
        "plain_cpu_to_1_percent_difference": plain_total,
        "difference_ratio": plain_total / ours,
    }


# --- share of the machine's rate, growth ---------------------------------------------------


def necessary_operations(point: Point, models: int, direct: bool = False) -> float:
    """Operations of the products that one activation cannot do without.

    X̃W₀ᵀ, the gradient and XŴᵀ: 2kmn each; ŴŴᵀ of the exact risk, k²n; for each model a symmetric
    Gram matrix, mk·min(m, k), and a Cholesky factor, min(m, k)³/3, which conjugate gradients save
    in single precision: there only if `direct`. What is in single precision counts half: all of it,
    or all but the first three.
    """
    n, k, m = point.problem.dim, point.problem.width, point.problem.samples
    side, single = min(k, m), point.precision == "float32"
    products, rest = 6.0 * n * k * m, float(k**2 * n)
    if direct or not single:
        rest += models * (m * k * side + side**3 / 3)
    return (products / 2 if single else products) + rest / 2


def gemm_rate(size: int, repeats: int = 2) -> tuple[float, float]:
    """Operations per second, and per CPU second, of a general product: the best of some."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, size, size))
    spent = [clock(lambda: left @ right)[0] for _ in range(repeats)]
    work = 2.0 * size**3
    return work / min(c.seconds for c in spent), work / min(c.cpu for c in spent)


def gemm_share(size: int, repeats: int = 4) -> dict[str, Any]:
    """Network and Hermite model at n = m = k = size, against the machine's own product.

    On all threads by elapsed time, and on one thread by CPU time, the best of some as for the
    product; also the share that a direct solution of the readout would have in the same time.
    """
    group = points(size, size, size, ("tanh",))
    work = necessary_operations(group[0], len(MODELS))
    direct = necessary_operations(group[0], len(MODELS), direct=True)
    result: dict[str, Any] = {
        "n": size, "operations": work, "direct_operations": direct,
        "precision": group[0].precision,
    }  # fmt: skip
    for name, limit in (("all", None), ("one", 1)):
        with threadpool_limits(limits=limit, user_api="blas"):
            before = gemm_rate(size)
            run = partial(run_group, group, MODELS, 0)
            clocks = [clock(run)[0] for _ in range(repeats)]
            after = gemm_rate(size)
        spent = Clock(min(c.seconds for c in clocks), min(c.cpu for c in clocks))
        rate, cpu_rate = (max(pair) for pair in zip(before, after, strict=True))
        result[f"{name}_threads"] = {
            "seconds": spent.seconds, "cpu": spent.cpu, "gemm_gflops": rate / 1e9,
            "share": work / spent.seconds / rate, "cpu_share": work / spent.cpu / cpu_rate,
        }  # fmt: skip
    return result


def growth(sizes: Sequence[int], known: dict[int, float]) -> dict[str, Any]:
    """CPU seconds at n = m = k on one thread, and the slope of their logarithm.

    known : sizes that were measured already
    """
    cpu = dict(known)
    with threadpool_limits(limits=1, user_api="blas"):
        for size in sizes:
            if size not in cpu:
                group = points(size, size, size, ("tanh",))
                repeats = max(1, min(5, 2000 // size))
                cpu[size] = min(
                    clock(lambda g=group, s=s: run_group(g, MODELS, s))[0].cpu  # type: ignore[misc]
                    for s in range(repeats)
                )
    logs = np.log([[size, cpu[size]] for size in sizes])
    slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    return {"sizes": list(sizes), "cpu": [cpu[size] for size in sizes], "exponent": slope}


# --- memory -------------------------------------------------------------------------------


def peak_memory(size: int, which: str) -> dict[str, Any]:
    """Peak of one network at n = m = k = size in a process of its own, above its start."""
    code = f"from benchmarks.speed.measure import memory_child; memory_child({size}, {which!r})"
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def memory_child(size: int, which: str) -> None:
    """Runs in the child: prints the peak as JSON."""
    group = points(size, size, size, ("relu",))
    problem = group[0].problem
    run_group(points(60, 50, 60, ("relu",)), ("network",), 0)
    start = _peak_resident()
    if which == "ours":
        run_group(group, ("network",), 0)
    else:
        setting = plain.Setting(
            size, size, size, problem.rate, problem.spread, problem.effective_ridge, problem.degree
        )
        plain.repetition(setting, "relu", "network", np.random.default_rng(0))
    peak = _peak_resident() - start
    how = reuse_of(("network",), 1), group[0].precision
    estimate = peak_bytes(problem, ("network",), *how)
    record = {"n": size, "which": which, "bytes": peak, "matrices": peak / (8 * size**2)}
    print(json.dumps(record | ({"estimate": estimate} if which == "ours" else {})))


def _peak_resident() -> int:
    """Bytes of this process at their highest."""
    try:  # unlike getrusage, not inherited from the process that started this one
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
