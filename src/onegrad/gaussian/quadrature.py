"""Gaussian integrals of one variable, E f(Z) and E f(s + bZ), and Gauss rules between breaks.

Every integral here is against the standard Gaussian, ∫ f(z) φ(z) dz = E f(Z); nothing is
left for the caller to divide by.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, roots_hermitenorm, roots_legendre

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError

_FAR = 9.0  # φ(9)·9⁴ < 1e-14: what lies beyond does not count for functions of slow growth
_PANEL_ORDER = 16
_TOLERANCE = 2e-12
_MOST_NODES = 1 << 25  # most nodes of one integral: 0.3 GB; scales up to 300 need fewer
_MOST_VALUES = 1 << 31  # most values of all integrals refined together: about 10 s
_CHUNK = 1 << 22  # function values held at once while smoothing
REACH = 8.5  # standard deviations at which Gauss rules between breaks are cut off
_ENDS = slice(None, -1), slice(1, None)
_FINE = 24  # panels of the discretised piece from which its Gauss rule is made


@lru_cache(maxsize=64)
def gauss_hermite(order: int) -> tuple[Array, Array]:
    """Nodes and weights with Σ w f(x) = E f(Z) for polynomials f of degree < 2·order.

    Wrong at breakpoints by O(1/order): use :func:`gaussian_mean` with the breakpoints named there.
    """
    nodes, weights = roots_hermitenorm(order)
    return _read_only(nodes), _read_only(weights / weights.sum())


@lru_cache(maxsize=1)
def _legendre() -> tuple[Array, Array]:
    x, w = roots_legendre(_PANEL_ORDER)
    return x, w


@lru_cache(maxsize=64)
def _panels(count: int) -> tuple[Array, Array]:
    """Composite Gauss–Legendre rule on [0, 1] with `count` panels."""
    x, w = _legendre()
    starts = np.arange(count)[:, None]
    nodes = (starts + (x + 1) / 2) / count
    return _read_only(nodes.ravel()), _read_only(np.tile(w / (2 * count), count))


def _read_only(array: Array) -> Array:
    array.setflags(write=False)
    return array


def gaussian_mean(
    function: Callable[[Array], Array],
    shift: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    breakpoints: tuple[float, ...] = (),
    weights: Callable[[Array], Array] | None = None,
    reach: float = _FAR,
) -> Array:
    """E[function(shift + scale·Z)·weights(Z)], vectorised over (shift, scale).

    Without breakpoints: the trapezoidal rule, which converges geometrically for functions analytic
    in a strip around the real line. With breakpoints: Gauss–Legendre panels between them, so that
    no panel contains one. Either way the rule is refined until two resolutions agree to 2e-12
    of the size of the result; a function that is rougher than declared raises.

    `weights(z)` may have leading axes (one per Hermite degree, say); they come first in the
    result. Cost: O(size of shift × nodes), memory bounded by a fixed chunk.
    """
    s, b = np.broadcast_arrays(np.asarray(shift, float), np.asarray(scale, float))
    shape = s.shape
    s, b = s.ravel(), b.ravel()
    if s.size == 0:
        return np.empty(shape)
    integral = _Integral(function, breakpoints, weights, reach)
    extra = weights(np.zeros(1)).shape[:-1] if weights is not None else ()
    result = np.empty((*extra, s.size))
    # Elements of like scale share a resolution; sorting keeps each group's refinement honest.
    order = np.argsort(b, kind="stable")
    largest = 2048
    for start in range(0, s.size, largest):
        part = order[start : start + largest]
        result[..., part] = integral.at(s[part], b[part])
    return result.reshape((*extra, *shape))


@dataclass(frozen=True)
class _Integral:
    """E[function(s + bZ)·weights(Z)] for whole arrays of s and b, refined until it settles."""

    function: Callable[[Array], Array]
    breakpoints: tuple[float, ...]
    weights: Callable[[Array], Array] | None
    reach: float

    def at(self, s: Array, b: Array) -> Array:
        resolution = 1.5 * (1.0 + float(np.max(np.abs(b))))
        few = not self._too_many(2 * resolution, s.size)
        previous = self._at(s, b, resolution) if few else np.full(s.shape, math.nan)
        for _ in range(9 if few else 0):
            resolution *= 2.0
            if self._too_many(resolution, s.size):
                break
            current = self._at(s, b, resolution)
            size = 1.0 + np.abs(current).max()
            if np.abs(current - previous).max() <= _TOLERANCE * size:
                return current
            previous = current
        raise ConvergenceError(
            "a Gaussian integral of the activation did not settle to 1e-11. If the function has "
            "breakpoints or jumps, name them: Activation(..., breakpoints=(0.0,)); if it "
            f"oscillates or grows faster than a polynomial at scale {float(b.max()):.3g}, use a "
            "smaller scale."
        )

    def _too_many(self, resolution: float, integrals: int) -> bool:
        nodes = self._nodes(resolution)
        if self.weights is not None:
            nodes *= math.prod(self.weights(np.zeros(1)).shape[:-1])
        return nodes > _MOST_NODES or nodes * integrals > _MOST_VALUES

    def _nodes(self, resolution: float) -> float:
        """About how many one integral has."""
        panels = (1 + len(self.breakpoints)) * _PANEL_ORDER * resolution
        return panels + 2 * self.reach * resolution

    def _at(self, s: Array, b: Array, resolution: float) -> Array:
        parts = []
        weights, split = self.weights, bool(self.breakpoints)
        nodes = self._nodes(resolution)
        step = max(1, int(_CHUNK / nodes / (1 if weights is None or not split else 8)))
        for start in range(0, s.size, step):
            piece = slice(start, start + step)
            if split:
                z, w = _split_rule(s[piece], b[piece], self.breakpoints, self.reach, resolution)
            else:
                z, w = _trapezoid(self.reach, resolution)
            values = self.function(s[piece, None] + b[piece, None] * z) * w
            if weights is None:
                parts.append(values.sum(axis=-1))
                continue
            factors = weights(z)
            if factors.shape[-2] == 1:  # the nodes are common to all elements: one product
                parts.append(np.moveaxis(values @ np.moveaxis(factors[..., 0, :], -1, 0), 0, -1))
            else:
                parts.append((factors * values).sum(axis=-1))
        return np.concatenate(parts, axis=-1)


def _trapezoid(reach: float, resolution: float) -> tuple[Array, Array]:
    count = int(np.ceil(2 * reach * resolution))
    z = np.linspace(-reach, reach, count + 1)
    step = z[1] - z[0]
    w = step * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return z[None, :], w[None, :]


def _split_rule(
    s: Array, b: Array, breakpoints: tuple[float, ...], reach: float, resolution: float
) -> tuple[Array, Array]:
    """Panels on each side of every breakpoint; positions differ from element to element."""
    unit, unit_weights = _panels(max(2, int(np.ceil(resolution))))
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = [np.where(b == 0, 0.0, (breakpoint - s) / b) for breakpoint in sorted(breakpoints)]
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


# --- pieces between breaks ------------------------------------------------------------------


@lru_cache(maxsize=512)
def piecewise_gauss(breaks: tuple[float, ...], order: int) -> tuple[Array, Array]:
    """Gauss rules of `order` nodes for φ(z) restricted to each piece between the breaks.

    Exact for functions that are polynomials of degree < 2·order on every piece: half-range
    rules where there is one break. Pieces of probability below 1e-12 are left out.
    """
    return piecewise_rules([breaks], order)[0]


def piecewise_rules(lines: Sequence[tuple[float, ...]], order: int) -> list[tuple[Array, Array]]:
    """`piecewise_gauss` of several choices of breaks, all pieces made together."""
    edges = [[-REACH, *sorted(b for b in breaks if abs(b) < REACH), REACH] for breaks in lines]
    owner = np.repeat(np.arange(len(lines)), [len(line) - 1 for line in edges])
    low, high = (np.concatenate([line[part] for line in edges]) for part in _ENDS)
    kept = ndtr(high) - ndtr(low) > 1e-12
    owner = owner[kept]
    nodes, weights = _restricted_gauss(low[kept], high[kept], order)
    found = []
    for number in range(len(lines)):
        mine = owner == number
        w = weights[mine].ravel()
        found.append((nodes[mine].ravel(), w / w.sum()))
    return found


def _restricted_gauss(low: Array, high: Array, order: int) -> tuple[Array, Array]:
    """Gauss rules (P, order) of φ on pieces [low, high], by Lanczos on fine discretisations."""
    x, w = _legendre()
    panel = (high - low)[:, None] / _FINE
    starts = low[:, None] + panel * np.arange(_FINE)
    z = (starts[..., None] + panel[..., None] * (x + 1) / 2).reshape(len(low), -1)
    mass = np.tile(w, _FINE) * panel / 2 * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    total = mass.sum(axis=1, keepdims=True)
    vectors = np.zeros((len(low), order, z.shape[1]))
    vectors[:, 0] = np.sqrt(mass / total)
    jacobi = np.zeros((len(low), order, order))
    for j in range(order):
        v = z * vectors[:, j]
        jacobi[:, j, j] = np.einsum("pz,pz->p", v, vectors[:, j])
        known = vectors[:, : j + 1]
        for _ in range(2):  # full reorthogonalisation: the order is small
            v -= (known.mT @ (known @ v[..., None]))[..., 0]
        if j + 1 < order:
            size = np.linalg.norm(v, axis=1)
            jacobi[:, j, j + 1] = jacobi[:, j + 1, j] = size
            vectors[:, j + 1] = v / size[:, None]
    nodes, rotation = np.linalg.eigh(jacobi)
    return nodes, total * rotation[:, 0] ** 2
