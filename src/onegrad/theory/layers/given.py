"""A given first layer, conditioned on a few projections of the data: the inputs of its features.

κ = Vᵀx are projections on up to six directions: all special ones of the data and the layer's own
where they are few, else the labels' and those along which preactivations vary most. Whatever is
special beside V stays in the covariance of its component,

    x | κ, c = μ_c + L_c(κ − Vᵀμ_c) + N(0, Σ_c − L_cVᵀΣ_c),  L_c = Σ_cV(VᵀΣ_cV)⁻¹
    A_c = Ŵ(Σ_c − L_cVᵀΣ_c)Ŵᵀ,  b_ic² = (A_c)_ii

(eq. own-nodes). Inputs are whitened where the bulk of the data is not the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation, Smoothed
from onegrad.gaussian.smoothing import smoothed
from onegrad.theory.directions.eigen import eigen_axes
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.nodes.population import Nodes

MOST_AXES = 6
_LARGEST_SHARE = 0.1  # 1/n' where all directions are special
_FAINT = 1e-14  # squared lengths below this share of the largest are rounding errors
_ALIKE, _MOST_BLOCKS = 2.0, 8  # eigenvalues of a block: largest over smallest; number of blocks
_NEW = 1e-6  # a unit vector with a smaller new component adds nothing to a span


class Part(NamedTuple):
    """Neurons in one component: preactivation = offset + slope·κ + N(0, A_c)."""

    offset: Array  # (k,)
    slope: Array  # (k, r)
    spread: Array  # (k,) b_ic


class Tables(NamedTuple):
    """(k, S) each: E σ, E σ', Var σ and b²E σ''/√2 given κ and the component, the last from what a
    sample's length does to E σ."""

    mean: Array
    slope: Array
    variance: Array
    curvature: Array | None


@dataclass(frozen=True)
class GivenLayer:
    """geometry : of the axes that are conditioned on; parts : one for each component
    couplings : A_c without its diagonal, (k, k), one for all components or one for each
    bulk : (k,) length of ŵ_i outside of everything special, outside : of how many coordinates
    special : special directions, conditioned on or not
    lengths : (2, C) √(1 ± √(2/n')) of the samples' bulks in each component, half of the samples
        each (docs/book/chance-and-size.md). n' is one over the mean ρ_ij² between neurons: so
        many equal coordinates would make |x_⊥|², as neurons see it, fluctuate as it does
    shares, coordinates : (k, B) part of each neuron's bulk in each block of alike eigenvalues of
        the data's bulk, and (B,) how many equal coordinates a block is worth
    """

    geometry: Geometry
    activation: Activation
    parts: tuple[Part, ...]
    couplings: tuple[Array, ...]
    bulk: Array
    outside: int
    special: int
    lengths: Array
    shares: Array
    coordinates: Array

    @property
    def spread(self) -> Array:
        """E[vvᵀ]/E[b²] over neurons and components: what the features see of κ."""
        pairs = list(zip(self.geometry.weights, self.parts, strict=True))
        seen = sum(p * (part.slope.T @ part.slope) for p, part in pairs)
        total = sum(p * float(part.spread @ part.spread) for p, part in pairs)
        return np.asarray(seen) / total

    @property
    def beside(self) -> float:
        """1/n' of the component in which it is largest, less 1/n: how far the directions beside the
        axes are from being many; 0 where all of them are axes."""
        if self.special == self.geometry.rank:
            return 0.0
        share = 0.5 * (float(self.lengths.max()) ** 2 - 1.0) ** 2
        return max(0.0, share - 1.0 / (self.outside + self.special))

    @property
    def effective(self) -> float:
        """How many equal coordinates the bulk is worth: 1/Σ_b s_b²/p_b, s_b the mean share."""
        mean = self.shares.mean(axis=0)
        return float(1.0 / np.sum(mean**2 / self.coordinates))

    @cached_property
    def squares(self) -> tuple[Array, ...]:
        """ρ_ij² less what the common length has of it, 0 for i = j: the covariance of the quadratic
        parts of features, one for each coupling."""
        found = []
        for coupling, part, length in zip(self.couplings, self.parts, self.lengths.T, strict=False):
            square = squared_correlations(coupling, part.spread)
            square -= 0.5 * (length[1] ** 2 - 1) ** 2
            np.fill_diagonal(square, 0.0)
            found.append(square)
        return tuple(found)

    def at(self, where: Nodes) -> Tables:
        """At nodes of the axes, samples of all lengths together, without their quadratic parts."""
        return Tables(*self._moments(where, np.ones(len(self.parts))), None)

    def tables(self, where: Nodes) -> Tables:
        """At every node twice, for the shorter and for the longer half of the samples (`twice`)
        (eq. beside-the-axes).

        A shift gives ν, ρd and the second moment the means that they have without lengths, because
        at a given length z is not quite Gaussian (docs/book/chance-and-size.md).
        """
        alone = self.at(where)
        rho = self.lengths[:, where.component]
        found = [self._moments(where, lengths) for lengths in self.lengths]
        scale = self._scale(where)
        means = np.stack([part.value for part in found])
        curvature = (means[1] - means[0]) / (math.sqrt(2) * (rho[1] ** 2 - 1))
        means += alone.mean - means.mean(axis=0)
        slopes = np.stack([r * part.slope for r, part in zip(rho, found, strict=True)])
        rests = np.stack(
            [one.variance - (scale * d) ** 2 for one, d in zip(found, slopes, strict=True)]
        )
        slopes += alone.slope - np.einsum("rs,rts->ts", rho, slopes) / 2
        variances = rests + (scale * slopes) ** 2
        variances += alone.mean**2 + alone.variance - np.mean(means**2 + variances, axis=0)
        variances = np.maximum(variances, 0.0)
        most = np.sqrt(np.maximum(variances - (scale * slopes) ** 2, 0.0))
        curved = np.clip(rho[:, None] ** 2 * curvature, -most, most)
        return Tables(*(np.concatenate(x, axis=1) for x in (means, slopes, variances, curved)))

    def preactivations(self, where: Nodes) -> tuple[Array, Array]:
        """Means and deviations (k, S) of preactivations given κ and the component."""
        shift = np.empty((len(self.bulk), len(where.weights)))
        for c, part in enumerate(self.parts):
            mine = where.component == c
            shift[:, mine] = part.offset[:, None] + part.slope @ where.kappa[mine].T
        return shift, self._scale(where)

    def _scale(self, where: Nodes) -> Array:
        return np.stack([part.spread for part in self.parts], axis=1)[:, where.component]

    def _moments(self, where: Nodes, lengths: Array) -> Smoothed:
        """With samples of that length (C,) in each component."""
        shift, _ = self.preactivations(where)
        found = Smoothed(*(np.empty_like(shift) for _ in Smoothed._fields))
        for c, part in enumerate(self.parts):  # rows that share a scale take less time
            mine = np.flatnonzero(where.component == c)
            some = smoothed(self.activation, shift[:, mine], lengths[c] * part.spread[:, None])
            for table, values in zip(found, some, strict=True):
                table[:, mine] = values
        return found


def squared_correlations(coupling: Array, spread: Array) -> Array:
    """ρ_ij² between the bulks of two neurons, 0 for i = j."""
    return np.asarray(np.minimum(np.abs(coupling / np.outer(spread, spread)), 1.0) ** 2)


def _lengths(couplings: list[Array], parts: list[Part], most: int) -> Array:
    shares = []
    for c, part in enumerate(parts):
        if c < len(couplings):
            k = len(part.spread)
            mean = float(squared_correlations(couplings[c], part.spread).sum()) / max(k * k - k, 1)
        shares.append(min(max(mean, 1 / most), _LARGEST_SHARE))
    signs = np.array([[-1.0], [1.0]])
    return np.asarray(np.sqrt(1.0 + signs * np.sqrt(2 * np.array(shares))))


def twice(where: Nodes) -> Nodes:
    """Every node once for either length of the samples, all shorter ones first."""
    return replace(
        where, kappa=np.tile(where.kappa, (2, 1)), component=np.tile(where.component, 2),
        weights=np.tile(where.weights, 2) / 2,
    )  # fmt: skip


def given_layer(
    activation: Activation,
    geometry: Geometry,
    weights: Array,
    own: Array,
    eigenvalues: Array | None = None,
) -> GivenLayer:
    """geometry : with its basis; weights : (k, n); own : (n, q) orthonormal directions beside it;
    eigenvalues : (n,) of the data's bulk in descending order, None where it is flat
    (eq. own-nodes).

    Cost O(k²n), and O(k²r) for each component where not all special directions are axes.
    """
    assert geometry.basis is not None
    basis = np.hstack([geometry.basis, own])
    count, rank = basis.shape[1], geometry.rank
    seen = weights @ basis
    rest = weights - seen @ basis.T
    square = np.einsum("ij,ij->i", rest, rest)
    means = np.zeros((len(geometry.weights), count))
    means[:, :rank] = geometry.means
    covariances = np.tile(np.eye(count), (len(means), 1, 1))
    covariances[:, :rank, :rank] = geometry.covariances
    teacher = np.zeros((*geometry.teacher.shape[:-1], count))
    teacher[..., :rank] = geometry.teacher
    whole = replace(
        geometry, means=means, covariances=covariances, teacher=teacher, directions={}, basis=basis
    )
    axes = np.eye(count) if count <= MOST_AXES else _axes(whole, seen, square)
    common = rest @ rest.T
    floor = max(_FAINT * float(np.max(np.einsum("ij,ij->i", weights, weights))), 1e-300)
    parts, couplings = [], []
    for mean, covariance in zip(means, covariances, strict=True):
        along = covariance @ axes
        back = along @ np.linalg.inv(axes.T @ along)
        left = covariance - back @ along.T
        spread2 = square + np.einsum("ij,jl,il->i", seen, left, seen)
        parts.append(Part(
            seen @ (mean - back @ (axes.T @ mean)), seen @ back,
            np.sqrt(np.maximum(spread2, floor)),
        ))  # fmt: skip
        if count > MOST_AXES:
            coupling = common + (seen @ left) @ seen.T
            np.fill_diagonal(coupling, 0.0)
            couplings.append(coupling)
    if not couplings:
        np.fill_diagonal(common, 0.0)
        couplings.append(common)
    inside = replace(
        whole, means=means @ axes, teacher=teacher @ axes, basis=basis @ axes,
        covariances=np.einsum("ia,cij,jb->cab", axes, covariances, axes),
    )  # fmt: skip
    return GivenLayer(
        inside, activation, tuple(parts), tuple(couplings), np.sqrt(np.maximum(square, floor)),
        weights.shape[1] - count, count, _lengths(couplings, parts, weights.shape[1]),
        *_blocks(rest, eigenvalues, weights.shape[1] - count),
    )  # fmt: skip


def _blocks(rest: Array, eigenvalues: Array | None, outside: int) -> tuple[Array, Array]:
    """Shares (k, B) and coordinates (B,) of blocks of inputs whose eigenvalues are within a factor
    of _ALIKE; one block on a flat bulk, and eigenvalues that fall on past _MOST_BLOCKS are one."""
    if eigenvalues is None:
        return np.ones((len(rest), 1)), np.array([float(outside)])
    block = np.floor(np.log(eigenvalues[0] / eigenvalues) / math.log(_ALIKE) + 1e-9).astype(int)
    block = np.unique(np.minimum(block, _MOST_BLOCKS - 1), return_inverse=True)[1]
    squares = rest**2
    columns = squares.sum(axis=0)
    found = [squares[:, block == b].sum(axis=1) for b in range(block.max() + 1)]
    worth = [columns[block == b].sum() ** 2 / np.sum(columns[block == b] ** 2)
             for b in range(block.max() + 1)]  # fmt: skip
    shares = np.stack(found, axis=1)
    return shares / shares.sum(axis=1, keepdims=True), np.array(worth)


def _axes(whole: Geometry, seen: Array, square: Array) -> Array:
    """(r, MOST_AXES) orthonormal: the labels' directions, then those along which preactivations
    vary most, each by its share in its component times the component's weight.

    In component c the projection that explains most of the preactivations' variance is Σ_c^{−½}e,
    with e the leading eigenvector of Σ_c^{½} Σ_i v_iv_iᵀ Σ_c^{½}.
    """
    found = [row for row in np.atleast_2d(whole.teacher) if np.any(row)]
    candidates = []
    for weight, root in zip(whole.weights, whole.roots, strict=True):
        values, vectors = eigen_axes(root @ (seen.T @ seen) @ root)
        shares = weight * values / (values.sum() + square.sum())
        directions = np.linalg.solve(root, vectors)
        candidates += list(zip(shares.tolist(), directions.T, strict=True))
    candidates.sort(key=lambda pair: -pair[0])
    axes = np.zeros((whole.rank, 0))
    for direction in (*found, *(direction for _, direction in candidates)):
        unit = direction / np.linalg.norm(direction)
        new = unit - axes @ (axes.T @ unit)
        if np.linalg.norm(new) > _NEW and axes.shape[1] < MOST_AXES:
            axes = np.column_stack([axes, new / np.linalg.norm(new)])
            axes = np.linalg.qr(axes)[0]
    return axes
