"""How hard a link is to find by gradient descent: information and leap exponents."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from onegrad.gaussian.activation import Activation
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.joint_rules import joint_law
from onegrad.gaussian.polynomials import orthonormal_hermite, sqrt_factorial

HIGHEST = 8  # highest total degree that is examined
_ABSENT = 1e-6  # coefficients below this share of √E g² are quadrature noise


@dataclass(frozen=True)
class LinkExponents:
    """How hard a link g is to learn: g of standard Gaussian projections t₁, …, t_p.

    information : the smallest degree k ≥ 1 with a Hermite coefficient that is not zero
        [benarous2021]; None if there is none up to `HIGHEST`
    leap : the most new degrees that any of the projections needs at once, when those already found
        are known, in the best order [abbe2023]; in the coordinates of the directions as given.
        None if some projection does not count up to `HIGHEST`
    indices : p
    """

    information: int | None
    leap: int | None
    indices: int

    def __str__(self) -> str:
        def shown(value: int | None) -> str:
            return f"above {HIGHEST}" if value is None else str(value)

        text = f"information exponent {shown(self.information)}"
        return text if self.indices == 1 else f"{text}, leap exponent {shown(self.leap)}"


def link_exponents(link: Activation | JointLink) -> LinkExponents:
    """From the Hermite coefficients of the link, at N(0, I).

    >>> from onegrad.gaussian.joint_links import get_joint_link
    >>> str(link_exponents(get_joint_link("xor", 2)))
    'information exponent 2, leap exponent 2'
    """
    if isinstance(link, JointLink):
        present = _joint_degrees(link)
        return LinkExponents(_least(present), _leap(present, link.indices), link.indices)
    c = link.coefficients(HIGHEST) * sqrt_factorial(HIGHEST)
    size = np.sqrt(link.second_moment())
    present = [(k,) for k in range(1, HIGHEST + 1) if abs(c[k]) > _ABSENT * size]
    return LinkExponents(_least(present), _least(present), 1)


def _joint_degrees(link: JointLink) -> list[tuple[int, ...]]:
    """Multi-indices of degree 1 … HIGHEST whose coefficients are not zero."""
    p = link.indices
    law = joint_law(link, np.zeros(p), np.eye(p))
    tables = [orthonormal_hermite(HIGHEST, law.z[:, j]) for j in range(p)]
    weighted, size, found = law.weights * law.y, np.sqrt(law.energy), []
    for degrees in itertools.product(range(HIGHEST + 1), repeat=p):
        if 1 <= sum(degrees) <= HIGHEST:
            values = weighted.copy()
            for table, d in zip(tables, degrees, strict=True):
                values = values * table[d]
            if abs(values.sum()) > _ABSENT * size:
                found.append(degrees)
    return found


def _least(present: list[tuple[int, ...]]) -> int | None:
    return min((sum(d) for d in present), default=None)


def _leap(present: list[tuple[int, ...]], indices: int) -> int | None:
    """Greedily: of the terms with something new, the one with the fewest new degrees is next."""
    known: set[int] = set()
    leap = 0
    while len(known) < indices:
        new = [
            (sum(d for j, d in enumerate(degrees) if j not in known), degrees)
            for degrees in present
            if any(d and j not in known for j, d in enumerate(degrees))
        ]
        if not new:
            return None
        cost, degrees = min(new)
        leap = max(leap, cost)
        known |= {j for j, d in enumerate(degrees) if d}
    return leap
