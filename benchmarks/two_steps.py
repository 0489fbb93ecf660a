"""Outliers of the weights after two steps, η_t = C_t N^{α_t}.

Results: notes/2026-11-structure.md, section 4.

    python -m benchmarks.two_steps --dim 3000             # three draws, about two minutes
    python -m benchmarks.two_steps --dim 6000             # that of the page, 7 minutes of CPU
    python -m benchmarks.two_steps --dim 3000 --pairs control   # other exponents

Isotropic data, n = N, m̃ = 2n, link tanh, σ(x) = sin(.36x + .66), the gradient of the labels, one
pair (C₁, C₂) for all exponents, chosen by the limit alone. For each pair of exponents: what
⌊α₂/(½ − α₁)⌋ and the limit say beside the gradient's own direction, ℓ of the last direction that
counts and of the next; for each draw the number beyond the threshold of the limit, and the same two
singular values over that threshold. Draws are in single precision.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import onegrad as og
from onegrad.compute.backend import get_backend
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Draw, Reuse, Trial
from onegrad.spectrum.report import leading_singular
from onegrad.theory.spectra.limits import MatrixLimit, spectral_limit

_LEADING = 8
_CONSTANTS = 12.1, 10.7
PAIRS = {
    "theorem": ((0.2, 0.2), (0.3, 0.45), (0.4, 0.35)),
    "control": ((0.25, 0.2), (0.1, 0.45), (0.25, 0.3), (0.35, 0.35)),
}


def two_steps(dim: int, exponents: tuple[float, float]) -> og.Problem:
    rates = [c * dim**a for c, a in zip(_CONSTANTS, exponents, strict=True)]
    return og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": dim}, "labels": {"link": "tanh"},
        "network": {"width": dim, "convention": "isotropic",
                    "activation": lambda x: np.sin(0.36 * x + 0.66)},
        "training": {"samples": dim, "step_samples": 2 * dim, "steps": 2, "rate": rates,
                     "gradient": "labels-only"},
    })  # fmt: skip


def expected(exponents: tuple[float, float]) -> int:
    first, second = exponents
    return math.floor(second / (0.5 - first) + 1e-9)


def show_draw(seed: int, problems: list[og.Problem], limits: list[MatrixLimit]) -> None:
    """All pairs of exponents on the same draw of data and initial weights."""
    streams = Streams(seed, 0)
    reuse = Reuse(layers=True, products=False, initial=True, features=False)
    draw = Draw(problems[0], streams, reuse, get_backend("cpu", "float32"))
    for problem, limit in zip(problems, limits, strict=True):
        _, values, _ = leading_singular(
            Trial(problem, streams, None, draw).updated_weights, _LEADING
        )
        over = values / limit.law.threshold(problem.dim)
        count = int(np.sum(over > 1))
        print(f"  draw {seed}: {count - 1}, last {over[count - 1]:.3f}, next {over[count]:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--pairs", choices=list(PAIRS), default="theorem")
    asked = parser.parse_args()
    pairs = PAIRS[asked.pairs]
    problems = [two_steps(asked.dim, pair) for pair in pairs]
    limits = [spectral_limit(problem).weights for problem in problems]
    for pair, limit in zip(pairs, limits, strict=True):
        outside = int(np.sum(limit.strengths > 1))
        near = ", ".join(f"{x:.2f}" for x in limit.strengths[outside - 1 : outside + 1])
        print(f"{pair}: expected {expected(pair)}, in the limit {outside - 1}; ℓ {near}")
    for seed in range(asked.draws):
        show_draw(seed, problems, limits)


if __name__ == "__main__":
    main()
