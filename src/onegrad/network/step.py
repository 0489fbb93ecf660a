"""One exact gradient step on the first layer."""

from __future__ import annotations

from onegrad.activation import Activation
from onegrad.backend import namespace, pieces
from onegrad.hermite import Array


def residual(activation: Activation, preactivation: Array, readout: Array, y: Array) -> Array:
    """y − f₀, with the initial output f₀ = σ(XWᵀ)a."""
    error = namespace(y).asarray(y, copy=True)
    for rows in pieces(preactivation):
        error[rows] -= activation(preactivation[rows]) @ readout
    return error


def descent_direction(
    activation: Activation, preactivation: Array, readout: Array, x: Array, error: Array
) -> Array:
    """G = −∂/∂W [1/(2m)·‖y − σ(XWᵀ)a‖²] = (1/m)·(error aᵀ ⊙ σ'(XWᵀ))ᵀX, k × n.

    `error` is y − f₀ for the exact gradient, y for the idealisation without the initial output.
    The step is Ŵ = W + η·G  [demir2025, eq. 5]. Cost: one product of 2kmn operations, beside the
    one that made `preactivation` = XWᵀ (m × k).
    """
    slopes = activation.slope(preactivation) * (error / error.shape[0])[:, None]
    slopes *= readout
    change: Array = slopes.T @ x
    return change


def slopes_and_error(
    activation: Activation,
    preactivation: Array,
    readout: Array,
    y: Array,
    factor: float,
    labels_only: bool,
    out: Array,
) -> Array:
    """Writes (factor/m)·error aᵀ ⊙ σ'(XWᵀ) to `out` (m × k) and returns the error (m).

    `residual` and the factor of `descent_direction` in one pass over the preactivations, each
    row read once; `out` may be `preactivation` itself.
    """
    m = y.shape[0]
    error = namespace(y).asarray(y, copy=True)
    for rows in pieces(preactivation):
        if labels_only:
            slopes = activation.slope(preactivation[rows])
        else:
            values, slopes = activation.value_and_slope(preactivation[rows])
            error[rows] -= values @ readout
        # not in place: a derivative may hand back its own argument
        slopes = slopes * (factor / m * error[rows])[:, None]
        slopes *= readout
        out[rows] = slopes
    return error
