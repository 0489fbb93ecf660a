"""Node rules for Gaussian averages over a few directions: κ of the data, f₀ of the neurons.

Every rule returns nodes and weights that sum to one, Σ w f(z) ≈ E f(Z), Z ~ N(0, I).
The number of nodes along an axis follows from how non-linear the integrand is there: a
function that depends on √I·Z beside an independent standard Gaussian has Hermite coefficients
of order j that decay like x^{j/2}, x = I/(1+I), and p Gauss nodes leave the orders ≥ 2p.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, roots_legendre

from onegrad.errors import AssumptionError
from onegrad.hermite import Array, gauss_hermite

_REACH = 8.5
_BITS = 40  # of quasi-random points
_FINE = 24  # panels of the discretised half-line from which a Gauss rule is made


@dataclass(frozen=True)
class Effort:
    """How fine the rules are; `Effort.level(0, 1, 2, …)` gets finer by about a factor four.

    tolerance : of the neglected Hermite orders along one axis
    raised : number of most important axes that get at least three nodes, whatever their
        importance, so that two levels never agree just because they are the same rule
    label_nodes : Gauss nodes on each smooth piece of the label
    longest : most nodes along one axis
    most : more tensor nodes than this and quasi-Monte Carlo is used
    points : number of quasi-Monte Carlo points; 0: shorten the longest rules instead
    harmonics : degree up to which directions of a group are resolved
    """

    tolerance: float
    raised: int
    label_nodes: int
    longest: int
    most: int
    points: int
    harmonics: int

    @staticmethod
    def draft() -> Effort:
        """The coarsest resolution, for a first look: errors within 3 %, in milliseconds."""
        return replace(Effort.level(0), most=128, points=0, longest=8)

    @staticmethod
    def level(level: int) -> Effort:
        return Effort(
            tolerance=3e-2 * 4.0**-level,
            raised=level,
            label_nodes=3 + (level + 1) // 2 if level < 2 else 2 + level,
            longest=12 + 6 * level,
            most=600 * 2**level,
            points=512 * 2**level,
            harmonics=2 if level == 0 else 3,
        )


def axis_order(importance: float, effort: Effort) -> int:
    """Gauss–Hermite nodes along an axis of that importance I: smallest p ≥ 2, x^p ≤ tolerance."""
    x = importance / (1.0 + importance)
    if x <= 0:
        return 2
    if x >= 1:  # beyond 1e16, rounded
        return effort.longest
    return int(min(max(2, math.ceil(math.log(effort.tolerance) / math.log(x))), effort.longest))


@lru_cache(maxsize=512)
def piecewise_gauss(breaks: tuple[float, ...], order: int) -> tuple[Array, Array]:
    """Gauss rules of `order` nodes for φ(z) restricted to each piece between the breaks.

    Exact for functions that are polynomials of degree < 2·order on every piece: half-range
    rules where there is one break. Pieces of probability below 1e-12 are left out.
    """
    edges = [-_REACH, *sorted(b for b in breaks if abs(b) < _REACH), _REACH]
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        if ndtr(high) - ndtr(low) > 1e-12:
            x, w = _restricted_gauss(low, high, order)
            nodes.append(x)
            weights.append(w)
    w = np.concatenate(weights)
    return np.concatenate(nodes), w / w.sum()


def _restricted_gauss(low: float, high: float, order: int) -> tuple[Array, Array]:
    """Gauss rule of φ on [low, high], by Lanczos on a fine discretisation of it."""
    x, w = roots_legendre(16)
    starts = low + (high - low) * np.arange(_FINE)[:, None] / _FINE
    z = (starts + (high - low) / _FINE * (x + 1) / 2).ravel()
    mass = np.tile(w, _FINE) * (high - low) / (2 * _FINE)
    mass = mass * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    total = mass.sum()
    vectors = np.zeros((order, z.size))
    vectors[0] = np.sqrt(mass / total)
    diagonal, off = np.zeros(order), np.zeros(order)
    for j in range(order):
        v = z * vectors[j]
        diagonal[j] = v @ vectors[j]
        for _ in range(2):  # full reorthogonalisation: the order is small
            v -= vectors[: j + 1].T @ (vectors[: j + 1] @ v)
        if j + 1 < order:
            off[j + 1] = np.linalg.norm(v)
            vectors[j + 1] = v / off[j + 1]
    jacobi = np.diag(diagonal) + np.diag(off[1:], 1) + np.diag(off[1:], -1)
    nodes, rotation = np.linalg.eigh(jacobi)
    return nodes, total * rotation[0] ** 2


@lru_cache(maxsize=16)
def two_level(count: int) -> tuple[Array, Array]:
    """The points ±1 of a folded Hadamard design: exact for polynomials of degree 3.

    2H points for `count` ≤ H = 2^j axes, where a tensor rule would need 2^count. Right for axes
    along which the integrand is nearly linear.
    """
    if count == 0:
        return np.zeros((1, 0)), np.ones(1)
    size = 1
    hadamard = np.ones((1, 1))
    while size < count:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
        size *= 2
    points = np.concatenate([hadamard[:, :count], -hadamard[:, :count]])
    return points, np.full(len(points), 1.0 / len(points))


@lru_cache(maxsize=16)
def quasi_gaussian(dimension: int, points: int) -> tuple[Array, Array]:
    """Quasi-random points made Gaussian, symmetric and with exact second moments."""
    half = max(points // 2, 2 * dimension)
    count = 1 << max(1, math.ceil(math.log2(half)))
    z = ndtri(np.clip(_halton(dimension, count), 1e-12, 1 - 1e-12))
    z = np.concatenate([z, -z])
    root = np.linalg.cholesky(z.T @ z / len(z))
    z = np.linalg.solve(root, z.T).T
    return z, np.full(len(z), 1.0 / len(z))


def _halton(dimension: int, count: int) -> Array:
    """Points of [0, 1)^dimension: Halton's, the digits of each prime base permuted at random.

    The permutations are always the same ones. As even as scrambled Sobol points in 3 to 40
    dimensions, without the half second it takes to import those.
    """
    generator = np.random.default_rng(20250117)
    points, primes = np.zeros((count, dimension)), _primes(dimension)
    for j, base in enumerate(primes):
        digits, unit = np.arange(count), 1.0
        for _ in range(math.ceil(_BITS / math.log2(base))):
            unit /= base
            points[:, j] += unit * generator.permutation(base)[digits % base]
            digits //= base
    return points


def _primes(count: int) -> list[int]:
    found: list[int] = []
    for candidate in itertools.count(2):
        if len(found) == count:
            break
        if all(candidate % p for p in found):
            found.append(candidate)
    return found


def tensor(rules: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Product of rules; a rule's nodes are (p,) for one axis or (p, axes)."""
    if not rules:
        return np.zeros((1, 0)), np.ones(1)
    nodes, weights = rules[0][0].reshape(len(rules[0][1]), -1), rules[0][1]
    for x, w in rules[1:]:
        x = x.reshape(len(w), -1)
        nodes = np.concatenate(
            [np.repeat(nodes, len(w), axis=0), np.tile(x, (len(nodes), 1))], axis=1
        )
        weights = (weights[:, None] * w).ravel()
    return nodes, weights


class Rule(NamedTuple):
    """A Gauss rule for one Gaussian axis, of `order` nodes on each piece between the breaks."""

    order: int
    breaks: tuple[float, ...] = ()

    @property
    def nodes(self) -> tuple[Array, Array]:
        return (
            piecewise_gauss(self.breaks, self.order) if self.breaks else gauss_hermite(self.order)
        )


def standard_nodes(
    importance: Array, effort: Effort, leading: tuple[Rule, ...] = ()
) -> tuple[Array, Array]:
    """Nodes for Z ~ N(0, I): `leading` rules for the first axes, then one axis per importance.

    Strong axes get Gauss–Hermite rules, all weak ones together a two-level design. Where the
    tensor would have more than `effort.most` nodes, quasi-Monte Carlo over all axes instead
    (the leading rules are kept if there is room for them).
    """
    if np.any(~np.isfinite(importance)) or np.any(importance < -1e-9):
        raise AssumptionError("importances of integration axes must be finite and non-negative.")
    orders = [axis_order(i, effort) for i in importance.tolist()]
    for j in np.argsort(-importance, kind="stable")[: effort.raised]:
        orders[j] = max(3, orders[j])
    led = math.prod(len(rule.nodes[1]) for rule in leading)
    if effort.points == 0:
        orders = _shortened(orders, effort.most // led)
    elif led * _size(orders) > effort.most:
        points = max(effort.points // led, 64)
        return tensor([*(rule.nodes for rule in leading), quasi_gaussian(len(orders), points)])
    return _tensor_nodes(leading, tuple(orders))


@lru_cache(maxsize=64)
def _tensor_nodes(leading: tuple[Rule, ...], orders: tuple[int, ...]) -> tuple[Array, Array]:
    strong = [j for j, p in enumerate(orders) if p > 2]
    weak = [j for j, p in enumerate(orders) if p <= 2]
    rules = [*(rule.nodes for rule in leading), *(gauss_hermite(orders[j]) for j in strong)]
    nodes, weights = tensor([*rules, two_level(len(weak))])
    order = np.concatenate([np.arange(len(leading)), len(leading) + np.argsort(strong + weak)])
    nodes = nodes[:, order.astype(int)]
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def _complement(unit: Array) -> Array:
    """Orthonormal columns orthogonal to a unit vector: a reflection without its first column."""
    normal = unit.copy()
    normal[0] += math.copysign(1.0, unit[0])
    reflection = np.eye(len(unit)) - np.outer(normal, normal) * (2.0 / float(normal @ normal))
    return reflection[:, 1:]


def _size(orders: list[int]) -> int:
    """Nodes of a tensor rule whose axes of order two share a two-level design."""
    weak = sum(p <= 2 for p in orders)
    shared = 2 << max(0, math.ceil(math.log2(weak))) if weak else 1
    return shared * math.prod(p for p in orders if p > 2)


def _shortened(orders: list[int], most: int) -> list[int]:
    """Orders whose tensor has at most that many nodes, the longest rules shortened first."""
    orders = list(orders)
    while max(orders, default=2) > 2 and _size(orders) > most:
        longest = max(orders)
        for j in range(len(orders) - 1, -1, -1):
            if orders[j] == longest:
                orders[j] -= 1
                break
    return orders


def component_nodes(
    mean: Array,
    root: Array,
    spread: Array,
    effort: Effort,
    label: Array | None = None,
    kinks: tuple[float, ...] = (),
    centre: Array | None = None,
    further: Array | None = None,
) -> tuple[Array, Array]:
    """Nodes (S, r) and weights (S,) for κ ~ N(mean, root²), root symmetric.

    spread : (r, r) second moment E[vvᵀ]/b² over neurons: what the features see of κ
    label : (r,) direction ξ along which the label varies, or None; its axis comes first, with
        Gauss rules split where ξ·κ meets one of the `kinks`
    centre : (r,) where the components overlap, for labels that name the component: what is
        learned changes fast there, so the strongest axis is split at it
    further : importances of standard Gaussian axes beside κ, whose coordinates come last
    """
    leading: tuple[Rule, ...] = ()
    along = root @ label if label is not None else np.zeros(len(mean))
    scale = float(np.linalg.norm(along))
    seen = root @ spread @ root
    if scale > 1e-12:
        first = along / scale
        importance = float(first @ seen @ first)
        assert label is not None
        breaks = tuple(round((k - float(label @ mean)) / scale, 12) for k in kinks)
        pieces = 1 + sum(abs(b) < _REACH for b in breaks)
        needed = axis_order(importance, effort)
        if pieces == 1:
            leading = (Rule(max(2 * effort.label_nodes, needed)),)
        else:
            leading = (Rule(max(effort.label_nodes, math.ceil(needed / 2)), breaks),)
    elif centre is not None:
        first = np.linalg.eigh(seen)[1][:, -1]
        needed = axis_order(float(first @ seen @ first), effort)
        if needed > 4:
            away = float(first @ np.linalg.solve(root, centre - mean))
            leading = (Rule(math.ceil(0.6 * needed), (round(away, 12),)),)
    complement = _complement(first) if leading else np.eye(len(mean))
    inner, rotation = np.linalg.eigh(complement.T @ seen @ complement)
    axes = complement @ rotation[:, ::-1]
    if leading:
        axes = np.concatenate([first[:, None], axes], axis=1)
    inner = np.maximum(inner[::-1], 0.0)
    if further is None:
        z, weights = standard_nodes(inner, effort, leading)
        return mean + z @ (root @ axes).T, weights
    z, weights = standard_nodes(np.concatenate([inner, further]), effort, leading)
    mine, beside = z[:, : len(mean)], z[:, len(mean) :]
    return np.concatenate([mean + mine @ (root @ axes).T, beside], axis=1), weights
