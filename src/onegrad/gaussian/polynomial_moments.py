"""Gaussian moments of a polynomial at s + bZ, in closed form."""

from __future__ import annotations

import math

import numpy as np

from onegrad.compute.backend import Array

_CACHED = 1 << 14  # numbers worked on at once


def polynomial_moments(powers: Array, s: Array, scales: Array) -> Array:
    """E p, E[p Z]/b and E p² stacked, p(x) = Σ_m powers[m]·x^m at x = s + bZ.

    s : (T, S); scales : (T,) b, one for each row

        D_j = E p^(j)(s + bZ) = Σ_m s^m Σ_i (m+j+2i)!/(m! i!) (b²/2)^i powers[m+j+2i]
        E p = D_0,  E[p Z]/b = D_1,  E p² = Σ_j b^{2j}/j! D_j²

    about d²/2 operations an element for degree d, and no term of E p² is negative.
    """
    found = np.empty((3, *s.shape))
    rows = max(1, _CACHED // max(1, s.shape[1]))
    for start in range(0, len(s), rows):
        part = slice(start, start + rows)
        _fill(found[:, part], powers, s[part], scales[part, None])
    return found


def _fill(found: Array, powers: Array, s: Array, b: Array) -> None:
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
    """Of s^m in D_j, for every row."""
    found = np.zeros_like(b)
    for i in range((len(powers) - 1 - m - j) // 2 + 1):
        p = m + j + 2 * i
        number = math.factorial(p) / (math.factorial(m) * math.factorial(i))
        found += number * powers[p] * (0.5 * b**2) ** i
    return found
