"""Outliers of a bulk plus a part of finite rank: in the limit, and in draws of a finite size.

Equations are named as in docs/book/structure.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from onegrad.compute.backend import Array
from onegrad.theory.spectra.resolvent import Point, Resolvent, factors

MOST = 12  # outliers looked for: figures and tables show no more
_RANK = 1e-7  # squared singular values of the finite-rank part left out, over the largest
_STEP = 1.003  # factor by which the start of the outlier region moves until it is off the bulk
_DRAWS = 256  # draws of the fluctuations, each with both signs: means to 3 % of a deviation


@dataclass(frozen=True)
class Outlier:
    """A singular value outside of the bulk.

    singular_value : mean over draws of this size
    strength : of its part of finite rank over what is needed to leave the bulk; 1 at the transition
    alignments : |cosine| of its singular vector with named functions of the samples, or directions
    deviation : relative standard deviation of the singular value from draw to draw: which neurons
        and samples are drawn, and what the step has by chance
    """

    singular_value: float
    strength: float
    alignments: dict[str, float]
    deviation: float = math.nan


def alignment_doubts(outliers: Sequence[Outlier], threshold: float) -> tuple[str, ...]:
    """Why the cosines of an outlier differ from draw to draw, for each; "" where nothing says so.

    Cosines begin at zero at the transition: a standard deviation lower it would not count as one,
    being no larger than the `threshold`. And outliers mix that a standard deviation of each makes
    meet.
    """
    values = np.array([one.singular_value for one in outliers])
    moved = values * np.array([one.deviation for one in outliers])
    doubts = []
    for j, (value, step) in enumerate(zip(values, moved, strict=True)):
        meets = np.abs(values - value) < moved + step
        meets[j] = False
        other = "close to another outlier" if np.any(meets) else ""
        doubts.append("close to the bulk" if value - step < threshold else other)
    return tuple(doubts)


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
        return cls(*factors(table, counts, weights, _RANK))

    def root(self, point: Point) -> Array | float:
        """W^½ of eq. transition."""
        return 1.0 if self.fixed else np.sqrt(point.weights[0])

    def strengths(self, bulk: Resolvent, point: Point) -> tuple[Array, Array]:
        """ℓ_j in descending order and the unit vectors q_j in the columns: the singular values
        squared of (−M)^{½}UYᵀW^{½}, eq. transition."""
        _, triangle = np.linalg.qr(bulk.roots(point).times(self.left))
        right = (self.right.T * self.root(point)).T
        vectors, values, _ = np.linalg.svd(right @ triangle.T, full_matrices=False)
        return values**2, vectors


@dataclass(frozen=True)
class Seen:
    """What singular vectors are compared with, at nodes that resolve polynomials better than the
    rules for errors do.

    names : of the functions, or directions; unit : (F, S') rows whose products with `shape` are
        cosines
    weights : (S',) summing to one, mean and extra : (T, S') features there, tables : of their
        slopes; None for directions, which singular vectors are compared with as they are
    """

    names: Sequence[str]
    unit: Array
    weights: Array | None = None
    mean: Array | None = None
    extra: Array | None = None
    tables: Sequence[Array] = ()

    @classmethod
    def directions(cls, named: Mapping[str, Array]) -> Seen:
        return cls(list(named), np.array(list(named.values())))

    def shape(self, bulk: Resolvent, point: Point, part: FiniteRank, vector: Array) -> Array:
        """√w_s q_s/√ω_s: q continued to these nodes, eq. alignment."""
        if self.weights is None or self.mean is None or self.extra is None:
            return vector
        at_nodes = part.right.T @ (vector * part.root(point))
        pull = bulk.roots(point).applied(part.left @ at_nodes)
        w = self.weights / (1 + bulk.response_at(point, self.extra, self.tables))
        return np.asarray(w * (pull @ self.mean) / np.sqrt(self.weights))


class OutlierLimit(NamedTuple):
    """An outlier without fluctuations: x and −dℓ/dx there, cosines with their signs, and what
    types of neurons (T,) and nodes of samples (S, or none where those are fixed) have of ℓ = 1."""

    eigenvalue: float
    slope: float
    cosines: Array
    neurons: Array
    samples: Array


@dataclass(frozen=True)
class Outliers:
    """The outliers of one matrix in the limit, largest first.

    sizes : (T,) and (S,) numbers of neurons and samples that types and nodes stand for
    names : of the functions that cosines are with; strengths : all ℓ at the edge
    """

    limits: Sequence[OutlierLimit]
    sizes: tuple[Array, Array]
    names: Sequence[str]
    strengths: Array

    @property
    def values(self) -> Array:
        """Singular values."""
        return np.sqrt([one.eigenvalue for one in self.limits])

    def changes(self) -> Array:
        """δ of eq. one-draw, matrices (draws, outliers, outliers).

        N and W of eq. transition are sums over k neurons and m samples. In the space of the
        outliers they fluctuate as symmetric matrices, which move singular values and turn those
        that are close into each other.
        """
        rng, s = np.random.default_rng(0), self.values
        change = np.zeros((_DRAWS, len(s), len(s)))
        neurons, samples = (np.stack([one[i] for one in self.limits], axis=1) for i in (3, 4))
        for parts, size in zip((neurons, samples), self.sizes, strict=True):
            if not len(parts):
                continue
            z = rng.standard_normal((_DRAWS, len(parts))) * np.sqrt(size)
            # The number of neurons is fixed
            z -= z.sum(axis=1, keepdims=True) * (size / size.sum())
            pairs = (parts[:, :, None] * parts[:, None, :]).reshape(len(parts), -1)
            change += (z @ (pairs / size[:, None])).reshape(change.shape)
        root = np.sqrt([one.slope for one in self.limits])
        return np.asarray(change / (np.outer(root, root) * (s[:, None] + s)))

    def draws(self) -> tuple[Array, Array]:
        """Singular values (D, outliers) and |cosines| (D, outliers, F) over which neurons and
        samples are drawn, to the first order: those of diag(s) + δ. Every δ comes with both signs,
        so that an outlier far from all others has the limit for its mean."""
        if not self.limits:
            return np.zeros((1, 0)), np.zeros((1, 0, len(self.names)))
        change = self.changes()
        values, turns = np.linalg.eigh(np.diag(self.values) + np.concatenate([change, -change]))
        cosines = np.array([one.cosines for one in self.limits])
        turned = np.einsum("dij,if->djf", turns[:, :, ::-1], cosines)
        return values[:, ::-1], np.abs(turned)


def find_outliers(bulk: Resolvent, part: FiniteRank, edge: float, seen: Seen) -> Outliers:
    """Roots of ℓ_j(x) = 1 beyond the edge, largest first, with eq. alignment for their alignments,
    and all ℓ_j at the edge: each direction above (> 1) or below the transition (eq. outlier)."""
    known: dict[float, Point] = {}

    def at(log_x: float) -> tuple[Array, Array]:
        if log_x not in known:  # from the next solution above, monotonically as from infinity
            above = min((x for x in known if x > log_x), default=None)
            near = None if above is None else known[above]
            known[log_x] = bulk.beyond(np.array([math.exp(log_x)]), near)[0]
        return part.strengths(bulk, known[log_x])

    begin = edge * _STEP  # the edge may come from another resolution
    while not bulk.beyond(np.array([begin]))[1][0]:
        begin *= _STEP
    start = math.log(begin)
    threshold = at(start)[0]
    limits: list[OutlierLimit] = []
    for j in range(min(MOST, int(np.sum(threshold > 1)))):
        high = start + 1.0
        while at(high)[0][j] > 1:
            high += 1.0
        root = brentq(lambda t, j=j: float(at(t)[0][j]) - 1.0, start, high, xtol=1e-5)
        x, low, up = math.exp(root), max(root - 1e-3, start), root + 1e-3
        slope = max(float(at(low)[0][j] - at(up)[0][j]) / ((up - low) * x), 1e-300)  # −dℓ/dx
        q, point = at(root)[1][:, j], known[root]
        shape = seen.shape(bulk, point, part, q) / math.sqrt(x * slope)
        cosines = np.clip(seen.unit @ shape, -1.0, 1.0) if len(seen.unit) else np.zeros(0)
        at_types = part.left @ (part.right.T @ (q * part.root(point)))
        pulled = bulk.roots(point).times(at_types[:, None])[:, 0]
        limits.append(OutlierLimit(x, slope, cosines, pulled, np.zeros(0) if part.fixed else q))
    sizes = bulk.counts, bulk.weights * bulk.samples
    return Outliers(limits, sizes, seen.names, threshold[:MOST])


def mean_outliers(parts: Sequence[Outliers], weights: Array, edge: float) -> tuple[Outlier, ...]:
    """Means over draws of this size, and over what is left to chance: the largest with the largest,
    as draws are compared; those that half of all draws have or more, at the edge where they have
    none.

    parts : for values of what is left to chance, with `weights`
    """
    drawn, means = [one.draws() for one in parts], []
    for j in range(max(len(one.limits) for one in parts)):
        have = weights * [len(one.limits) > j for one in parts]
        if have.sum() < 0.5:
            break
        values = [v[:, j] if w else np.full(1, edge) for w, (v, _) in zip(have, drawn, strict=True)]
        mean = float(weights @ [v.mean() for v in values])
        square = float(weights @ [np.mean((v / mean - 1) ** 2) for v in values])
        share = have / have.sum()
        present = [(w, one, c) for w, one, (_, c) in zip(share, parts, drawn, strict=True) if w]
        along = sum(w * c[:, j].mean(axis=0) for w, _, c in present)
        strength = sum(w * one.strengths[j] for w, one, _ in present)
        named = dict(zip(parts[0].names, np.minimum(along, 1.0).tolist(), strict=True))
        means.append(Outlier(mean, float(strength), named, math.sqrt(square)))
    return tuple(means)
