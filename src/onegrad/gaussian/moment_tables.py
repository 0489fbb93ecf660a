"""E f, E[f Z]/b and E f² of a smooth function at s + bZ, for whole tables of (s, b), to 1e-7.

Tables are kept for the life of the process. Scales fall into fixed bands and shifts on fixed
lattices, so that a number does not depend on what was asked before. Within a band: Chebyshev
nodes in log b, and cubic Hermite interpolation in the shift, from moments and their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.polynomials import (
    HORNER,
    chebyshev_basis,
    chebyshev_nodes,
    chebyshev_transform,
    hermite_to_power,
)
from onegrad.gaussian.quadrature import gauss_hermite

Function = Callable[[Array], Array]

_REACH = 6.5  # E[Z²; |Z| > 6.5] < 4e-9: what lies beyond does not count at 1e-8
_TOLERANCE = 1e-8
_INTERPOLATION = 1e-7
_CHUNK = 1 << 20  # function values held at once: they should stay in the cache
_CACHED = 1 << 17  # numbers held at once while a table is read
_POLYNOMIAL_CACHED = 1 << 14  # numbers of one piece of a polynomial's moments
_FEW_ROWS = 64  # rows from which equal scales share their interpolation weights
_SPACING = 0.05  # first spacing of the shifts, in units of √(1 + b²)
_EXTENT = 12.0  # shifts of the smallest table, in the same units; others double it
_DOUBLINGS = 4  # wider shifts than _EXTENT·2⁴ are integrated one by one
_STRAIGHT = 1e-9  # deviation from its asymptote at which a function counts as straight
_LOWEST_BAND = -3  # lowest octave of scales with a table; below, integrals are computed one by one
_SAMPLE = 96  # elements on which a resolution is tested
_LARGE_PRODUCT = (
    1_000_000  # entries of a table of windows beyond which Fourier transforms are faster
)
_MOST_VALUES = 1 << 30  # most values of an integrated function: about 10 s
_MOST_LATTICE = 1 << 23  # most values of a function on the lattice of a table: arrays of 200 MB
_CALIBRATION = 4.0  # largest scale tested: wider Gaussians need no finer lattice


def three_moments(function: Function, shift: Array, scale: Array) -> Array:
    """E f, E[f Z]/b, E f² stacked, f smooth, to 1e-7 of their size.

    Polynomials are integrated exactly. Rows that share a scale are interpolated, about 50
    operations an element after the 10 to 50 ms of a new table; anything else is integrated by the
    trapezoidal rule.
    """
    s, b = np.broadcast_arrays(shift, scale)
    degree, shared = getattr(function, "degree", None), _rows_share(s, b)
    coefficients = getattr(function, "coefficients", None)
    if coefficients is not None and shared and len(coefficients) <= HORNER:
        powers = np.array(coefficients) @ hermite_to_power(len(coefficients) - 1)
        return _polynomial_moments(powers, s, b[:, 0])
    if degree is not None:  # a polynomial
        return _moments_of_rule(function, s, b, *gauss_hermite(degree + 1))
    if not shared:
        return integrated(function, s, b)
    bands = _band_of(b[:, 0])
    if bands.min() == bands.max():
        return _in_band(function, s, b[:, 0], int(bands[0]))
    result = np.empty((3, *s.shape))
    for band in np.unique(bands):
        rows = np.flatnonzero(bands == band)
        result[:, rows] = _in_band(function, s[rows], b[rows, 0], int(band))
    return result


def _rows_share(s: Array, b: Array) -> bool:
    """Whether every row has one scale."""
    return s.ndim == 2 and s.size > 0 and not np.any(b[:, 0] != b[:, -1])


def _band_of(scales: Array) -> np.ndarray:
    """Band j holds scales from 2^{j−1/2} to 2^{j+1/2}, so that untrained neurons share one."""
    return np.floor(np.log2(scales) + 0.5).astype(int)


def _in_band(function: Function, s: Array, scales: Array, band: int) -> Array:
    b, far = scales[:, None], np.zeros(s.shape, bool)
    lines = _asymptotes(function)
    if lines is not None:
        far = np.abs(s) > lines.start + _REACH * b
    near = np.where(far, 0.0, s)
    needed = float(np.abs(near).max()) / (_EXTENT * math.sqrt(1.0 + 4.0**band))
    doublings = math.ceil(math.log2(max(1.0, needed)))
    table = None
    if band >= _LOWEST_BAND and doublings <= _DOUBLINGS:
        table = _table(function, band, doublings)
    if table is None:
        result = integrated(function, near, np.broadcast_to(b, s.shape))
    else:
        result = table.at(near, scales)
    if lines is not None and np.any(far):
        result[:, far] = lines.moments(s[far], np.broadcast_to(b, s.shape)[far])
    return result


@dataclass(frozen=True)
class _Asymptotes:
    """A function that is c + d·x below −start and, with others, above start."""

    start: float
    values: Array  # (2,) c
    slopes: Array  # (2,) d

    def moments(self, s: Array, b: Array) -> Array:
        """The three moments where all of s + bZ is on one side."""
        side = (s > 0).astype(int)
        slope = self.slopes[side]
        value = self.values[side] + slope * s
        return np.stack([value, slope, value**2 + (slope * b) ** 2])


@lru_cache(maxsize=64)
def _asymptotes(function: Function) -> _Asymptotes | None:
    """Sigmoids, rectifiers and their derivatives have them, waves do not."""
    for start in (4.0, 8.0, 16.0, 32.0):
        x = start * np.geomspace(1.0, 64.0, 256)
        lines = []
        with np.errstate(all="ignore"):
            for side in (-x, x):
                f = np.asarray(function(side), float)
                slope = (f[-1] - f[-2]) / (side[-1] - side[-2])
                value = f[-1] - slope * side[-1]
                straight = np.abs(f - value - slope * side) <= _STRAIGHT * (1.0 + np.abs(f))
                if np.all(straight):
                    lines.append((value, slope))
        if len(lines) == 2:
            values, slopes = np.array(lines).T
            return _Asymptotes(start, values, slopes)
    return None


@dataclass(frozen=True)
class _Table:
    """Moments, their steps to the next shift and their derivatives, at the nodes of one band."""

    band: int
    start: float  # first shift
    width: float  # distance of the shifts
    values: Array  # (3, 3, scales, shifts)

    def at(self, s: Array, scales: Array) -> Array:
        """The three moments of a table whose row i has the scale b_i, stacked; some rows at a time,
        which stay in the cache."""
        count, columns = s.shape
        reach = max(1.0, float(np.ptp(s)) / self.width)
        rows = max(1, int(_CACHED / max(9 * reach, 8 * columns)))
        if rows >= count:
            return self._at(s, scales)
        result = np.empty((3, *s.shape))
        for some in (slice(a, a + rows) for a in range(0, count, rows)):
            result[:, some] = self._at(s[some], scales[some])
        return result

    def _at(self, s: Array, scales: Array) -> Array:
        position = (s - self.start) / self.width
        index = np.minimum(position.astype(np.intp), self.values.shape[-1] - 2)
        t = position - index
        low, high = int(index.min()), int(index.max()) + 2
        different, row = scales, np.arange(len(scales))
        if len(scales) > _FEW_ROWS:
            different, row = np.unique(scales, return_inverse=True)
        count = self.values.shape[2]  # Chebyshev nodes, in log b
        basis = chebyshev_basis(count, 2.0 * (np.log2(different) - self.band))
        mix = basis @ chebyshev_transform(count)
        used = np.matmul(mix, self.values[..., low:high])  # (3, 3, rows, shifts)
        index += (row * (high - low) - low)[:, None]
        right_value = t * t * (3.0 - 2.0 * t)
        left_slope = t * (1.0 - t) ** 2 * self.width
        right_slope = t * t * (t - 1.0) * self.width
        result = np.empty((3, *s.shape))
        for moment in range(3):
            value, step, slope = (part[moment].ravel() for part in used)
            out = value.take(index)
            out += right_value * step.take(index)
            out += left_slope * slope.take(index)
            out += right_slope * slope[1:].take(index)
            result[moment] = out
        return result


@lru_cache(maxsize=128)
def _table(function: Function, band: int, doublings: int) -> _Table | None:
    """A table that reproduces the integrals on a sample to 1e-7, or None if there is none."""
    unit = math.sqrt(1.0 + 4.0**band)
    generator = np.random.default_rng(0)
    # the sample has exact scales of its own, and shifts where the function bends and elsewhere
    scales = 2.0 ** (band + generator.uniform(-0.5, 0.5, size=_SAMPLE))
    wide = generator.choice([3.0, _EXTENT * 2.0**doublings], size=_SAMPLE)
    s = generator.uniform(-unit, unit, size=_SAMPLE) * wide
    exact = integrated(function, s, scales)
    for level in range(3):
        width, count = _SPACING * unit * 0.5**level, 8 + 3 * level
        half = math.ceil(_EXTENT * 2.0**doublings * unit / width) + 1
        grid = width * np.arange(-half, half + 1, dtype=float)
        nodes = 2.0 ** (band + 0.5 * chebyshev_nodes(count))
        found = _with_derivatives(function, grid, nodes)
        if found is None:
            return None
        value, slope = found
        step = np.diff(value, append=value[..., -1:])
        table = _Table(band, float(grid[0]), width, np.stack([value, step, slope]))
        if _close(table.at(s[:, None], scales)[:, :, 0], exact, _INTERPOLATION):
            return table
    return None


def _with_derivatives(function: Function, grid: Array, scales: Array) -> Array | None:
    """(2, 3, scales, grid): E f, E[f Z]/b, E f² and their derivatives in the shift (Stein); None
    where that would take too much memory.

    A trapezoidal rule whose nodes fall on one lattice for all shifts: f is evaluated once per
    lattice point and the moments are sliding sums.
    """
    s, b = np.broadcast_arrays(grid, scales[:, None])
    per_scale, width = _resolution(function, s.ravel(), b.ravel()), float(grid[1] - grid[0])
    result = np.empty((2, 3, *s.shape))
    for i, scale in enumerate(scales):
        stride = math.ceil(width * per_scale / min(1.0, float(scale)))
        reach = math.ceil(_REACH * scale * stride / width)
        if len(grid) * stride + 2 * reach > _MOST_LATTICE:
            return None
        z = np.arange(-reach, reach + 1) * (width / (stride * scale))
        weight = np.exp(-0.5 * z**2)
        weight /= weight.sum()
        linear = weight * z / scale
        lattice = np.arange(-reach, (len(grid) - 1) * stride + reach + 1) * (width / stride)
        values = function(grid[0] + lattice)
        kernels = np.stack([weight, linear, weight * (z**2 - 1) / scale**2], axis=1)
        plain = _sliding_sums(values, kernels, stride)
        squares = _sliding_sums(values**2, kernels[:, :2], stride)
        result[0, :, i] = plain[:, 0], plain[:, 1], squares[:, 0]
        result[1, :, i] = plain[:, 1], plain[:, 2], squares[:, 1]
    return result


def _sliding_sums(values: Array, kernels: Array, stride: int) -> Array:
    """Σ_j values[i·stride + j]·kernels[j] for every i: as one product, or by a Fourier transform
    where that would be large."""
    length, count = len(kernels), len(values) - len(kernels) + 1
    if count // stride * length <= _LARGE_PRODUCT:
        # a copy, because products with overlapping views do not reach the BLAS
        return np.asarray(sliding_window_view(values, length)[::stride].copy() @ kernels)
    size = 1 << (len(values) - 1).bit_length()
    spectrum = np.conj(np.fft.rfft(kernels, size, axis=0))
    sums = np.fft.irfft(np.fft.rfft(values, size)[:, None] * spectrum, size, axis=0)
    return np.asarray(sums[:count:stride])


def integrated(function: Function, s: Array, b: Array) -> Array:
    """The three moments of every element by the trapezoidal rule, stacked."""
    shape, s, b = s.shape, s.ravel(), b.ravel()
    result = np.empty((3, s.size))
    # Elements of like scale share a resolution, which grows with the scale.
    order = np.argsort(b, kind="stable")
    per_scale = _resolution(function, s, b)
    if 2 * _REACH * per_scale * float(np.maximum(b, 1.0).sum()) > _MOST_VALUES:
        raise ConvergenceError(
            f"Gaussian integrals of the activation at scales up to {float(b.max()):.3g} would take "
            "minutes. Use a smaller step (training.rate), data.spread or labels.noise"
        )
    start = 0
    while start < s.size:
        resolution = per_scale * max(1.0, float(b[order[start]]))
        stop = start + max(1, int(_CHUNK / (2 * _REACH * resolution)))
        part = order[start:stop]
        resolution = per_scale * max(1.0, float(b[part].max()))
        result[:, part] = _apply(function, s[part], b[part], resolution)
        start = stop
    return result.reshape((3, *shape))


def _resolution(function: Function, s: Array, b: Array) -> float:
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
        "breakpoints or jumps, name them: Activation(..., breakpoints=(0.0,))."
    )


def _close(moments: Array, exact: Array, tolerance: float) -> bool:
    """Whether every moment differs by less than the tolerance of its own size."""
    return bool(np.all(np.abs(moments - exact) <= tolerance * (1.0 + np.abs(exact))))


def _apply(function: Function, s: Array, b: Array, resolution: float) -> Array:
    z = _trapezoid(resolution)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    return _moments_of_rule(function, s, b, z, weight)


def _moments_of_rule(function: Function, s: Array, b: Array, z: Array, weight: Array) -> Array:
    values = function(s[..., None] + b[..., None] * z)
    first = values @ np.stack([weight, weight * z], axis=1)
    values *= values
    return np.stack([first[..., 0], first[..., 1] / b, values @ weight])


def _trapezoid(resolution: float) -> Array:
    return np.linspace(-_REACH, _REACH, int(np.ceil(2 * _REACH * resolution)) + 1)


def _polynomial_moments(powers: Array, s: Array, scales: Array) -> Array:
    """E p, E[p Z]/b and E p² stacked, p(x) = Σ_m powers[m]·x^m at x = s + bZ.

    s : (T, S); scales : (T,) b, one for each row

        D_j = E p^(j)(s + bZ) = Σ_m s^m Σ_i (m+j+2i)!/(m! i!) (b²/2)^i powers[m+j+2i]
        E p = D_0,  E[p Z]/b = D_1,  E p² = Σ_j b^{2j}/j! D_j²

    about d²/2 operations an element for degree d, and no term of E p² is negative.
    """
    found = np.empty((3, *s.shape))
    rows = max(1, _POLYNOMIAL_CACHED // max(1, s.shape[1]))
    for start in range(0, len(s), rows):
        part = slice(start, start + rows)
        _fill_moments(found[:, part], powers, s[part], scales[part, None])
    return found


def _fill_moments(found: Array, powers: Array, s: Array, b: Array) -> None:
    degree = len(powers) - 1
    found[1] = 0.0
    square = found[2]
    for j in range(degree + 1):
        total = np.broadcast_to(_coefficient(powers, degree - j, j, b), s.shape).copy()
        for m in range(degree - j - 1, -1, -1):
            total *= s
            total += _coefficient(powers, m, j, b)
        if j < 2:
            found[j] = total
        total *= total
        if j == 0:
            square[...] = total
        else:
            total *= b ** (2 * j) / math.factorial(j)
            square += total


def _coefficient(powers: Array, m: int, j: int, b: Array) -> Array:
    """The coefficient of s^m in D_j, for every row."""
    found = np.zeros_like(b)
    for i in range((len(powers) - 1 - m - j) // 2 + 1):
        p = m + j + 2 * i
        number = math.factorial(p) / (math.factorial(m) * math.factorial(i))
        found += number * powers[p] * (0.5 * b**2) ** i
    return found
