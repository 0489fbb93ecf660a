"""One exact gradient step on the first layer."""

from __future__ import annotations

from onegrad.compute.backend import Array, namespace, pieces
from onegrad.gaussian.activation import Activation


def residual(activation: Activation, preactivation: Array, readout: Array, y: Array) -> Array:
    """y − f₀, with the initial output f₀ = σ(XWᵀ)a."""
    error = namespace(y).asarray(y, copy=True)
    for rows in pieces(preactivation):
        error[rows] -= activation(preactivation[rows]) @ readout
    return error


def slopes_and_error(
    activation: Activation,
    preactivation: Array,
    readout: Array,
    y: Array,
    factor: float,
    labels_only: bool,
    out: Array,
) -> Array:
    """Writes S = (factor/m)·error aᵀ ⊙ σ'(XWᵀ) to `out` (m × k) and returns the error (m).

    `preactivation` is XWᵀ (m × k), read once; `out` may be the same array. The error is y − f₀ for
    the exact gradient, y itself for the idealisation without the initial output. With factor η,
    SᵀX = η·G where G = −∂/∂W [1/(2m)·‖y − σ(XWᵀ)a‖²] = (1/m)·(error aᵀ ⊙ σ'(XWᵀ))ᵀX  (k × n), and
    the step is Ŵ = W + η·G  [demir2025, eq. 5]: a product of 2kmn operations beside that of XWᵀ.
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
