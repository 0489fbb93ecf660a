"""Which rule for which axis: Gaussian averages over κ of the data and over f⁰ of the neurons.

The number of nodes along an axis follows from how non-linear the integrand is there: a
function that depends on √I·Z beside an independent standard Gaussian has Hermite coefficients
of order j that decay like x^{j/2}, x = I/(1+I), and p Gauss nodes leave the orders ≥ 2p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.nodes.designs import (
    REACH,
    piecewise_gauss,
    quasi_gaussian,
    tensor,
    two_level,
)


@dataclass(frozen=True)
class QuadratureLevel:
    """How fine the rules are; `QuadratureLevel.at(0, 1, 2, …)` gets finer by about a factor four.

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
    def draft() -> QuadratureLevel:
        """The coarsest one, for a first look: errors within 3 %, in milliseconds."""
        return replace(QuadratureLevel.at(0), most=128, points=0, longest=8)

    @staticmethod
    def at(number: int) -> QuadratureLevel:
        return QuadratureLevel(
            tolerance=3e-2 * 4.0**-number,
            raised=number,
            label_nodes=3 + (number + 1) // 2 if number < 2 else 2 + number,
            longest=12 + 6 * number,
            most=600 * 2**number,
            points=512 * 2**number,
            harmonics=2 if number == 0 else 3,
        )


def axis_order(importance: float, level: QuadratureLevel) -> int:
    """Gauss–Hermite nodes along an axis of that importance I: smallest p ≥ 2, x^p ≤ tolerance."""
    x = importance / (1.0 + importance)
    if x <= 0:
        return 2
    if x >= 1:  # beyond 1e16, rounded
        return level.longest
    return int(min(max(2, math.ceil(math.log(level.tolerance) / math.log(x))), level.longest))


class Rule(NamedTuple):
    """A Gauss rule for one Gaussian axis, of `order` nodes on each piece between the breaks."""

    order: int
    breaks: tuple[float, ...] = ()

    @property
    def nodes(self) -> tuple[Array, Array]:
        order, breaks = self
        return piecewise_gauss(breaks, order) if breaks else gauss_hermite(order)


def standard_nodes(
    importance: Array, level: QuadratureLevel, leading: tuple[Rule, ...] = ()
) -> tuple[Array, Array]:
    """Nodes for Z ~ N(0, I): `leading` rules for the first axes, then one axis per importance.

    Strong axes get Gauss–Hermite rules, all weak ones together a two-level design. Where the
    tensor would have more than `level.most` nodes, quasi-Monte Carlo over all axes instead
    (the leading rules are kept if there is room for them).
    """
    if np.any(~np.isfinite(importance)) or np.any(importance < -1e-9):
        raise AssumptionError("importances of integration axes must be finite and non-negative.")
    orders = [axis_order(i, level) for i in importance.tolist()]
    for j in np.argsort(-importance, kind="stable")[: level.raised]:
        orders[j] = max(3, orders[j])
    led = math.prod(len(rule.nodes[1]) for rule in leading)
    if level.points == 0:
        orders = _shortened(orders, level.most // led)
    elif led * _size(orders) > level.most:
        points = max(level.points // led, 64)
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
        orders[len(orders) - 1 - orders[::-1].index(longest)] -= 1
    return orders


@dataclass(frozen=True)
class Integrand:
    """What a rule over κ has to resolve.

    spread : (r, r) second moment E[vvᵀ]/b² over neurons: what the features see of κ
    label : (r,) direction ξ along which the label varies, or None; its axis comes first, with
        Gauss rules split where ξ·κ meets one of the `breakpoints`
    centre : (r,) where the components overlap, for labels that name the component: what is
        learned changes fast there, so the strongest axis is split at it
    further : importances of standard Gaussian axes beside κ, whose coordinates come last
    """

    spread: Array
    label: Array | None = None
    breakpoints: tuple[float, ...] = ()
    centre: Array | None = None
    further: tuple[float, ...] = ()


def component_nodes(
    mean: Array, root: Array, integrand: Integrand, level: QuadratureLevel
) -> tuple[Array, Array]:
    """Nodes (S, r + further axes) and weights (S,) for κ ~ N(mean, root²), root symmetric."""
    leading: tuple[Rule, ...] = ()
    label, centre = integrand.label, integrand.centre
    along = root @ label if label is not None else np.zeros(len(mean))
    scale = float(np.linalg.norm(along))
    seen = root @ integrand.spread @ root
    if scale > 1e-12:
        first = along / scale
        importance = float(first @ seen @ first)
        assert label is not None
        offset = float(label @ mean)
        breaks = tuple(round((k - offset) / scale, 12) for k in integrand.breakpoints)
        pieces = 1 + sum(abs(b) < REACH for b in breaks)
        needed = axis_order(importance, level)
        if pieces == 1:
            leading = (Rule(max(2 * level.label_nodes, needed)),)
        else:
            leading = (Rule(max(level.label_nodes, math.ceil(needed / 2)), breaks),)
    elif centre is not None:
        first = np.linalg.eigh(seen)[1][:, -1]
        needed = axis_order(float(first @ seen @ first), level)
        if needed > 4:
            away = float(first @ np.linalg.solve(root, centre - mean))
            leading = (Rule(math.ceil(0.6 * needed), (round(away, 12),)),)
    complement = _complement(first) if leading else np.eye(len(mean))
    inner, rotation = np.linalg.eigh(complement.T @ seen @ complement)
    axes = complement @ rotation[:, ::-1]
    if leading:
        axes = np.concatenate([first[:, None], axes], axis=1)
    importances = np.concatenate([np.maximum(inner[::-1], 0.0), integrand.further])
    z, weights = standard_nodes(importances, level, leading)
    mine, beside = z[:, : len(mean)], z[:, len(mean) :]
    return np.concatenate([mean + mine @ (root @ axes).T, beside], axis=1), weights
