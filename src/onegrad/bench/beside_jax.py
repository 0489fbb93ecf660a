"""Ours and the procedure in JAX, in turns, on the threads that each takes by itself."""

from __future__ import annotations

from functools import partial
from typing import Any

from onegrad.bench import plain, plain_jax
from onegrad.bench.measure import ACTIVATIONS, MODELS, clock, mean_clock, points
from onegrad.compute.array_pool import Pool
from onegrad.simulation import run_group


def per_seed_beside_jax(dim: int, ratio: float, turns: int) -> dict[str, Any] | None:
    """Three activations × (network, Hermite) at one k/m with n = m; None without jax.

    Elapsed and CPU seconds of a seed; functions are compiled, and ours has run, before any clock.
    """
    if not plain_jax.available():
        return None
    width = max(1, round(ratio * dim))
    group = points(dim, width, dim, ACTIVATIONS)
    first = group[0].problem
    setting = plain.Setting(
        dim, width, dim, first.rate, first.spread, first.effective_ridge, first.degree
    )
    curves = [plain_jax.repetition(setting, a, model) for a in ACTIVATIONS for model in MODELS]
    run = partial(run_group, group, MODELS, pool=Pool())

    def all_curves(seed: int) -> None:
        for curve in curves:
            curve(seed)

    run(0)
    all_curves(0)
    ours, theirs = [], []
    for seed in range(1, turns + 1):
        ours.append(clock(partial(run, seed))[0])
        theirs.append(clock(partial(all_curves, seed))[0])
    mine, other = mean_clock(ours), mean_clock(theirs)
    return {
        "n": dim, "m": dim, "k": width, "turns": turns,
        "ours_seconds": mine.seconds, "ours_cpu": mine.cpu,
        "jax_seconds": other.seconds, "jax_cpu": other.cpu,
        "ratio": other.seconds / mine.seconds, "cpu_ratio": other.cpu / mine.cpu,
    }  # fmt: skip
