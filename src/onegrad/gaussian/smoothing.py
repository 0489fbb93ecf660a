"""Gaussian moments of an activation and of its slope for whole tables of neurons × nodes.

`Activation.smoothed` is exact to 1e-10 and pays for it. Here one evaluation of the function
serves three moments, and functions without closed form are interpolated in shift and scale from
tables that are made once per process (moment_tables.py).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from onegrad.compute.backend import Array
from onegrad.compute.deadline import check_time
from onegrad.gaussian.activation import Activation, Smoothed, get_activation
from onegrad.gaussian.elementwise import exponential_tails
from onegrad.gaussian.moment_tables import three_moments
from onegrad.gaussian.quadrature import gaussian_mean

_COSTLY = ("erf",)  # closed forms that cost more than a table (Owen's T)


class SlopeMoments(NamedTuple):
    """E σ'(s+bZ), E σ''(s+bZ) and Var σ'(s+bZ)."""

    value: Array
    curvature: Array
    variance: Array


def smoothed(activation: Activation, shift: Array, scale: Array) -> Smoothed:
    """E σ(s+bZ), E σ'(s+bZ), Var σ(s+bZ), b > 0; the slope by Stein's E[σ Z]/b."""
    check_time()
    cheap = activation.moments is not None and activation.name not in _COSTLY
    if cheap or activation.breakpoints:
        return activation.smoothed(shift, scale)
    value, slope, square = three_moments(activation.function, shift, scale)
    return Smoothed(value - activation.offset, slope, np.maximum(square - value**2, 0.0))


def centred_moments(activation: Activation, scale: Array) -> Smoothed:
    """`smoothed` at shift 0, of scales (S,): untrained neurons. The last ones are kept."""
    return _kept_moments(activation, np.asarray(scale, float).tobytes())


@lru_cache(maxsize=64)
def _kept_moments(activation: Activation, scales: bytes) -> Smoothed:
    scale = np.frombuffer(scales)
    table = smoothed(activation, np.zeros((len(scale), 1)), scale[:, None])
    return Smoothed(*(moment[:, 0] for moment in table))


def slope_moments(activation: Activation, shift: Array, scale: Array) -> SlopeMoments:
    """E σ'(s+bZ), E σ''(s+bZ) = E[σ' Z]/b and Var σ'(s+bZ), b > 0."""
    s, b = np.broadcast_arrays(shift, scale)
    if activation.function is get_activation("identity").function:
        return SlopeMoments(np.ones(s.shape), np.zeros(s.shape), np.zeros(s.shape))
    if activation.function is get_activation("relu").function:
        above = ndtr(s / b)
        density = np.exp(-0.5 * (s / b) ** 2) / (math.sqrt(2 * math.pi) * b)
        return SlopeMoments(above, density, above * (1.0 - above))
    if activation.function is get_activation("elu").function:  # σ'' = eˣ below 0, else 0
        above, (once, twice) = ndtr(s / b), exponential_tails(s, b)
        value = above + once
        return SlopeMoments(value, once, np.maximum(above + twice - value**2, 0.0))
    if activation.breakpoints:

        def weights(z: Array) -> Array:
            return np.stack([np.ones_like(z), z])

        both = gaussian_mean(activation.derivative, s, b, activation.breakpoints, weights)
        square = gaussian_mean(
            lambda x: activation.derivative(x) ** 2, s, b, activation.breakpoints
        )
        return SlopeMoments(both[0], both[1] / b, np.maximum(square - both[0] ** 2, 0.0))
    value, curvature, square = three_moments(activation.derivative, s, b)
    return SlopeMoments(value, curvature, np.maximum(square - value**2, 0.0))
