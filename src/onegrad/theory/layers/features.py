"""Features of neuron types at nodes of the data: ν, d, e of every type at every node.

Where the geometry has groups of directions that are alike (symmetry.py), a node and a type stand
for whole spheres, and the tables are averages over the angles between them. Arrays may have a
leading axis: a stack of problems of one shape, solved together because many small problems cost
mostly the calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.smoothing import smoothed
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.symmetry import angles, degrees, harmonic, multiplicity
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.designs import tensor, two_level
from onegrad.theory.nodes.population import Nodes, labels_at, single_axes
from onegrad.theory.nodes.rules import QuadratureLevel, axis_order

_DROPPED = 1e-7  # share of the slopes' table that is dropped: 1e-7 of the errors
_BESIDE_RIDGE = 1e-3  # the same: in units of the ridge, for each neuron
# Squared singular values of the slopes below this share of the largest are dropped
_RANK_TOLERANCE = 1e-12
_WEAKER = 1e-8  # the same for harmonics
_MEANS = 1e-11  # the same for the table of means, where losses are iterated over
_SMALLER = 1.5  # low rank pays if types outnumber the rank by this factor
_ANGULAR = 400_000  # table entries times angles held at once
_SLOPE_DEGREE = 1  # highest harmonic of the slopes; higher ones count as noise

Record = TypeVar("Record")


def one_of(stack: Record, index: int, **parts: Any) -> Record:
    """One problem of a stacked dataclass: its arrays at that index, and the `parts` given."""
    known, found = vars(stack), object.__new__(type(stack))
    values = vars(found)  # `__init__` would take longer than the arrays
    for name in _names(cast(Any, type(stack))):
        value = parts[name] if name in parts else known[name]
        if isinstance(value, np.ndarray) and name not in parts:
            value = np.asarray(value[index])
        values[name] = value
    return found


@lru_cache(maxsize=16)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


class Harmonic(NamedTuple):
    """A part of the features that is linear in coordinates of the sample, in some `copies`.

    One copy is Σ_a ω_ia table_is x_a/√p with p = `coordinates` independent x_a of a sample and as
    many random coefficients ω_ia of a neuron, all of variance one. The slopes have this form
    themselves: p = n', table b_i d_is.
    """

    copies: float
    coordinates: float
    table: Array


@dataclass(frozen=True)
class NodeFeatures:
    """The conditional Gaussian features ν_s + D_s Ŵ_⊥ x_⊥ + E_s^{1/2} g: T types at S nodes.

    mean, slope, extra : (T, S), eqs. mean-and-slope and remainder: ν_is = E_z σ(v_i·κ_s + b_i z),
        d_is = E_z σ'(…), e_is = Var_z σ(…) − b_i² d_is²
    bulk : (T,) b_i = |ŵ_{i,⊥}|; of the first block where the bulk is not flat
    counts : (T,) c_i, summing to the width k
    weights : (S,) ω_s, summing to one
    labels, noise : (S,) ȳ_s = E[y|κ_s], Var[y|κ_s]
    bulk_dim : n' = n − r, an array of no axes (or the leading one)
    tilt : (T,) or None; the rows of Ŵ_⊥ are correlated as b_i² δ_ij − tilt_i tilt_j when the
        direction W₀ᵀa is among those conditioned on (eq. tilt)
    harmonics : what nodes and types add that stand for whole spheres of directions
        (docs/book/structure.md), or the further blocks of a bulk that is not flat
        (docs/book/structure.md); no stacks
    dropped : squared singular values of the table of slopes below this part of the largest one are
    """

    mean: Array
    slope: Array
    extra: Array
    bulk: Array
    counts: Array
    weights: Array
    labels: Array
    noise: Array
    bulk_dim: Array
    tilt: Array | None = None
    harmonics: tuple[Harmonic, ...] = ()
    dropped: float = _RANK_TOLERANCE

    @staticmethod
    def stack(parts: Sequence[NodeFeatures]) -> NodeFeatures:
        """Problems of one shape, all with a tilt or none."""
        columns: dict[str, Any] = {}
        for f in fields(NodeFeatures):
            values = [getattr(p, f.name) for p in parts]
            columns[f.name] = np.stack(values) if isinstance(values[0], np.ndarray) else values[0]
        return NodeFeatures(**columns)

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """(U, V) with b_i d_is = (U Vᵀ)_is, U (T, R), V (S, R), by a truncated SVD."""
        table = self.slope * np.sqrt(self.counts * self.bulk**2)[..., None]
        return self._factored(table, self.dropped)

    def take(self, index: int) -> NodeFeatures:
        """One problem of a stack."""
        return one_of(self, index).with_factors(self, index)

    def with_factors(self, other: NodeFeatures, index: int | None = None) -> NodeFeatures:
        """The same with factors that are known of `other`, which has the same tables (at `index`)
        and perhaps other weights of its nodes: products do not depend on them."""
        for name in ("factors", "mean_factors"):
            if name in vars(other):
                known = vars(other)[name]
                if known is not None and index is not None:
                    known = tuple(part[index] for part in known)
                vars(self)[name] = known
        return self

    def repeated(self, times: int) -> NodeFeatures:
        """A stack of one and the same problem, without copies."""

        def copies(value: Array) -> Array:
            return np.broadcast_to(value, (times, *value.shape))

        columns: dict[str, Any] = {}
        for f in fields(NodeFeatures):
            value = getattr(self, f.name)
            columns[f.name] = copies(value) if isinstance(value, np.ndarray) else value
        stack = NodeFeatures(**columns)
        for name in ("factors", "mean_factors"):
            if name in vars(self):
                known = vars(self)[name]
                vars(stack)[name] = None if known is None else tuple(copies(p) for p in known)
        return stack

    def of_lower_rank(self, dropped: float) -> NodeFeatures:
        """With a table of slopes of lower rank. What it loses is as good as independent noise of
        the same variance: e_is grows by (b_i d_is − (U Vᵀ)_is)²."""
        if dropped not in self._lowered:
            u, v = factors = replace(self, dropped=dropped).factors
            lost = self.slope * self.bulk[..., None] - u @ v.mT
            found = replace(self, extra=self.extra + lost**2, dropped=dropped)
            vars(found)["factors"] = factors  # both have the same factors
            self._lowered[dropped] = found
        return self._lowered[dropped]

    @cached_property
    def _lowered(self) -> dict[float, NodeFeatures]:
        """Problems that differ only in what follows the features share features of lower rank."""
        return {}

    @cached_property
    def mean_factors(self) -> tuple[Array, Array] | None:
        """(A, B) with ν_is = (A Bᵀ)_is where the table of slopes is of lower rank, too; None where
        systems of types are as small."""
        if self.dropped == _RANK_TOLERANCE:
            return None
        factors = self._factored(self.mean * np.sqrt(self.counts)[..., None], _MEANS)
        small = _SMALLER * factors[0].shape[-1] < self.mean.shape[-2]
        return factors if small else None

    def mean_of_types(self, table: Array) -> tuple[Array, Array]:
        """Two factors of νᵀ·table, of a table with a row for each type; of one problem."""
        if self.mean_factors is None:
            return self.mean.T, table
        a, b = self.mean_factors
        return b, np.asarray(a.T @ table)

    @property
    def lift(self) -> Array | None:
        """(T,) tilt_i/b_i, if rows are tilted."""
        return None if self.tilt is None else self.tilt / self.bulk

    @cached_property
    def blocks(self) -> list[tuple[float, Array, Array, Array]]:
        """Multiplicity, coordinates and factors of the slopes and of each harmonic."""
        root = np.sqrt(self.counts)[..., None]
        others = [
            (h.copies, np.asarray(h.coordinates), *self._factored(h.table * root, _WEAKER))
            for h in self.harmonics
        ]
        return [(1.0, self.bulk_dim, *self.factors), *others]

    def _factored(self, scaled: Array, tolerance: float) -> tuple[Array, Array]:
        """(U, V) of a table whose rows have been multiplied by √c."""
        scaled = scaled * np.sqrt(self.weights)[..., None, :]
        types, nodes = scaled.shape[-2:]
        few = types <= nodes
        values, vectors = np.linalg.eigh(scaled @ scaled.mT if few else scaled.mT @ scaled)
        kept = values > np.maximum(tolerance * values[..., -1:], 1e-300)
        # at least one direction, an empty one if there is no slope at all, keeps the shapes alive
        rank = max(1, int(kept.sum(axis=-1).max()))
        basis = (vectors * kept[..., None, :])[..., -rank:]
        left, right = (basis, scaled.mT @ basis) if few else (scaled @ basis, basis)
        return left / np.sqrt(self.counts)[..., None], right / np.sqrt(self.weights)[..., None]


def dropped(features: NodeFeatures, ridges: Array) -> float:
    """Of the slopes' table. What is dropped is added to e, and so to the ridge (10)."""
    squares = (features.slope * features.bulk[..., None]) ** 2
    power = np.einsum("...i,...is,...s->...", features.counts, squares, features.weights)
    beside = _BESIDE_RIDGE * ridges * features.counts.sum(axis=-1) / np.maximum(power, 1e-300)
    return min(_DROPPED, float(np.min(beside)))


def features_at(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, where: Nodes
) -> NodeFeatures:
    """ν, d, e of every type at every node, and the labels there. Eqs. mean-and-slope and
    remainder."""
    if geometry.groups:
        mean, slope, extra, harmonics = averaged_tables(
            geometry, problem.activation, neurons, where
        )
    else:
        scale = np.broadcast_to(neurons.bulk[:, None], (len(neurons.bulk), len(where.weights)))
        shift = neurons.vectors @ where.kappa.T
        mean, slope, variance = smoothed(problem.activation, shift, scale)
        extra, harmonics = np.maximum(variance - (scale * slope) ** 2, 0.0), ()
    bulk, bulk_dim, tilt = neurons.bulk, float(neurons.bulk_dim), neurons.tilt
    if neurons.shares is not None and neurons.coordinates is not None:
        parts = neurons.bulk[:, None] * np.sqrt(neurons.shares)
        bulk, bulk_dim = parts[:, 0], float(neurons.coordinates[0])
        harmonics = tuple(
            Harmonic(1.0, float(p), b[:, None] * slope)
            for p, b in list(zip(neurons.coordinates, parts.T, strict=True))[1:]
        )
    labels = labels_at(problem, geometry, where)
    return NodeFeatures(
        mean, slope, extra, bulk, neurons.counts, where.weights, labels,
        np.full(len(labels), problem.label_noise_variance), np.asarray(bulk_dim),
        tilt, harmonics,
    )  # fmt: skip


def table_count(geometry: Geometry, level: QuadratureLevel) -> int:
    """How many tables of types × nodes features have: one for each harmonic of groups."""
    return len(degrees(len(geometry.groups), level.harmonics)) if geometry.groups else 1


def averaged_tables(
    geometry: Geometry, activation: Activation, neurons: NeuronTypes, where: Nodes
) -> tuple[Array, Array, Array, tuple[Harmonic, ...]]:
    """ν, d, e averaged over the angles within groups, and the harmonics of d and ν. Eqs. harmonics
    and blocks.

    A harmonic of degree l of ν is N_l coordinates of the sample that the readout can fit, beside
    the bulk's n'. What is not kept is counted as noise. O(types × nodes × angles), held in
    parts; memory two tables for each harmonic.
    """
    groups, single = geometry.groups, geometry.single
    axes, seen = single_axes(geometry, neurons.vectors.shape[1]), neurons.spread
    level = where.level or QuadratureLevel.at(1)
    kept = degrees(len(groups), level.harmonics)
    shape = (len(neurons.bulk), len(where.weights))
    values, slopes = np.zeros((len(kept), *shape)), np.zeros((len(kept), *shape))
    extra = np.zeros(shape)
    for c in range(len(geometry.weights)):
        mine = np.flatnonzero(where.component == c)
        if not mine.size:
            continue
        kappa = where.kappa[mine]
        shift = neurons.vectors[:, axes] @ kappa[:, axes].T
        orders, along = [], []
        for axis in range(single, geometry.rank):
            reach = float(seen[axis, axis] * geometry.covariances[c, axis, axis])
            orders.append(axis_order(reach, level))
            along.append(np.outer(neurons.vectors[:, axis], kappa[:, axis]))
        cosines, weight, zonal = _angular_rule(groups, tuple(orders), kept)
        step = max(1, _ANGULAR // (len(weight) * len(mine)))
        for rows in (slice(a, a + step) for a in range(0, shape[0], step)):
            moved = shift[None, rows] + np.tensordot(cosines, [a[rows] for a in along], 1)
            tall = moved.transpose(1, 0, 2).reshape(moved.shape[1], -1)  # rows share a scale
            value, slope, variance = (
                x.reshape(len(tall), len(weight), -1).transpose(1, 0, 2)
                for x in smoothed(activation, tall, neurons.bulk[rows, None])
            )
            extra[rows][:, mine] = np.tensordot(weight, variance + value**2, 1)
            values[:, rows][:, :, mine] = np.tensordot(zonal * weight, value, 1)
            slopes[:, rows][:, :, mine] = np.tensordot(zonal * weight, slope, 1)
    slopes *= neurons.bulk[:, None]
    found = []
    extra -= values[0] ** 2 + slopes[0] ** 2
    for degree, value, slope in zip(kept[1:], values[1:], slopes[1:], strict=True):
        count = math.prod(multiplicity(g, d) for g, d in zip(groups, degree, strict=True))
        pair = [Harmonic(1.0, count, math.sqrt(count) * value)]
        if sum(degree) <= _SLOPE_DEGREE:
            pair.append(Harmonic(count, float(neurons.bulk_dim), slope))
        found += pair
        extra -= sum(h.copies * h.table**2 for h in pair)
    return values[0], slopes[0] / neurons.bulk[:, None], np.maximum(extra, 0.0), tuple(found)


@lru_cache(maxsize=64)
def _angular_rule(
    groups: tuple[int, ...], orders: tuple[int, ...], kept: tuple[tuple[int, ...], ...]
) -> tuple[Array, Array, Array]:
    """Cosines (Q, groups) and weights (Q,) of all groups together, and the harmonics (L, Q) there.

    Groups in which preactivations hardly move share a two-level design, exact to degree three.
    """
    weak = [j for j, order in enumerate(orders) if order <= 2]
    strong = [j for j, order in enumerate(orders) if order > 2]
    points, w = two_level(len(weak))
    scaled = points / np.sqrt([groups[j] for j in weak])
    nodes, weights = tensor([*(angles(groups[j], orders[j])[:2] for j in strong), (scaled, w)])
    cosines = np.empty_like(nodes)
    cosines[:, strong + weak] = nodes
    zonal = np.ones((len(kept), len(weights)))
    for row, degree in zip(zonal, kept, strict=True):
        for j, d in enumerate(degree):
            row *= harmonic(groups[j], d, cosines[:, j]) if d < orders[j] else 0.0
    return cosines, weights, zonal
