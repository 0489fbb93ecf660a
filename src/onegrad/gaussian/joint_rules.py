"""Averages over several jointly Gaussian projections, with rules split where a link bends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.deadline import check_time
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.quadrature import gauss_hermite, piecewise_rules

_MOST_WHOLE = 8  # nodes of a rule without breaks
_TOGETHER = 128  # lines computed together: 8 MB of tables
_SPLIT = 0.6  # nodes on each side of a break, as a share of a rule without breaks
_ORDERS = {1: 40, 2: 20, 3: 10, 4: 6}  # nodes on each piece, for laws and exact risks


def nested_nodes(
    link: JointLink, mean: Array, root: Array, orders: Sequence[int], split: bool = False
) -> tuple[Array, Array]:
    """Nodes z (S, p) and weights for Z ~ N(0, I_p), where t = mean + root·z, root lower triangular.

    One axis after the other, each with a Gauss rule on every piece between the places where the
    link bends, given the earlier projections: exact bends also where projections are correlated.
    split : at t = 0 along axes where it does not bend
    """
    nodes, weights = np.zeros((1, 0)), np.ones(1)
    for j, order in enumerate(orders):
        earlier, centres = mean[:j] + nodes @ root[:j, :j].T, mean[j] + nodes @ root[j, :j]
        lines = []
        for before, centre in zip(earlier.tolist(), centres.tolist(), strict=True):
            at = link.breaks(tuple(before)) or ((0.0,) if split else ())
            lines.append(tuple(round((b - centre) / float(root[j, j]), 12) for b in at))
        found, shares = [], []
        for z, w, (x, v) in zip(nodes, weights, _rules(lines, order), strict=True):
            found.append(np.column_stack([np.tile(z, (len(x), 1)), x]))
            shares.append(w * v)
        nodes, weights = np.concatenate(found), np.concatenate(shares)
    return nodes, weights


def _rules(lines: Sequence[tuple[float, ...]], order: int) -> Iterator[tuple[Array, Array]]:
    """One for each line of breaks, those with breaks made together."""
    for start in range(0, len(lines), _TOGETHER):
        check_time()
        some = lines[start : start + _TOGETHER]
        broken = [line for line in some if line]
        made = iter(piecewise_rules(broken, order) if broken else ())
        for line in some:
            yield next(made) if line else gauss_hermite(order)


@dataclass(frozen=True)
class JointLaw:
    """y = g(t), t ~ N(mean, root·rootᵀ): nodes z of t = mean + root·z, y there, weights.

    coarse : a rule with fewer nodes, for an error estimate
    """

    z: Array
    y: Array
    weights: Array
    coarse: JointLaw | None = None

    @property
    def mean(self) -> float:
        return float(self.weights @ self.y)

    @property
    def first(self) -> Array:
        """E[y z_j]: (p,)."""
        return np.asarray((self.weights * self.y) @ self.z)

    @property
    def energy(self) -> float:
        """E y²."""
        return float(self.weights @ self.y**2)


def joint_law(link: JointLink, mean: Array, covariance: Array) -> JointLaw:
    """The law of g(t), t ~ N(mean, covariance) (eq. several-indices)."""
    return _law(link, _key(mean), _key(covariance))


def _key(numbers: Array) -> tuple[float, ...]:
    """Numbers by which averages are kept: equal ones may differ by rounding."""
    return tuple(np.round(numbers, 12).ravel().tolist())


@lru_cache(maxsize=256)
def _law(link: JointLink, mean: tuple[float, ...], covariance: tuple[float, ...]) -> JointLaw:
    matrix = np.array(covariance).reshape(link.indices, link.indices)
    root = np.linalg.cholesky(matrix + 1e-14 * np.trace(matrix) * np.eye(link.indices))
    fine, split = _ORDERS[link.indices], not link.polynomial
    coarse = _of_rule(link, np.array(mean), root, fine - 2, split)
    return replace(_of_rule(link, np.array(mean), root, fine, split), coarse=coarse)


def _of_rule(link: JointLink, mean: Array, root: Array, order: int, split: bool) -> JointLaw:
    z, w = nested_nodes(link, mean, root, [order] * link.indices, split)
    return JointLaw(z, link(mean + z @ root.T), w)


@dataclass(frozen=True)
class JointRule:
    """A rule for the projections t = mean + along·z of Z ~ N(0, I_r) that a link depends on.

    axes : (p, r) orthonormal rows, u = axes·z; t = mean + root·u with `root` lower triangular
    order : nodes on each piece, the fewest that know the labels
    split : whether axes without a bend are split all the same
    """

    link: JointLink
    mean: Array
    root: Array
    axes: Array
    order: int
    split: bool

    @classmethod
    def of(cls, link: JointLink, mean: Array, along: Array, tolerance: float) -> JointRule:
        """E y, E y·u and E y² agree with a fine rule to `tolerance` of √E y² and E y²."""
        q, r = np.linalg.qr(along.T)
        signs = np.where(np.diag(r) < 0, -1.0, 1.0)
        root, axes = (r * signs[:, None]).T, (q * signs).T
        key = _key(mean), _key(root)
        fine = _label_moments(link, *key, _ORDERS[link.indices] + 2, not link.polynomial)
        size = np.sqrt(fine[-1]) * np.append(np.ones(len(fine) - 1), np.sqrt(fine[-1]))
        whole = [(p, False) for p in range(2, _MOST_WHOLE)]
        for order, split in (*whole, *((p, True) for p in range(2, _ORDERS[link.indices]))):
            found = _label_moments(link, *key, order, split)
            if np.all(np.abs(found - fine) <= tolerance * size):
                break
        return cls(link, mean, root, axes, order, split)

    @property
    def part(self) -> float:
        """Nodes on a piece, as a share of the nodes of a rule without breaks."""
        return _SPLIT if self.split or self.link.bends == "axes" else 1.0

    def nodes(self, needs: Sequence[int], more: int, most: int) -> tuple[Array, Array]:
        """u (S, p) and weights, with `more` nodes on each piece, and as many as an axis `needs`; of
        more than `most` nodes the longest axes are shortened."""
        orders = [max(self.order + more, need, 1) for need in needs]
        ties = self.link.bends == "ties"
        halves = [self.split or (j > 0 if ties else self.link.bends == "axes")
                  for j in range(len(orders))]  # fmt: skip
        while math.prod(o * (1 + h) for o, h in zip(orders, halves, strict=True)) > most:
            longest = int(np.argmax([o * (1 + h) for o, h in zip(orders, halves, strict=True)]))
            if orders[longest] == 1:
                break
            orders[longest] -= 1
        return nested_nodes(self.link, self.mean, self.root, orders, self.split)


@lru_cache(maxsize=1024)
def _label_moments(
    link: JointLink, mean: tuple[float, ...], root: tuple[float, ...], order: int, split: bool
) -> Array:
    """E y, E y·u_j, E y²."""
    lower = np.array(root).reshape(link.indices, link.indices)
    law = _of_rule(link, np.array(mean), lower, order, split)
    return np.array([law.mean, *law.first, law.energy])
