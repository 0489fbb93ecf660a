"""Probabilists' Hermite polynomials H_j and Gaussian integrals of one variable.

Every integral here is against the standard Gaussian, ∫ f(z) φ(z) dz = E f(Z); nothing is
left for the caller to divide by.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, roots_hermitenorm, roots_legendre

from onegrad.backend import CACHED, namespace
from onegrad.errors import ConvergenceError

Array = NDArray[np.float64]

_REACH = 9.0  # φ(9)·9⁴ < 1e-14: what lies beyond does not count for functions of slow growth
_PANEL_ORDER = 16
_TOLERANCE = 2e-12
_HORNER = 7  # coefficients up to which powers of x lose no digits that count
_CHUNK = 1 << 22  # function values held at once while smoothing


@lru_cache(maxsize=64)
def gauss_hermite(order: int) -> tuple[Array, Array]:
    """Nodes and weights with Σ w f(x) = E f(Z) for polynomials f of degree < 2·order.

    Wrong at kinks by O(1/order): use :func:`gaussian_mean` with the kinks named there.
    """
    nodes, weights = roots_hermitenorm(order)
    return _read_only(nodes), _read_only(weights / weights.sum())


@lru_cache(maxsize=64)
def _panels(count: int) -> tuple[Array, Array]:
    """Composite Gauss–Legendre rule on [0, 1] with `count` panels."""
    x, w = roots_legendre(_PANEL_ORDER)
    starts = np.arange(count)[:, None]
    nodes = (starts + (x + 1) / 2) / count
    return _read_only(nodes.ravel()), _read_only(np.tile(w / (2 * count), count))


def _read_only(array: Array) -> Array:
    array.setflags(write=False)
    return array


def orthonormal_hermite(order: int, x: ArrayLike) -> Array:
    """H_j(x)/√(j!) for j = 0…order, stacked along a new first axis (three-term recurrence)."""
    x = np.asarray(x, dtype=float)
    rows = np.empty((order + 1, *x.shape))
    rows[0] = 1.0
    if order > 0:
        rows[1] = x
    for j in range(1, order):
        rows[j + 1] = (x * rows[j] - np.sqrt(j) * rows[j - 1]) / np.sqrt(j + 1)
    return rows


def sqrt_factorial(order: int) -> Array:
    """√(j!) for j = 0…order."""
    return np.exp(0.5 * gammaln(np.arange(order + 1) + 1.0))


def hermite_series(coefficients: ArrayLike, x: Any, out: Any = None, scale: float = 1.0) -> Any:
    """Σ_j coefficients[j]·H_j(x/scale), by Horner's rule up to degree 6 and by Clenshaw's
    recurrence beyond, where powers would cancel; `out` may be x itself.

    Worked on in pieces that stay in the cache: 2 to 4 operations per degree and element, no large
    temporary array.

    >>> float(hermite_series([1.0, 0.0, 2.0], 3.0))   # 1 + 2·(9 − 1)
    17.0
    """
    table = np.atleast_1d(np.asarray(coefficients, dtype=float))
    evaluate: Callable[[list[float], Any], Any] = _clenshaw
    if len(table) <= _HORNER:
        evaluate = _horner
        table = table @ hermite_to_power(len(table) - 1) / scale ** np.arange(len(table))
    elif scale != 1.0:
        x = x / scale
    weights: list[float] = table.tolist()  # Python's numbers leave the precision of x as it is
    if namespace(x) is not np:
        if out is None:
            return evaluate(weights, x)
        out[...] = evaluate(weights, x)
        return out
    values = np.asarray(x)
    if values.dtype.kind != "f":
        values = values.astype(float)
    if out is None:
        out = np.empty_like(values)
    if not (values.flags.c_contiguous and out.flags.c_contiguous):
        out[...] = evaluate(weights, values)
        return out
    flat, result = values.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, CACHED):
        part = slice(start, start + CACHED)
        result[part] = evaluate(weights, flat[part])
    return out


def _horner(powers: list[float], x: Any) -> Any:
    """Σ_p powers[p]·x^p."""
    if len(powers) == 1:
        return namespace(x).full_like(x, powers[0])
    total = x * powers[-1]
    total += powers[-2]
    for power in powers[-3::-1]:
        total *= x
        total += power
    return total


def _clenshaw(weights: list[float], x: Any) -> Any:
    """b_j = c_j + x·b_{j+1} − (j+1)·b_{j+2}; the sum is b_0."""
    xp = namespace(x)
    last, before = xp.full_like(x, weights[-1]), xp.zeros_like(x)
    for j in range(len(weights) - 2, -1, -1):
        before *= -(j + 1)
        before += weights[j]
        before += x * last
        last, before = before, last
    return last


def hermite_to_power(order: int) -> Array:
    """The table of H_j(x) = Σ_p table[j, p]·x^p, j, p = 0…order."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for j in range(order):
        table[j + 1, 1:] = table[j, :-1]
        if j:
            table[j + 1] -= j * table[j - 1]
    return table


def power_to_hermite(order: int) -> Array:
    """ξ with x^p = Σ_i ξ[p, i]·H_i(x), p, i = 0…order (ξ[p, i] = p!/(2^t t! i!), p − i = 2t)."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for p in range(order):
        # x·H_i = H_{i+1} + i·H_{i−1}
        table[p + 1, 1:] += table[p, :-1]
        table[p + 1, :-1] += np.arange(1, order + 1) * table[p, 1:]
    return table


def gaussian_mean(
    function: Callable[[Array], Array],
    shift: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    kinks: tuple[float, ...] = (),
    weights: Callable[[Array], Array] | None = None,
    reach: float = _REACH,
) -> Array:
    """E[function(shift + scale·Z)·weights(Z)], vectorised over (shift, scale).

    Without kinks: the trapezoidal rule, which converges geometrically for functions analytic
    in a strip around the real line. With kinks: Gauss–Legendre panels between them, so that no
    panel contains one. Either way the rule is refined until two resolutions agree to 2e-12
    of the size of the result; a function that is rougher than declared raises.

    `weights(z)` may have leading axes (one per Hermite degree, say); they come first in the
    result. Cost: O(size of shift × nodes), memory bounded by a fixed chunk.
    """
    s, b = np.broadcast_arrays(np.asarray(shift, float), np.asarray(scale, float))
    shape = s.shape
    s, b = s.ravel(), b.ravel()
    if s.size == 0:
        return np.empty(shape)
    extra = weights(np.zeros(1)).shape[:-1] if weights is not None else ()
    result = np.empty((*extra, s.size))
    # Elements of like scale share a resolution; sorting keeps each group's refinement honest.
    order = np.argsort(b, kind="stable")
    largest = 2048
    for start in range(0, s.size, largest):
        part = order[start : start + largest]
        result[..., part] = _refine(function, s[part], b[part], kinks, weights, reach)
    return result.reshape((*extra, *shape))


def _refine(
    function: Callable[[Array], Array],
    s: Array,
    b: Array,
    kinks: tuple[float, ...],
    weights: Callable[[Array], Array] | None,
    reach: float,
) -> Array:
    rule = _split_rule if kinks else _trapezoid
    resolution = 1.5 * (1.0 + float(np.max(np.abs(b))))
    previous = _apply(rule, function, s, b, kinks, weights, reach, resolution)
    for _ in range(9):
        resolution *= 2.0
        current = _apply(rule, function, s, b, kinks, weights, reach, resolution)
        size = 1.0 + np.abs(current).max()
        if np.abs(current - previous).max() <= _TOLERANCE * size:
            return current
        previous = current
    raise ConvergenceError(
        "a Gaussian integral of the activation did not settle to 1e-11. If the function has "
        "kinks or jumps, name them: Activation(..., kinks=(0.0,)); if it oscillates or grows "
        f"faster than a polynomial at scale {float(b.max()):.3g}, use a smaller scale."
    )


Rule = Callable[[Array, Array, tuple[float, ...], float, float], tuple[Array, Array]]


def _trapezoid(
    s: Array, b: Array, kinks: tuple[float, ...], reach: float, resolution: float
) -> tuple[Array, Array]:
    count = int(np.ceil(2 * reach * resolution))
    z = np.linspace(-reach, reach, count + 1)
    step = z[1] - z[0]
    w = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return z[None, :], w[None, :]


def _split_rule(
    s: Array, b: Array, kinks: tuple[float, ...], reach: float, resolution: float
) -> tuple[Array, Array]:
    """Panels on each side of every kink; positions differ from element to element."""
    unit, unit_weights = _panels(max(2, int(np.ceil(resolution))))
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = [np.where(b == 0, 0.0, (kink - s) / b) for kink in sorted(kinks)]
    edges = [np.full_like(s, -reach), *(np.clip(e, -reach, reach) for e in inner)]
    edges.append(np.full_like(s, reach))
    if np.any(b < 0):
        edges = list(np.sort(np.stack(edges), axis=0))
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        z = low[:, None] + (high - low)[:, None] * unit
        nodes.append(z)
        weights.append(
            (high - low)[:, None] * unit_weights * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        )
    return np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)


def _apply(
    rule: Rule,
    function: Callable[[Array], Array],
    s: Array,
    b: Array,
    kinks: tuple[float, ...],
    weights: Callable[[Array], Array] | None,
    reach: float,
    resolution: float,
) -> Array:
    parts = []
    nodes_each = (1 + len(kinks)) * _PANEL_ORDER * resolution + 2 * reach * resolution
    step = max(1, int(_CHUNK / nodes_each / (1 if weights is None or not kinks else 8)))
    for start in range(0, s.size, step):
        piece = slice(start, start + step)
        z, w = rule(s[piece], b[piece], kinks, reach, resolution)
        values = function(s[piece, None] + b[piece, None] * z) * w
        if weights is None:
            parts.append(values.sum(axis=-1))
        else:
            factors = weights(z)
            if factors.shape[-2] == 1:  # the nodes are common to all elements: one product
                parts.append(np.moveaxis(values @ np.moveaxis(factors[..., 0, :], -1, 0), 0, -1))
            else:
                parts.append((factors * values).sum(axis=-1))
    return np.concatenate(parts, axis=-1)
