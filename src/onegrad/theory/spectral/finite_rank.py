"""Outliers of a bulk plus a part of finite rank, and what their singular vectors look at.

Equation numbers are those of docs/structure.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from onegrad.compute.backend import Array
from onegrad.theory.spectral.resolvent import Point, Resolvent, Slopes

_MOST = 12  # outliers that are looked for
_RANK = 1e-10  # squared singular values of the finite-rank part that are left out
_FROM = 1.003  # of the edge, where outliers begin


@dataclass(frozen=True)
class Outlier:
    """A singular value outside of the bulk.

    singular_value : in the limit
    strength : of its part of finite rank over what is needed to leave the bulk; 1 at the transition
    alignments : |cosine| of its singular vector with named functions of the samples, or directions
    """

    singular_value: float
    strength: float
    alignments: dict[str, float]


@dataclass(frozen=True)
class FiniteRank:
    """U Yᵀ beside the bulk: U (T, R) by types, Y (S, R) by nodes of samples, or (r, R) by
    directions where those are no random samples (`fixed`: weights)."""

    left: Array
    right: Array
    fixed: bool = False

    @classmethod
    def of_table(cls, table: Array, counts: Array, weights: Array) -> FiniteRank:
        """ν_is (T, S) by its leading singular functions."""
        scaled = table * np.sqrt(counts)[:, None] * np.sqrt(weights)
        u, s, vt = np.linalg.svd(scaled, full_matrices=False)
        rank = max(1, int(np.sum(s**2 > _RANK * max(float(s[0]) ** 2, 1e-300))))
        left = u[:, :rank] * s[:rank] / np.sqrt(counts)[:, None]
        return cls(left, vt[:rank].T / np.sqrt(weights)[:, None])

    def strengths(self, point: Point, counts: Array) -> tuple[Array, Array]:
        """ℓ_j in descending order and the unit vectors q_j in the columns: the singular values
        squared of (−M)^{½}UYᵀW^{½}, eq. (7)."""
        root = np.sqrt(np.maximum(-point.gain[0] * counts, 0.0))[:, None] * self.left
        right = self.right if self.fixed else self.right * np.sqrt(point.weights[0])[:, None]
        _, triangle = np.linalg.qr(root)
        vectors, values, _ = np.linalg.svd(right @ triangle.T, full_matrices=False)
        return values**2, vectors


@dataclass(frozen=True)
class Seen:
    """What singular vectors are compared with: functions ψ at nodes of their own, which resolve
    polynomials that the rules for errors do not.

    functions : ψ (S',) by name; weights : (S',) summing to one
    mean, extra, slopes : the features there, as the resolvent has them
    """

    functions: Mapping[str, Array]
    weights: Array
    mean: Array
    extra: Array
    slopes: Sequence[Slopes]

    def cosines(self, bulk: Resolvent, point: Point, part: FiniteRank, vector: Array) -> Array:
        """Σ_s √w_s q_s ψ_s/√E ψ² of every function: q continued to these nodes, eq. (8)."""
        at_nodes = part.right.T @ (vector * np.sqrt(point.weights[0]))
        pull = bulk.counts * -point.gain[0] * (part.left @ at_nodes)
        w = self.weights / (1 + bulk.response_at(point, self.extra, self.slopes))
        seen = w * (pull @ self.mean)
        table = np.array(list(self.functions.values()))
        return np.asarray(table @ seen / np.sqrt(np.maximum(table**2 @ self.weights, 1e-300)))


def find_outliers(
    bulk: Resolvent, part: FiniteRank, edge: float, seen: Seen | Mapping[str, Array]
) -> tuple[list[Outlier], Array]:
    """Roots of ℓ_j(x) = 1 beyond the edge, largest first, with eq. (8) for their alignments, and
    all ℓ_j at the edge: each direction above (> 1) or below the transition.

    seen : functions of the samples; unit directions (r,) by name where the part is `fixed`
    """

    known: dict[float, Point] = {}

    def at(log_x: float) -> tuple[Array, Array, Point]:
        if log_x not in known:  # from the next solution above, monotonically as from infinity
            above = min((x for x in known if x > log_x), default=None)
            near = None if above is None else known[above]
            known[log_x] = bulk.beyond(np.array([math.exp(log_x)]), near)[0]
        return *part.strengths(known[log_x], bulk.counts), known[log_x]

    start = math.log(_outside(bulk, edge))
    threshold = at(start)[0]
    found = []
    for j in range(min(_MOST, int(np.sum(threshold > 1)))):
        high = start + 1.0
        while at(high)[0][j] > 1:
            high += 1.0
        root = brentq(_excess(at, j), start, high, xtol=1e-5)
        x, step = math.exp(root), 1e-3
        (up, _, _), (down, _, _) = at(root + step), at(max(root - step, start))
        width = min(2 * step, root + step - start)
        slope = max(float(down[j] - up[j]) / (width * x), 1e-300)  # −dℓ/dx
        _, vectors, point = at(root)
        if isinstance(seen, Seen):
            names, along = list(seen.functions), seen.cosines(bulk, point, part, vectors[:, j])
        else:
            names = list(seen)
            along = np.array([vectors[:, j] @ direction for direction in seen.values()])
        cosines = np.minimum(np.abs(along) / math.sqrt(x * slope), 1.0)
        found.append(
            Outlier(
                math.sqrt(x), float(threshold[j]), dict(zip(names, cosines.tolist(), strict=True))
            )
        )
    return found, threshold[:_MOST]


def _outside(bulk: Resolvent, edge: float) -> float:
    """Just beyond the edge, which may be that of another resolution."""
    tried = np.array([edge * _FROM**power for power in (1, 2, 4)])
    outside = bulk.beyond(tried)[1]
    return float(tried[int(np.argmax(outside))] if np.any(outside) else bulk.edge() * _FROM)


def _excess(at: Callable[[float], tuple[Array, Array, Point]], j: int) -> Callable[[float], float]:
    return lambda log_x: float(at(log_x)[0][j]) - 1.0
