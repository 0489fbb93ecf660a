"""Gaussian moments of an activation and of its slope for whole tables of neurons × nodes.

`Activation.smoothed` is exact to 1e-10 and pays for it. Here one evaluation of the function
serves three moments, large tables are interpolated in shift and scale, and the resolution is
chosen once per table and checked on part of it, to 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from onegrad.activation import Activation, Smoothed, get_activation
from onegrad.errors import ConvergenceError
from onegrad.hermite import Array, gaussian_mean

_REACH = 6.5  # E[Z²; |Z| > 6.5] < 4e-9: what lies beyond does not count at 1e-8
_TOLERANCE = 1e-8
_CHUNK = 1 << 20  # function values held at once: they should stay in the cache
_LARGE = 4000  # tables with more elements are interpolated where that pays
_BAND = 3.0  # ratio of the scales that share a grid
_SPACING = 0.05  # first spacing of the shifts, in units of √(1 + b²)
_INTERPOLATION = 1e-7
_COSTLY = ("erf",)  # closed forms that cost more than a table (Owen's T)
_SAMPLE = 96  # elements on which a resolution is tried
_CALIBRATION = 4.0  # largest scale at which it is tried: wider Gaussians need no finer lattice


class SlopeMoments(NamedTuple):
    """E σ'(s+bZ), E σ''(s+bZ) and Var σ'(s+bZ)."""

    value: Array
    curvature: Array
    variance: Array


def smoothed(activation: Activation, shift: Array, scale: Array) -> Smoothed:
    """E σ(s+bZ), E σ'(s+bZ), Var σ(s+bZ), b > 0; the slope by Stein's E[σ Z]/b."""
    cheap = activation.moments is not None and activation.name not in _COSTLY
    if cheap or activation.kinks:
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
    """E f, E[f Z]/b, E f² of a smooth f, to 1e-7 of their size.

    Large tables whose rows share a scale are interpolated; the rest by the trapezoidal rule.
    """
    s, b = np.broadcast_arrays(shift, scale)
    if s.ndim == 2 and s.size >= _LARGE and np.all(b[:, 0] == b[:, -1]):
        value, slope, square = _interpolated(function, s, b[:, 0])
    else:
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


def _interpolated(function: Callable[[Array], Array], s: Array, scales: Array) -> Array:
    """The three moments of a table whose row i has scale b_i, stacked.

    Rows of like scale share a grid: Chebyshev nodes in log b (or the scales themselves, if they
    are few), and cubic Hermite interpolation in the shift from moments and their derivatives,
    refined until it reproduces the trapezoidal rule on a sample.
    """
    result = np.empty((3, *s.shape))
    order = np.argsort(scales, kind="stable")
    start = 0
    while start < len(order):
        stop = int(np.searchsorted(scales[order], _BAND * scales[order[start]], side="right"))
        rows = order[start:stop]
        result[:, rows] = _band(function, s[rows], scales[rows])
        start = stop
    return result


def _band(function: Callable[[Array], Array], s: Array, scales: Array) -> Array:
    generator = np.random.default_rng(0)
    i, j = (generator.integers(size, size=_SAMPLE) for size in s.shape)
    exact = _flat(function, s[i, j], scales[i])
    low, high = float(s.min()), float(s.max())
    first = 6 + math.ceil(6 * math.log(float(scales.max() / scales.min())))
    for level in range(4):
        width = _SPACING * math.sqrt(1.0 + float(scales.min()) ** 2) * 0.5**level
        nodes, mix = _scale_nodes(scales, first + 4 * level)
        size = 2 + math.ceil((high - low) / width)
        if size * len(nodes) > s.size:
            break
        grid = np.linspace(low, low + (size - 1) * width, size)
        tables = _with_derivatives(function, grid, nodes)
        sample = _hermite(tables, mix[i], (s[i, j, None] - low) / width, width)[:, :, 0]
        if _close(sample, exact, _INTERPOLATION):
            return _hermite(tables, mix, (s - low) / width, width)
    return _flat(function, s, np.broadcast_to(scales[:, None], s.shape))


def _scale_nodes(scales: Array, count: int) -> tuple[Array, Array]:
    """Scales at which to tabulate, and the matrix (rows, nodes) that interpolates to each row's."""
    different, which = np.unique(scales, return_inverse=True)
    if len(different) <= count:
        return different, np.eye(len(different))[which]
    x = np.log(scales)
    middle, half = 0.5 * (x.min() + x.max()), 0.5 * float(np.ptp(x))
    angles = np.pi * (np.arange(count) + 0.5) / count
    degrees = np.arange(count)
    transform = 2 / count * np.cos(np.outer(degrees, angles))
    transform[0] /= 2
    at = np.arccos(np.clip((x - middle) / half, -1, 1))
    return np.exp(middle + half * np.cos(angles)), np.cos(np.outer(at, degrees)) @ transform


def _with_derivatives(function: Callable[[Array], Array], grid: Array, scales: Array) -> Array:
    """(2, 3, scales, grid): E f, E[f Z]/b, E f² and their derivatives in the shift (Stein).

    A trapezoidal rule whose nodes fall on one lattice for all shifts: f is evaluated once per
    lattice point and the moments are sliding sums.
    """
    s, b = np.broadcast_arrays(grid, scales[:, None])
    per_scale, width = _resolution(function, s.ravel(), b.ravel()), float(grid[1] - grid[0])
    result = np.empty((2, 3, *s.shape))
    for i, scale in enumerate(scales):
        stride = math.ceil(width * per_scale / min(1.0, float(scale)))
        reach = math.ceil(_REACH * scale * stride / width)
        z = np.arange(-reach, reach + 1) * (width / (stride * scale))
        weight = np.exp(-0.5 * z**2)
        weight /= weight.sum()
        linear = weight * z / scale
        lattice = np.arange(-reach, (len(grid) - 1) * stride + reach + 1) * (width / stride)
        values = function(grid[0] + lattice)
        kernels = np.stack([weight, linear, weight * (z**2 - 1) / scale**2], axis=1)
        # copies, because products with overlapping views do not reach the BLAS
        plain = sliding_window_view(values, len(z))[::stride].copy() @ kernels
        squares = sliding_window_view(values**2, len(z))[::stride].copy() @ kernels[:, :2]
        result[0, :, i] = plain[:, 0], plain[:, 1], squares[:, 0]
        result[1, :, i] = plain[:, 1], plain[:, 2], squares[:, 1]
    return result


def _hermite(tables: Array, mix: Array, position: Array, width: float) -> Array:
    """Cubic Hermite interpolation at `position` (rows, columns) in units of the grid's width."""
    size = tables.shape[-1]
    index = np.minimum(position.astype(np.intp), size - 2)
    t = position - index
    index += (np.arange(len(position)) * size)[:, None]
    right_value = t * t * (3.0 - 2.0 * t)
    left_slope = t * (1.0 - t) ** 2 * width
    right_slope = t * t * (t - 1.0) * width
    result = np.empty((3, *position.shape))
    for moment in range(3):
        value = (mix @ tables[0, moment]).ravel()
        slope = (mix @ tables[1, moment]).ravel()
        out = value.take(index)
        out += right_value * np.diff(value, append=0.0).take(index)
        out += left_slope * slope.take(index)
        out += right_slope * slope[1:].take(index)
        result[moment] = out
    return result


def _resolution(function: Callable[[Array], Array], s: Array, b: Array) -> float:
    """Nodes per unit of z and unit of scale with which doubling them changes nothing."""
    spread = np.linspace(0, s.size - 1, min(_SAMPLE, s.size)).astype(int)
    picked = np.unique([*spread, int(np.argmax(b)), int(np.argmin(np.abs(s)))])
    s, b = s[picked], np.minimum(b[picked], _CALIBRATION)
    largest, resolution = max(1.0, float(b.max())), 1.5
    previous = _apply(function, s, b, resolution * largest)
    for _ in range(10):
        finer = _apply(function, s, b, 1.5 * resolution * largest)
        if _close(previous, finer, _TOLERANCE):
            return resolution
        previous, resolution = finer, 1.5 * resolution
    raise ConvergenceError(
        "a Gaussian integral of the activation did not settle to 1e-8. If the function has "
        "kinks or jumps, name them: Activation(..., kinks=(0.0,))."
    )


def _close(moments: Array, exact: Array, tolerance: float) -> bool:
    """Whether each of the stacked moments differs by less than the tolerance of its own size."""
    gap, size = np.abs(moments - exact).max(axis=1), np.abs(exact).max(axis=1)
    return bool(np.all(gap <= tolerance * (1.0 + size)))


def _apply(function: Callable[[Array], Array], s: Array, b: Array, resolution: float) -> Array:
    z = _trapezoid(resolution)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    values = function(s[:, None] + b[:, None] * z)
    first = values @ np.stack([weight, weight * z], axis=1)
    values *= values
    return np.stack([first[:, 0], first[:, 1] / b, values @ weight])


def _trapezoid(resolution: float) -> Array:
    return np.linspace(-_REACH, _REACH, int(np.ceil(2 * _REACH * resolution)) + 1)
