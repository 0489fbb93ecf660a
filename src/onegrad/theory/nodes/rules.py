"""Which rule for which axis: Gaussian averages over κ of the data and over f⁰ of the neurons.

The number of nodes along an axis follows from how non-linear the integrand is there: a
function that depends on √I·Z beside an independent standard Gaussian has Hermite coefficients
of order j that decay like x^{j/2}, x = I/(1+I), and p Gauss nodes leave the orders ≥ 2p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import REACH, gauss_hermite, piecewise_gauss
from onegrad.theory.nodes.designs import (
    MOST_FIFTH,
    cross_polytope,
    fifth_degree,
    quasi_gaussian,
    tensor,
    two_level,
)

_Nodes = tuple[Array, Array]
_ENDLESS = 10_000  # nodes along an axis that no rule resolves
_DRAFT_DESIGN = 1  # a draft's design for weak axes: the most accurate small one
FEWEST = 3  # nodes on a piece
_EVEN = 64  # quasi-random points for many weak axes, at least this many, and
_EACH = 4  # at least this many per axis
_MOST_WHOLE, _FINE_LABEL = 8, 24  # nodes of rules for labels


@dataclass(frozen=True)
class QuadratureLevel:
    """How fine the rules are; `QuadratureLevel.at(0, 1, 2, …)` gets finer by about a factor four.

    Two successive levels differ in *every* axis, so that the difference of their answers speaks
    for all of them: an axis with a rule of its own gets at least one node more, those that share
    a design get another one (`shared_design`).

    number : 0, 1, 2, …
    tolerance : of the neglected Hermite orders along one axis; four times that of the next level
    raised : number of most important axes that get at least three nodes (drafts of groups)
    label_nodes : fewest Gauss nodes on each smooth piece of the label
    longest : most nodes along one axis
    most : more tensor nodes than this, and axes share designs, then rules are shortened
    points : quasi-Monte Carlo points of the classification error; 0: a draft
    harmonics : degree up to which directions of a group are resolved
    split : axes of labels at zero, where a loss of y − f bends as long as f is small
    halves : the readout's axis has rules on both sides of zero (`halves`), which resolve neurons
        that the step has saturated
    quasi : quasi-random points along axes that are neither the labels' nor steep (`scattered`)
    rare : types of neurons that stand for less than that of all, together, are left out (`common`)
    """

    tolerance: float
    raised: int
    label_nodes: int
    longest: int
    most: int
    points: int
    harmonics: int
    number: int = 0
    split: bool = False
    halves: bool = False
    quasi: bool = False
    rare: float = 0.0

    @staticmethod
    def draft() -> QuadratureLevel:
        """The coarsest one, for a first look: errors within 3 %, in milliseconds."""
        return replace(QuadratureLevel.at(0), most=256, points=0, longest=8)

    @staticmethod
    def at(number: int) -> QuadratureLevel:
        return QuadratureLevel(
            tolerance=3e-2 * 4.0**-number,
            raised=0,
            label_nodes=3 + number,
            longest=12 + 6 * number,
            most=600 * 2**number,
            points=512 * 2**number,
            harmonics=2 + number,
            number=number,
        )

    def grown(self, order_at: Callable[[float], int], step: int = 1) -> int:
        """An order that this level's tolerance asks for, and `step` more than at the level below.

        order_at : the order as a function of the tolerance; up to two an axis shares a design
        """
        order = 0
        for number in range(self.number + 1):
            wanted = order_at(self.tolerance * 4.0 ** (self.number - number))
            order = wanted if wanted <= 2 else max(wanted, order + step, 3)
        return min(order, self.longest)


def axis_order(importance: float, level: QuadratureLevel, step: int = 1) -> int:
    """Gauss–Hermite nodes along an axis of importance I: at least the p with x^p ≤ tolerance."""
    x = importance / (1.0 + importance)
    return level.grown(lambda tolerance: decay_order(x, tolerance), step)


def decay_order(x: float, tolerance: float, scale: float = 1.0) -> int:
    """The smallest p ≥ 2 with scale·x^p ≤ tolerance."""
    if math.isnan(x) or not math.isfinite(scale):
        raise AssumptionError(
            "the sizes of this problem overflow in the theory. Use smaller scales of labels, rates "
            "and spreads"
        )
    if x <= 0 or scale <= 0:
        return 2
    if x >= 1 - 1e-9:
        return _ENDLESS
    return min(max(2, math.ceil(math.log(tolerance / scale) / math.log(x))), _ENDLESS)


class Rule(NamedTuple):
    """A Gauss rule for one Gaussian axis, of `order` nodes on each piece between the breaks."""

    order: int
    breaks: tuple[float, ...] = ()

    @property
    def nodes(self) -> tuple[Array, Array]:
        order, breaks = self
        return piecewise_gauss(breaks, order) if breaks else gauss_hermite(order)


def halves(order: int, bend: float = 0.0) -> Rule:
    """Rules on each side of a bend instead of a Gauss–Hermite rule of that order.

    After a step neurons are steep functions of the readout and of what they look at: nine nodes on
    each side are closer than 48 whole ones, most of which are far out (docs/book/structure.md).
    """
    if order <= 2 * FEWEST or abs(bend) >= REACH:
        return Rule(order)
    return Rule(FEWEST + math.ceil(order / 4), (bend,))


def standard_nodes(
    importance: Array, level: QuadratureLevel, leading: tuple[Rule, ...] = (), quick: int = 0
) -> tuple[Array, Array]:
    """Nodes for Z ~ N(0, I): `leading` rules for the first axes, then one axis per importance.

    quick : how many of the most important axes gain two nodes from level to level. The readout
        fits what all neurons share: along the direction of the step rules converge like x^{p/2}.

    Strong axes get Gauss–Hermite rules, all weak ones together a `shared_design`. Where the tensor
    would have more than `level.most` nodes, axes of three nodes share designs too, and the longest
    rules are shortened (the leading ones are kept). Where there is room, more weak axes than rules
    of degree five have get quasi-random points.
    """
    if np.any(~np.isfinite(importance)) or np.any(importance < -1e-9):
        raise AssumptionError("importances of integration axes must be finite and non-negative.")
    orders = [axis_order(i, level) for i in importance.tolist()]
    ranking = np.argsort(-importance, kind="stable").tolist()
    for j in ranking[:quick]:
        orders[j] = axis_order(float(importance[j]), level, 2)
    for j in ranking[: level.raised]:
        orders[j] = max(3, orders[j])
    led = math.prod(len(rule.nodes[1]) for rule in leading)
    room, kind = max(level.most // led, 1), level.number if level.points else _DRAFT_DESIGN
    pooled, even = _size(orders, False, kind) > room, 0
    if pooled:
        orders = _shortened(orders, kind, room)
    elif kind >= 2:
        even = _even_points(orders, kind, room)
    return _tensor_nodes(leading, tuple(orders), pooled, kind, even)


def common(nodes: Array, weights: Array, rare: float) -> np.ndarray:
    """Nodes without those that count least, whose shares of E(1 + |Z|²)² sum to at most `rare`:
    nearly half of a long product of Gauss rules."""
    share = weights * (1.0 + np.einsum("ij,ij->i", nodes, nodes)) ** 2
    order = np.argsort(share, kind="stable")
    kept = order[np.cumsum(share[order]) > rare * share.sum()]
    return np.sort(kept)


def _even_points(orders: Sequence[int], kind: int, room: int) -> int:
    """Quasi-random points for the weak axes, twice as many at the next level; 0 where they are few
    enough for degree five, or there is no room. Designs of degree three have E z⁴ = 1, and with
    fewer types than the weak axes have squares and products the readout cannot tell these apart:
    eight weak axes of neurons after a step were 2.5 % off, at two levels alike."""
    weak = sum(order <= 2 for order in orders)
    strong = math.prod(order for order in orders if order > 2)
    points = _EVEN * 2 ** (kind - 1)
    while points * strong > room and points > _EVEN:
        points //= 2
    if weak <= MOST_FIFTH or points * strong > room or points < _EACH * weak:
        return 0
    return points


def shared_design(count: int, kind: int, even: int = 0) -> tuple[Array, Array]:
    """A rule for `count` weak axes together, of another kind at every level.

    0: `cross_polytope`, 1: `two_level`, both of degree three and wrong in opposite ways; from 2 on
    `fifth_degree`, or `two_level` for more axes than that has, each time turned another way.
    even : so many quasi-random points instead
    """
    if even:
        return quasi_gaussian(count, even)
    if kind == 0:
        return cross_polytope(count)
    if kind == 1 or count > MOST_FIFTH:
        return two_level(count, kind - 1)
    return fifth_degree(count, kind - 2)


def _blocks(
    orders: Sequence[int], pooled: bool, kind: int, even: int = 0
) -> list[tuple[list[int], _Nodes]]:
    """The axes of each factor of a tensor rule, and its nodes; the `shared_design` comes last.

    pooled : axes of three nodes share rules of degree five
    """
    alone = [j for j, p in enumerate(orders) if p > 2 + pooled]
    three = [j for j, p in enumerate(orders) if p == 3 and pooled]
    weak = [j for j, p in enumerate(orders) if p <= 2]
    if three and len(three) + len(weak) <= MOST_FIFTH:
        three, weak = three + weak, []
    found = [([j], gauss_hermite(orders[j])) for j in alone]
    for start in range(0, len(three), MOST_FIFTH):
        part = three[start : start + MOST_FIFTH]
        found.append((part, fifth_degree(len(part), kind)))
    return [*found, (weak, shared_design(len(weak), kind, even))]


def _size(orders: Sequence[int], pooled: bool, kind: int) -> int:
    return _size_of(tuple(sorted(orders)), pooled, kind)


@lru_cache(maxsize=1024)
def _size_of(orders: tuple[int, ...], pooled: bool, kind: int) -> int:
    return math.prod(len(nodes[1]) for _, nodes in _blocks(orders, pooled, kind))


def _shortened(orders: list[int], kind: int, most: int) -> list[int]:
    """Orders whose tensor has at most that many nodes, the longest rules shortened first."""
    orders = list(orders)
    while max(orders, default=2) > 2 and _size(orders, True, kind) > most:
        longest = max(orders)
        orders[len(orders) - 1 - orders[::-1].index(longest)] -= 1
    return orders


@lru_cache(maxsize=64)
def _tensor_nodes(
    leading: tuple[Rule, ...], orders: tuple[int, ...], pooled: bool, kind: int, even: int
) -> _Nodes:
    blocks = _blocks(orders, pooled, kind, even)
    nodes, weights = tensor([*(rule.nodes for rule in leading), *(part for _, part in blocks)])
    axes = np.array([axis for mine, _ in blocks for axis in mine], int)
    order = np.concatenate([np.arange(len(leading)), len(leading) + np.argsort(axes)])
    nodes = nodes[:, order]
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=512)
def label_rule(
    link: Activation, offset: float, scale: float, tolerance: float, further: tuple[float, ...] = ()
) -> Rule:
    """The shortest rule along t = offset + scale·Z that knows the labels y = link(t).

    further : breaks that it has in any case

    E y, E yZ and E y² agree with a fine rule to `tolerance` of √E y² and E y². Split at the
    breakpoints of the link; a smooth one has a Gauss–Hermite rule if few nodes are enough, else
    it is split at its mean: eight Gauss–Hermite nodes are 2 % off in E tanh².
    """
    breaks = tuple(
        b for b in (round((k - offset) / scale, 12) for k in link.breakpoints) if abs(b) < REACH
    )
    breaks = tuple(sorted({*breaks, *further}))

    def moments(rule: Rule) -> Array:
        z, w = rule.nodes
        y = link(offset + scale * z)
        return np.array([w @ y, w @ (y * z), w @ y**2])

    fine = moments(Rule(_FINE_LABEL, breaks or (0.0,)))
    size = np.array([math.sqrt(fine[2]), math.sqrt(fine[2]), fine[2]])
    whole = [] if breaks else [Rule(p) for p in range(FEWEST, _MOST_WHOLE)]
    for rule in (*whole, *(Rule(p, breaks or (0.0,)) for p in range(FEWEST, _FINE_LABEL))):
        if np.all(np.abs(moments(rule) - fine) <= tolerance * size):
            return rule
    return Rule(_FINE_LABEL, breaks or (0.0,))


def order_on_pieces(importance: float, part: float, level: QuadratureLevel) -> int:
    """Nodes on each piece of an axis of that importance: `part` of a whole axis' nodes."""
    x = importance / (1.0 + importance)
    return level.grown(lambda tolerance: math.ceil(part * decay_order(x, tolerance)))


def is_steep(importance: float, level: QuadratureLevel) -> bool:
    """Whether more Gauss–Hermite nodes would be needed than an axis may have."""
    return decay_order(importance / (1.0 + importance), level.tolerance) > level.longest
