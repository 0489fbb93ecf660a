"""Gaussian moments of an activation and of its slope for whole tables of neurons × nodes.

`Activation.smoothed` is exact to 1e-10 and pays for it; here one evaluation of the function
serves three moments, and the resolution is chosen once per table and checked on part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from onegrad.activation import Activation, Smoothed, get_activation
from onegrad.errors import ConvergenceError
from onegrad.hermite import Array, gaussian_mean

_REACH = 6.5  # E[Z²; |Z| > 6.5] < 4e-9: what lies beyond does not count at 1e-8
_TOLERANCE = 1e-8
_CHUNK = 1 << 20  # function values held at once: they should stay in the cache
_WIDE, _LONG_ROW = 3.0, 150  # rows of larger scale and length are interpolated
_SAMPLE = 256  # elements on which a resolution is tried


class SlopeMoments(NamedTuple):
    """E σ'(s+bZ), E σ''(s+bZ) and Var σ'(s+bZ)."""

    value: Array
    curvature: Array
    variance: Array


def smoothed(activation: Activation, shift: Array, scale: Array) -> Smoothed:
    """E σ(s+bZ), E σ'(s+bZ), Var σ(s+bZ), b > 0; the slope by Stein's E[σ Z]/b."""
    if activation.moments is not None or activation.kinks:
        return activation.smoothed(shift, scale)
    value, slope, square = _three_moments(activation.function, shift, scale)
    return Smoothed(value - activation.offset, slope, np.maximum(square - value**2, 0.0))


def slope_moments(activation: Activation, shift: Array, scale: Array) -> SlopeMoments:
    """E σ'(s+bZ), E σ''(s+bZ) = E[σ' Z]/b and Var σ'(s+bZ), b > 0."""
    s, b = np.broadcast_arrays(shift, scale)
    if activation.function is get_activation("relu").function:
        above = ndtr(s / b)
        density = np.exp(-0.5 * (s / b) ** 2) / (math.sqrt(2 * math.pi) * b)
        return SlopeMoments(above, density, above * (1.0 - above))
    if activation.kinks:

        def weights(z: Array) -> Array:
            return np.stack([np.ones_like(z), z])

        both = gaussian_mean(activation.derivative, s, b, activation.kinks, weights)
        square = gaussian_mean(lambda x: activation.derivative(x) ** 2, s, b, activation.kinks)
        return SlopeMoments(both[0], both[1] / b, np.maximum(square - both[0] ** 2, 0.0))
    value, curvature, square = _three_moments(activation.derivative, s, b)
    return SlopeMoments(value, curvature, np.maximum(square - value**2, 0.0))


def _three_moments(
    function: Callable[[Array], Array], shift: Array, scale: Array
) -> tuple[Array, Array, Array]:
    """E f, E[f Z]/b, E f² of a smooth f by the trapezoidal rule, to 1e-8 of their size."""
    s, b = np.broadcast_arrays(shift, scale)
    if s.ndim == 2 and s.shape[1] > _LONG_ROW and np.all(b[:, 0] == b[:, -1]):
        wide = b[:, 0] > _WIDE
        if np.any(wide):
            return _by_rows(function, s, b, wide)
    value, slope, square = _flat(function, s, b)
    return value, slope, square


def _flat(function: Callable[[Array], Array], s: Array, b: Array) -> Array:
    """The three moments of every element by the trapezoidal rule, stacked."""
    shape, s, b = s.shape, s.ravel(), b.ravel()
    result = np.empty((3, s.size))
    # Elements of like scale share a resolution, which grows with the scale.
    order = np.argsort(b, kind="stable")
    per_scale = _resolution(function, s, b)
    start = 0
    while start < s.size:
        resolution = per_scale * max(1.0, float(b[order[start]]))
        stop = start + max(1, int(_CHUNK / (2 * _REACH * resolution)))
        part = order[start:stop]
        resolution = per_scale * max(1.0, float(b[part].max()))
        result[:, part] = _apply(function, s[part], b[part], resolution)
        start = stop
    return result.reshape((3, *shape))


def _by_rows(
    function: Callable[[Array], Array], s: Array, b: Array, wide: np.ndarray
) -> tuple[Array, Array, Array]:
    """As above for a table whose rows share a scale: wide rows by interpolation in the shift.

    Smoothing over b removes frequencies above 6/b, so that a Chebyshev interpolant with
    8 nodes per b over half the range of shifts, and 24 more, is exact to 1e-8.
    """
    result = np.empty((3, *s.shape))
    if not np.all(wide):
        result[:, ~wide] = _flat(function, s[~wide], b[~wide])
    rows = np.flatnonzero(wide)
    low, high = s[rows].min(axis=1), s[rows].max(axis=1)
    counts = (24 + 4 * (high - low) / b[rows, 0]).astype(int)
    few = 2 * counts <= s.shape[1]
    if not np.all(few):
        long = rows[~few]
        result[:, long] = _flat(function, s[long], b[long])
    rows, low, high, counts = rows[few], low[few], high[few], counts[few]
    if len(rows) == 0:
        return result[0], result[1], result[2]
    angles = [np.pi * (np.arange(count) + 0.5) / count for count in counts]
    grids = [
        0.5 * (p + q) + 0.5 * (q - p) * np.cos(angle)
        for p, q, angle in zip(low, high, angles, strict=True)
    ]
    tables = _flat(function, np.concatenate(grids), np.repeat(b[rows, 0], counts))
    ends = np.cumsum(counts)
    for row, x, angle, end in zip(rows, grids, angles, ends, strict=True):
        weights = (-1.0) ** np.arange(len(x)) * np.sin(angle)
        gaps = s[row][:, None] - x
        smallest = 1e-13 * (1 + float(np.ptp(x)))
        gaps[np.abs(gaps) < smallest] = smallest
        kernel = weights / gaps
        values = tables[:, end - len(x) : end]
        result[:, row] = (values @ kernel.T) / kernel.sum(axis=1)
    return result[0], result[1], result[2]


def _resolution(function: Callable[[Array], Array], s: Array, b: Array) -> float:
    """Nodes per unit of z and unit of scale with which doubling them changes nothing."""
    spread = np.linspace(0, s.size - 1, min(_SAMPLE, s.size)).astype(int)
    picked = np.unique([*spread, int(np.argmax(b)), int(np.argmin(np.abs(s)))])
    s, b = s[picked], b[picked]
    largest, resolution = max(1.0, float(b.max())), 1.5
    previous = _apply(function, s, b, resolution * largest)
    for _ in range(10):
        finer = _apply(function, s, b, 1.5 * resolution * largest)
        if np.abs(finer - previous).max() <= _TOLERANCE * (1.0 + np.abs(finer).max()):
            return resolution
        previous, resolution = finer, 1.5 * resolution
    raise ConvergenceError(
        "a Gaussian integral of the activation did not settle to 1e-8. If the function has "
        "kinks or jumps, name them: Activation(..., kinks=(0.0,))."
    )


def _apply(function: Callable[[Array], Array], s: Array, b: Array, resolution: float) -> Array:
    z = np.linspace(-_REACH, _REACH, int(np.ceil(2 * _REACH * resolution)) + 1)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    values = function(s[:, None] + b[:, None] * z)
    first = values @ np.stack([weight, weight * z], axis=1)
    values *= values
    return np.stack([first[:, 0], first[:, 1] / b, values @ weight])
