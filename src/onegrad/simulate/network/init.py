"""Initial weights and readout of f(x) = aᵀσ(Wx)."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array, pieces
from onegrad.compute.randomness import Streams, gaussian_rows
from onegrad.problem import Problem


def draw_weights(problem: Problem, streams: Streams, out: Array | None = None) -> Array:
    """W (k × n) with entries N(0, weight_variance), or rows of norm √(n·weight_variance).

    A wider network extends a narrower one. In `out` if given, rounded where that is of single
    precision.
    """
    rng = streams.rng("weights")
    weights = np.empty((problem.width, problem.dim)) if out is None else out
    for rows in pieces(weights):
        with gaussian_rows(rng, weights[rows]) as drawn:
            if problem.network.rows == "unit":
                drawn *= np.sqrt(problem.dim) / np.linalg.norm(drawn, axis=1, keepdims=True)
            drawn *= np.sqrt(problem.weight_variance)
    return weights


def draw_readout(problem: Problem, streams: Streams) -> Array:
    """Initial a (k, or k × K): Gaussian with the convention's scale, every entry equal to it, or
    of that size with random signs."""
    shape = problem.width if problem.outputs == 1 else (problem.width, problem.outputs)
    if problem.network.readout == "constant":
        return np.full(shape, problem.readout_scale)
    if problem.network.readout == "signs":
        return streams.rng("readout").choice([-1.0, 1.0], shape) * problem.readout_scale
    return streams.rng("readout").standard_normal(shape) * problem.readout_scale
