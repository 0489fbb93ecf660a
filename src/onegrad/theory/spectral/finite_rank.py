"""Outliers of a bulk plus a part of finite rank, and what their singular vectors look at.

Equation numbers are those of docs/structure.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from onegrad.compute.backend import Array
from onegrad.theory.spectral.resolvent import Point, Resolvent, Roots, Slopes

_MOST = 12  # outliers that are looked for
_RANK = 1e-10  # squared singular values of the finite-rank part that are left out
_HALF = 0.5
_DRAWS = 256  # of the fluctuations, each with both signs
_FROM = 1.003  # of the edge, where outliers begin


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
        squared of (−M)^{½}UYᵀW^{½}, eq. (7)."""
        root = roots.times(self.left)
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
        pull = bulk.roots(point).applied(part.left @ at_nodes)
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
        point = known[log_x]
        return *part.strengths(point, bulk.roots(point)), point

    start = math.log(_outside(bulk, edge))
    threshold = at(start)[0]
    limits: list[_Limit] = []
    names: list[str] = []
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
        cosines = np.clip(along / math.sqrt(x * slope), -1.0, 1.0)
        limits.append(_Limit(x, slope, cosines, *part.parts(bulk, point, vectors[:, j])))
    return _in_a_draw(limits, bulk, names, threshold), threshold[:_MOST]


class _Limit(NamedTuple):
    """An outlier without fluctuations: x and −dℓ/dx there, cosines with their signs, and what
    neurons (T,) and samples (S,) have of it."""

    eigenvalue: float
    slope: float
    cosines: Array
    neurons: Array
    samples: Array


def _in_a_draw(
    limits: Sequence[_Limit], bulk: Resolvent, names: Sequence[str], strengths: Array
) -> list[Outlier]:
    """Means and deviations over which neurons and samples are drawn, to the first order.

    N and W of eq. (7) are sums over k neurons and m samples. In the space of the outliers they
    fluctuate as symmetric matrices, which move singular values and turn those that are close into
    each other: eq. (12). Every matrix comes with both signs, so that an outlier far from all
    others has the limit for its mean.
    """
    if not limits:
        return []
    rng, count = np.random.default_rng(0), len(limits)
    s = np.sqrt([one.eigenvalue for one in limits])
    change = np.zeros((_DRAWS, count, count))
    for parts, size in (
        (np.stack([one.neurons for one in limits], axis=1), bulk.counts),
        (np.stack([one.samples for one in limits], axis=1), bulk.weights * bulk.samples),
    ):
        if not len(parts):
            continue
        z = rng.standard_normal((_DRAWS, len(parts))) * np.sqrt(size)
        z -= z.sum(axis=1, keepdims=True) * (size / size.sum())  # their number is fixed
        pairs = (parts[:, :, None] * parts[:, None, :]).reshape(len(parts), -1)
        change += (z @ (pairs / size[:, None])).reshape(-1, count, count)
    root = np.sqrt([one.slope for one in limits])
    change /= np.outer(root, root) * (s[:, None] + s)
    values, turns = np.linalg.eigh(np.diag(s) + np.concatenate([change, -change]))
    values = values[:, ::-1]
    table = np.stack([one.cosines for one in limits])
    cosines = np.abs(np.einsum("dij,if->djf", turns[:, :, ::-1], table)).mean(axis=0)
    cosines = np.minimum(cosines, 1.0)
    mean = values.mean(axis=0)
    return [
        Outlier(
            float(mean[j]), float(strengths[j]),
            dict(zip(names, cosines[j].tolist(), strict=True)), float(values[:, j].std() / mean[j]),
        )
        for j in range(count)
    ]  # fmt: skip


def mean_outliers(
    draws: Sequence[Sequence[Outlier]], weights: Array, edge: float
) -> tuple[Outlier, ...]:
    """Of lists for several values of what is left to chance: the largest with the largest, as
    draws are compared; those that half of the draws have or more, at the edge where they have
    none."""
    found = []
    for j in range(max(map(len, draws))):
        have = np.array([len(one) > j for one in draws])
        if weights @ have < _HALF:
            break
        present = [one[j] for one in draws if len(one) > j]
        w = weights[have] / weights[have].sum()
        values = np.full(len(draws), edge)
        values[have] = [one.singular_value for one in present]
        mean = float(weights @ values)
        square = w @ [one.deviation**2 for one in present] + weights @ (values / mean - 1) ** 2
        cosines = {
            name: float(w @ [one.alignments[name] for one in present])
            for name in present[0].alignments
        }
        strength = float(w @ [one.strength for one in present])
        found.append(Outlier(mean, strength, cosines, math.sqrt(float(square))))
    return tuple(found)


def _outside(bulk: Resolvent, edge: float) -> float:
    """Just beyond the edge, which may be that of another resolution."""
    tried = np.array([edge * _FROM**power for power in (1, 2, 4)])
    outside = bulk.beyond(tried)[1]
    return float(tried[int(np.argmax(outside))] if np.any(outside) else bulk.edge() * _FROM)


def _excess(at: Callable[[float], tuple[Array, Array, Point]], j: int) -> Callable[[float], float]:
    return lambda log_x: float(at(log_x)[0][j]) - 1.0
