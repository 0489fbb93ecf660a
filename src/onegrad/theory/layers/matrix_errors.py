"""Errors of ridge regression on a given first layer, with one response χ for all nodes.

Equations are named as in docs/book/real-data.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.matrix import ConditionedLayer

_NOTHING = 1e-9
_HALVINGS = 48  # bisections of an interval of log χ: to 1e-13


class MatrixErrors(NamedTuple):
    """Mean squared errors of the readout on a given first layer; the objective adds λ‖a‖²."""

    test_error: float
    train_error: float
    train_objective: float


@dataclass(frozen=True)
class FeatureMoments:
    """H = E φφᵀ (k × k), z = E yφ (k), E y² over some nodes."""

    second: Array
    cross: Array
    label: float

    @classmethod
    def mean(cls, parts: list[FeatureMoments]) -> FeatureMoments:
        """Of parts with equally many nodes, up to one."""
        second = np.mean([p.second for p in parts], axis=0)
        cross = np.mean([p.cross for p in parts], axis=0)
        return cls(second, cross, float(np.mean([p.label for p in parts])))


def feature_moments(layer: ConditionedLayer, rows: np.ndarray) -> FeatureMoments:
    """Averages over the given nodes (eqs. own-features and one-response): O(S·k²) in two symmetric
    products."""
    k = layer.width
    second, cross, variance = np.zeros((k, k)), np.zeros(k), np.zeros(k)
    slopes = [np.zeros((k, k)) for _ in layer.parts]
    for block in layer.blocks(rows):
        second += block.mean @ block.mean.T
        slopes[block.group] += block.slope @ block.slope.T
        variance += block.variance.sum(axis=1)
        cross += block.mean @ block.y
    for part, outer in zip(layer.parts, slopes, strict=True):
        outer *= part.coupling
        second += outer
    second.flat[:: k + 1] += variance
    label = float(np.mean(layer.nodes.y[rows] ** 2)) + layer.nodes.label_noise
    return FeatureMoments(second / len(rows), cross / len(rows), label)


def common_errors(
    moments: FeatureMoments, samples: int, ridge: float
) -> tuple[MatrixErrors, float]:
    """Errors with one χ for all nodes, and χ (eqs. one-response and one-response-errors).

    The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² with m = `samples` and λ = `ridge`. One
    eigendecomposition (values only) and one Cholesky factorisation, O(k³).
    """
    k = len(moments.cross)
    values = np.maximum(eigh(moments.second, eigvals_only=True, check_finite=False), 0.0)
    chi = _solve_chi(values, samples, ridge)
    level = ridge * (1 + chi)
    system = moments.second.copy()
    system.flat[:: k + 1] += level
    readout = cho_solve(cho_factor(system, overwrite_a=True, check_finite=False), moments.cross)
    left = 1 - float(np.sum((values / (values + level)) ** 2)) / samples
    if left <= 1e-6:
        raise ConvergenceError(
            "the network interpolates its training data with hardly any ridge: the theory's errors "
            "diverge. Use a larger training.ridge, or a width further from the samples."
        )
    explained = float(readout @ moments.cross)
    rest = moments.label - explained - level * float(readout @ readout)
    test = max(rest, 0.0) / left
    objective = (moments.label - explained) / (1 + chi)
    return MatrixErrors(test, test / (1 + chi) ** 2, objective), chi


def _solve_chi(values: Array, samples: int, ridge: float) -> float:
    """χ = (1/m) Σ_j h_j/(λ + h_j/(1+χ)): the only root, bracketed and halved."""
    total = float(values.sum())
    if total < _NOTHING * ridge * samples:  # the features are zero up to rounding
        return 0.0
    # 1 − 1/(1+χ) − df₁(l)/m increases with l = λ(1+χ)
    low, high = math.log(ridge), math.log(ridge + total / samples) + 1e-9
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        level = math.exp(middle)
        if 1 - ridge / level < float(np.sum(values / (values + level))) / samples:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high)) / ridge - 1
