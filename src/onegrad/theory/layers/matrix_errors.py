"""Errors of ridge regression on a given first layer, with one response χ for all nodes.

Equations are named as in docs/book/real-data.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError

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
    def mean(
        cls, parts: Sequence[FeatureMoments], counts: Sequence[int] | None = None
    ) -> FeatureMoments:
        """Of parts with so many nodes; equally many, up to one, by default."""
        second = np.average([p.second for p in parts], axis=0, weights=counts)
        cross = np.average([p.cross for p in parts], axis=0, weights=counts)
        return cls(second, cross, float(np.average([p.label for p in parts], weights=counts)))


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
