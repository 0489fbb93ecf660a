"""The squared loss (y − f)²: weights of nodes with response χ_s, and training errors.

A sample at node s that is left out has the residual u = y − f(x). When it is fitted as well, its
prediction moves by χ_s times its new residual, so that this is the minimum over f' of
(y − f')² + (f' − f)²/χ_s,

    y − f' = u/(1 + χ_s).

So a node counts in the sums over samples with w_s = ω_s/(1 + χ_s), and the mean squared residual
of the training samples is 1/(1 + χ_s)² times that of fresh ones (eqs. gains and test-and-train).
"""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array


def node_weights(weights: Array, chi: Array, softness: Array | float = 1.0) -> Array:
    """w_s = ω_s/(c_s + χ_s), c_s = 1; other losses have a `softness` c_s of their own
    (reweighted.py)."""
    return np.asarray(weights / (softness + chi))


def response_roots(weights: Array, chi: Array, softness: Array | float = 1.0) -> Array:
    """√D_s with D_s = −∂w_s/∂χ_s = ω_s/(c_s + χ_s)²."""
    return np.asarray(np.sqrt(weights) / (softness + chi))


def training_residuals(fresh: Array, chi: Array) -> Array:
    """Mean squared residuals of training samples: t_s/(1 + χ_s)², t_s the error of fresh ones."""
    return np.asarray(fresh / (1.0 + chi) ** 2)
