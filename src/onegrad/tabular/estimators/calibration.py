"""Probabilities from outputs: the softness that suits outputs for rows that were left out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from onegrad.compute.backend import Array

_SOFTEST, _HARDEST = 1e-3, 1e3


def logits_of(output: Array, softness: float) -> Array:
    """m × classes; one output f ∈ ±1 stands for the two columns (−f, f)/2."""
    both = np.column_stack([-output, output]) / 2 if output.shape[1] == 1 else output
    return np.asarray(both / softness)


def probabilities(output: Array, softness: float) -> Array:
    """p_c ∝ exp(f_c/τ): rows add up to one, and the largest output stays the largest."""
    return np.asarray(softmax(logits_of(output, softness), axis=1))


def fit_softness(output: Array, codes: np.ndarray, weight: Array) -> float:
    """τ that minimises the log loss Σω_i·(−log p_{c_i}) of these outputs [guo2017].

    output : of rows left out of their own fit; codes : the class of each
    One number, so that thousands of rows are not needed, and the classes predicted stay.
    """
    rows = np.arange(len(codes))

    def loss(log_softness: float) -> float:
        logs = log_softmax(logits_of(output, float(np.exp(log_softness))), axis=1)
        return -float(weight @ logs[rows, codes])

    bounds = (np.log(_SOFTEST), np.log(_HARDEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
