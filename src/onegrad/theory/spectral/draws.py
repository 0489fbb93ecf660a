"""Outliers in draws of a finite size: which neurons and samples are drawn, the step's chance.

Equations are named as in docs/book/structure.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array

_HALF = 0.5
_DRAWS = 256  # of the fluctuations, each with both signs


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
    found = []
    for j, (value, step) in enumerate(zip(values, moved, strict=True)):
        meets = np.abs(values - value) < moved + step
        meets[j] = False
        other = "close to another outlier" if np.any(meets) else ""
        found.append("close to the bulk" if value - step < threshold else other)
    return tuple(found)


class OutlierLimit(NamedTuple):
    """An outlier without fluctuations: x and −dℓ/dx there, cosines with their signs, and what
    neurons (T,) and samples (S,) have of it."""

    eigenvalue: float
    slope: float
    cosines: Array
    neurons: Array
    samples: Array


@dataclass(frozen=True)
class Found:
    """The outliers of one matrix in the limit, largest first.

    sizes : (T,) and (S,) numbers of neurons and samples that types and nodes stand for
    names : of the functions that cosines are with; strengths : all ℓ at the edge
    """

    limits: Sequence[OutlierLimit]
    sizes: tuple[Array, Array]
    names: list[str]
    strengths: Array

    @property
    def values(self) -> Array:
        """Singular values."""
        return np.sqrt([one.eigenvalue for one in self.limits])

    @property
    def cosines(self) -> Array:
        """(outliers, functions)."""
        rows = [one.cosines for one in self.limits]
        return np.array(rows).reshape(len(rows), len(self.names))

    def changes(self) -> Array:
        """δ of eq. one-draw, matrices (draws, outliers, outliers).

        N and W of eq. transition are sums over k neurons and m samples. In the space of the
        outliers they fluctuate as symmetric matrices, which move singular values and turn those
        that are close into each other.
        """
        rng, count, s = np.random.default_rng(0), len(self.limits), self.values
        change = np.zeros((_DRAWS, count, count))
        if not count:
            return change
        neurons, samples = (
            np.stack([one[which] for one in self.limits], axis=1) for which in (-2, -1)
        )
        for parts, size in zip((neurons, samples), self.sizes, strict=True):
            if not len(parts):
                continue
            z = rng.standard_normal((_DRAWS, len(parts))) * np.sqrt(size)
            z -= z.sum(axis=1, keepdims=True) * (size / size.sum())  # their number is fixed
            pairs = (parts[:, :, None] * parts[:, None, :]).reshape(len(parts), -1)
            change += (z @ (pairs / size[:, None])).reshape(-1, count, count)
        root = np.sqrt([one.slope for one in self.limits])
        return np.asarray(change / (np.outer(root, root) * (s[:, None] + s)))


def in_draws(found: Found) -> tuple[Outlier, ...]:
    """Means and deviations over which neurons and samples are drawn, to the first order: the
    eigenvalues of diag(s) + δ. Every δ comes with both signs, so that an outlier far from all
    others has the limit for its mean."""
    if not found.limits:
        return ()
    change = found.changes()
    matrices = np.diag(found.values) + np.concatenate([change, -change])
    values, turns = np.linalg.eigh(matrices)
    cosines = np.einsum("dij,if->djf", turns[:, :, ::-1], found.cosines)
    return _means(values[:, ::-1], np.abs(cosines), found.names, found.strengths)


def _means(
    values: Array, cosines: Array, names: Sequence[str], strengths: Array
) -> tuple[Outlier, ...]:
    """Of draws (D, R) and (D, R, F)."""
    mean, along = values.mean(axis=0), np.minimum(cosines.mean(axis=0), 1.0)
    return tuple(
        Outlier(
            float(mean[j]), float(strengths[j]), dict(zip(names, along[j].tolist(), strict=True)),
            float(values[:, j].std() / mean[j]),
        )
        for j in range(values.shape[1])
    )  # fmt: skip


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
