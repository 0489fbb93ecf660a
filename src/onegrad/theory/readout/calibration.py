"""Signs and chances of a Gaussian output: misclassification and calibration from nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import erf, expit, ndtr

from onegrad.compute.backend import Array

Chance = Callable[[Array], Array]

BINS = 10  # bins of the probability 1/(1 + e^{−f}), of equal width
# nodes of a rule in a bin of so many standard deviations; one may hold the whole Gaussian
_NODES = ((1.0, 4), (3.0, 7), (math.inf, 28))
_NOTHING = 1e-9  # bins with a smaller probability count as empty
_REACH = 6.5  # standard deviations that count


def misclassified(weights: Array, labels: Array, mean: Array, variance: Array) -> float:
    """P(sign f ≠ y) = Σ_s ω_s E Φ(−y f_s/√q_s), y = ±1 with the mean ȳ_s (`labels`)
    (eq. wrong-sign)."""
    # Probability of a wrong sign for y = +1
    wrong = ndtr(-mean / np.sqrt(np.maximum(variance, 1e-300)))
    plus = 0.5 * (1 + labels)
    return float(weights @ (plus * wrong + (1 - plus) * (1 - wrong)))


def signs_at(
    chances: bool, weights: Array, labels: Array, mean: Array, variance: Array,
    chance: Chance | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Misclassification, and the calibration error where outputs are log odds, else NaN."""
    found = weights, labels, mean, variance
    return misclassified(*found), calibration_error(*found, chance) if chances else math.nan


def calibration_error(
    weights: Array, labels: Array, mean: Array, variance: Array, chance: Chance | None = None
) -> float:
    """Σ over ten bins of E|g_b|, g_b = E[(p − 1_{y=1}) 1_{p in bin b}] of one network,
    p = 1/(1 + e^{−f}), f ~ N(f_s, q_s) given a node, y = ±1 with the mean ȳ_s (`labels`).

    One network's outputs are f_s + δ_s, the same δ for all samples: g_b ~ N(ḡ_b, v_b) with
    v_b = Var Σ_s (∂ḡ_b/∂f_s) δ_s, and E|g_b| = √(2v/π) e^{−ḡ²/2v} + ḡ erf(ḡ/√(2v)).
    variance : q_s, with Var δ_s
    chance : Var Σ_s u_s δ_s of the columns u (S, any) of a matrix; without it v = 0
    """
    gaps, slopes = _bin_gaps(labels, mean, variance)
    gap = weights @ gaps
    if chance is None:
        return float(np.abs(gap).sum())
    root = np.sqrt(2 * np.maximum(chance(weights[:, None] * slopes), 1e-300))
    return float((root / math.sqrt(math.pi) * np.exp(-((gap / root) ** 2))).sum()) + float(
        gap @ erf(gap / root)
    )


def _bin_gaps(labels: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """(S, bins) E[(p − 1_{y=1}) 1_{p in the bin}] at each node, and its derivative by f_s, the
    mean of the same times z/√q_s, f = f_s + √q_s z."""
    with np.errstate(divide="ignore"):
        edges = np.log(np.arange(BINS + 1) / BINS) - np.log1p(-np.arange(BINS + 1) / BINS)
    spread = np.sqrt(np.maximum(variance, 1e-300))[:, None]
    cut = np.clip((edges - mean[:, None]) / spread, -_REACH, _REACH)
    node, part = np.nonzero(np.diff(ndtr(cut), axis=1) > _NOTHING)
    width = cut[node, part + 1] - cut[node, part]
    gaps, slopes = np.zeros((2, *cut[:, 1:].shape))
    narrower = 0.0
    for widest, count in _NODES:
        mine = (width > narrower) & (width <= widest)
        i, bins, narrower = node[mine], part[mine], widest
        x, w = _legendre(count)
        low, half = cut[i, bins, None], 0.5 * width[mine, None]
        z = low + half * (1 + x)
        density = half * np.exp(-0.5 * z**2) * (w / math.sqrt(2 * math.pi))
        off = (expit(mean[i, None] + spread[i] * z) - 0.5 * (1 + labels)[i, None]) * density
        gaps[i, bins] = off.sum(axis=1)
        slopes[i, bins] = (off * z).sum(axis=1) / spread[i, 0]
    return gaps, slopes


@lru_cache(maxsize=8)
def _legendre(count: int) -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(count)
