"""One exact gradient step on the first layer."""

from __future__ import annotations

from onegrad.activation import Activation
from onegrad.hermite import Array


def residual(activation: Activation, preactivation: Array, readout: Array, y: Array) -> Array:
    """y − f₀, with the initial output f₀ = σ(XWᵀ)a."""
    return y - activation(preactivation) @ readout


def descent_direction(
    activation: Activation, preactivation: Array, readout: Array, x: Array, error: Array
) -> Array:
    """G = −∂/∂W [1/(2m)·‖y − σ(XWᵀ)a‖²] = (1/m)·(error aᵀ ⊙ σ'(XWᵀ))ᵀX, k × n.

    `error` is y − f₀ for the exact gradient, y for the idealisation without the initial output.
    The step is Ŵ = W + η·G  [demir2025, eq. 5]. Cost: one product of 2kmn operations, beside the
    one that made `preactivation` = XWᵀ (m × k).
    """
    slopes = activation.derivative(preactivation)
    slopes *= (error / len(error))[:, None]
    slopes *= readout
    return slopes.T @ x
