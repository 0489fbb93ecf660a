"""Ours and the procedure in JAX, in turns, on all cores."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from onegrad.bench import plain, plain_jax
from onegrad.bench.measure import ACTIVATIONS, MODELS, Clock, clock, mean_clock, points
from onegrad.compute.array_pool import Pool
from onegrad.compute.threads import cores
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Point


def _cpu_of_seed(dim: int, width: int, seed: int) -> float:
    """Runs in a process of its own, which keeps its arrays."""
    group, pool = _kept(dim, width)
    return clock(partial(run_group, group, MODELS, seed, 1, pool))[0].cpu


@lru_cache(maxsize=1)
def _kept(dim: int, width: int) -> tuple[list[Point], Pool]:
    return points(dim, width, dim, ACTIVATIONS), Pool()


def per_seed_beside_jax(dim: int, ratio: float, turns: int) -> dict[str, Any] | None:
    """Three activations × (network, Hermite) at one k/m with n = m; None without jax.

    Elapsed and CPU seconds of a seed; functions are compiled, and ours has run, before any clock.
    Both have all cores: XLA spreads one seed over them, we compute as many seeds at once as there
    are cores, each in a process of its own on one thread, as a run does.
    """
    if not plain_jax.available():
        return None
    width = max(1, round(ratio * dim))
    first = points(dim, width, dim, ACTIVATIONS[:1])[0].problem
    setting = plain.Setting(
        dim, width, dim, first.rate, first.spread, first.effective_ridge, first.degree
    )
    curves = [plain_jax.repetition(setting, a, model) for a in ACTIVATIONS for model in MODELS]
    at_once = cores()

    def all_curves(seed: int) -> None:
        for curve in curves:
            curve(seed)

    all_curves(0)
    ours, theirs = [], []
    with ProcessPoolExecutor(at_once, get_context("spawn")) as processes:
        for turn in range(turns + 1):
            numbers = range(2 * turn * at_once, 2 * (turn + 1) * at_once)
            run = partial(processes.map, partial(_cpu_of_seed, dim, width), numbers)
            spent, cpu = clock(lambda run=run: list(run()))  # type: ignore[misc]
            if turn:  # the first one starts the processes
                ours.append(Clock(spent.seconds / len(numbers), float(np.mean(cpu))))
                theirs.append(clock(partial(all_curves, turn))[0])
    mine, other = mean_clock(ours), mean_clock(theirs)
    return {
        "n": dim, "m": dim, "k": width, "turns": turns, "seeds_at_once": at_once,
        "ours_seconds": mine.seconds, "ours_cpu": mine.cpu,
        "jax_seconds": other.seconds, "jax_cpu": other.cpu,
        "ratio": other.seconds / mine.seconds, "cpu_ratio": other.cpu / mine.cpu,
    }  # fmt: skip
