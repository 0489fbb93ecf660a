"""Outliers of a bulk plus a part of finite rank, and what their singular vectors look at.

Equations are named as in docs/book/structure.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from onegrad.compute.backend import Array
from onegrad.theory.spectral.draws import Found, OutlierLimit
from onegrad.theory.spectral.resolvent import Point, Resolvent, Roots, Slopes

_MOST = 12  # outliers that are looked for
_RANK = 1e-7  # squared singular values of the finite-rank part that are left out
_FROM = 1.003  # of the edge, where outliers begin
_FURTHER = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32])  # powers of it that are tried


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

    def parts(self, bulk: Resolvent, point: Point, vector: Array) -> tuple[Array, Array]:
        """What types of neurons and nodes of samples (none where those are `fixed`) have of ℓ = 1
        at an outlier with the unit vector q: the squares of (T,) and (S,) numbers."""
        root = 1.0 if self.fixed else np.sqrt(point.weights[0])
        pulled = bulk.roots(point).times((self.left @ (self.right.T @ (vector * root)))[:, None])
        return pulled[:, 0], np.zeros(0) if self.fixed else vector

    def strengths(self, point: Point, roots: Roots) -> tuple[Array, Array]:
        """ℓ_j in descending order and the unit vectors q_j in the columns: the singular values
        squared of (−M)^{½}UYᵀW^{½}, eq. transition."""
        root = roots.times(self.left)
        right = self.right if self.fixed else self.right * np.sqrt(point.weights[0])[:, None]
        _, triangle = np.linalg.qr(root)
        vectors, values, _ = np.linalg.svd(right @ triangle.T, full_matrices=False)
        return values**2, vectors


@dataclass(frozen=True)
class Seen:
    """What singular vectors are compared with: functions ψ at nodes of their own, which resolve
    polynomials that the rules for errors do not.

    names : of the functions; unit : (F, S') rows whose products with `shape` are cosines
    weights : (S',) summing to one
    mean, extra, slopes : the features there, as the resolvent has them
    """

    names: Sequence[str]
    unit: Array
    weights: Array
    mean: Array
    extra: Array
    slopes: Sequence[Slopes]

    def shape(self, bulk: Resolvent, point: Point, part: FiniteRank, vector: Array) -> Array:
        """√w_s q_s/√ω_s: q continued to these nodes, eq. alignment."""
        at_nodes = part.right.T @ (vector * np.sqrt(point.weights[0]))
        pull = bulk.roots(point).applied(part.left @ at_nodes)
        w = self.weights / (1 + bulk.response_at(point, self.extra, self.slopes))
        return np.asarray(w * (pull @ self.mean) / np.sqrt(self.weights))


def find_outliers(
    bulk: Resolvent, part: FiniteRank, edge: float, seen: Seen | Mapping[str, Array]
) -> Found:
    """Roots of ℓ_j(x) = 1 beyond the edge, largest first, with eq. alignment for their alignments,
    and all ℓ_j at the edge: each direction above (> 1) or below the transition. Eqs. transition and
    one-draw (eq. outlier).

    seen : functions of the samples; unit directions (r,) by name where the part is `fixed`
    """

    known: dict[float, Point] = {}

    def at(log_x: float) -> tuple[Array, Array, Point]:
        if log_x not in known:  # from the next solution above, monotonically as from infinity
            above = min((x for x in known if x > log_x), default=None)
            near = None if above is None else known[above]
            known[log_x] = bulk.beyond(np.array([math.exp(log_x)]), near)[0]
        point = known[log_x]
        return *part.strengths(point, bulk.roots(point)), point

    start = math.log(_outside(bulk, edge))
    threshold = at(start)[0]
    limits: list[OutlierLimit] = []
    named = seen.names if isinstance(seen, Seen) else list(seen)
    unit = seen.unit if isinstance(seen, Seen) else np.array(list(seen.values()))
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
        q = vectors[:, j]
        shape = seen.shape(bulk, point, part, q) if isinstance(seen, Seen) else q
        shape = shape / math.sqrt(x * slope)
        cosines = np.clip(unit @ shape, -1.0, 1.0) if len(unit) else np.zeros(0)
        limits.append(OutlierLimit(x, slope, cosines, *part.parts(bulk, point, q)))
    sizes = bulk.counts, bulk.weights * bulk.samples
    return Found(limits, sizes, list(named), threshold[:_MOST])


def _outside(bulk: Resolvent, edge: float) -> float:
    """Just beyond the edge, which may be that of another resolution."""
    tried = edge * _FROM**_FURTHER
    inside = np.flatnonzero(~bulk.beyond(tried)[1])
    first = int(inside[-1]) + 1 if len(inside) else 0
    return float(tried[first] if first < len(tried) else bulk.edge() * _FROM)


def _excess(at: Callable[[float], tuple[Array, Array, Point]], j: int) -> Callable[[float], float]:
    return lambda log_x: float(at(log_x)[0][j]) - 1.0
