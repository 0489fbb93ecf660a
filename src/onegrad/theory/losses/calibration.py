"""Signs and chances of a Gaussian output: misclassification and calibration from nodes."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, ndtr

from onegrad.compute.backend import Array

BINS = 10  # of chances 1/(1 + e^{−f}), of equal width
_NODES = 28  # of a rule in each bin: one may hold the whole Gaussian
_NOTHING = 1e-9  # of an output's probability: bins with less are empty
_REACH = 6.5  # standard deviations that count


def misclassified(weights: Array, labels: Array, mean: Array, variance: Array) -> float:
    """P(sign f ≠ y) = Σ_s ω_s E Φ(−y f_s/√q_s), y = ±1 with the mean ȳ_s (`labels`)."""
    wrong = ndtr(-mean / np.sqrt(np.maximum(variance, 1e-300)))  # of y = +1
    plus = 0.5 * (1 + labels)
    return float(weights @ (plus * wrong + (1 - plus) * (1 - wrong)))


def calibration_error(weights: Array, labels: Array, mean: Array, variance: Array) -> float:
    """Σ over ten bins of |E[(p − 1_{y=1}) 1_{p in the bin}]|, p = 1/(1 + e^{−f}), f ~ N(f_s, q_s)
    given a node, y = ±1 with the mean ȳ_s (`labels`)."""
    with np.errstate(divide="ignore"):
        edges = np.log(np.arange(BINS + 1) / BINS) - np.log1p(-np.arange(BINS + 1) / BINS)
    spread = np.sqrt(np.maximum(variance, 1e-300))[:, None]
    cut = np.clip((edges - mean[:, None]) / spread, -_REACH, _REACH)
    inside = ndtr(cut[:, 1:]) - ndtr(cut[:, :-1])
    node, part = np.nonzero(inside > _NOTHING)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    low, high = cut[node, part, None], cut[node, part + 1, None]
    z = 0.5 * (high + low) + 0.5 * (high - low) * x
    density = np.exp(-0.5 * z**2) * (w / math.sqrt(8 * math.pi))
    chance = np.zeros_like(inside)
    values = expit(mean[node, None] + spread[node] * z)
    chance[node, part] = ((high - low) * values * density).sum(axis=1)
    return float(np.abs(weights @ (chance - 0.5 * (1 + labels)[:, None] * inside)).sum())
