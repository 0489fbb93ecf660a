"""Features of the theory at nodes of the data: ν, d, e of every type of neuron at every node.

Where the geometry has groups of directions that are alike (symmetry.py), a node and a type stand
for whole spheres, and the tables are averages over the angles between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from onegrad.activation import Activation
from onegrad.hermite import Array
from onegrad.theory.fixed_point import Features, Harmonic
from onegrad.theory.geometry import Geometry, Labels, Training
from onegrad.theory.neurons import Neurons, label_means
from onegrad.theory.nodes import Effort, axis_order, component_nodes, tensor, two_level
from onegrad.theory.smoothing import smoothed
from onegrad.theory.symmetry import (
    angles,
    degrees,
    harmonic,
    multiplicity,
    radial_importance,
    radius,
)

_ANGULAR = 400_000  # table entries times angles held at once
_SLOPE_DEGREE = 1  # harmonics of the slopes beyond are as good as noise


@dataclass(frozen=True)
class Nodes:
    """Where the data are looked at: κ, component and weight of every node."""

    kappa: Array  # (S, r') with the coordinates of further directions last
    component: np.ndarray  # (S,)
    weights: Array  # (S,)
    effort: Effort | None = None  # needed where the geometry has groups


def data_nodes(geometry: Geometry, labels: Labels, neurons: Neurons, effort: Effort) -> Nodes:
    """Nodes of fresh data in the coordinates of the neurons, component after component."""
    single = geometry.rank - len(geometry.groups)
    axes = single_axes(geometry, neurons)
    extra = len(axes) - single
    label = None
    if labels.links is not None:
        label = np.concatenate([geometry.teacher[:single], np.zeros(extra)])
    centre = None
    if labels.separating:
        centre = np.concatenate([geometry.weights @ geometry.means[:, :single], np.zeros(extra)])
    parts, owners, weights, seen = [], [], [], neurons.spread
    spread = seen[np.ix_(axes, axes)]
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        mean = np.concatenate([geometry.means[c, :single], np.zeros(extra)])
        root = np.eye(len(axes))
        root[:single, :single] = geometry.roots[c, :single, :single]
        kinks = () if labels.links is None else labels.links[c].kinks
        further = np.array([
            radial_importance(
                seen[a, a] / size * geometry.covariances[c, a, a], size, labels.separating
            )
            for a, size in enumerate(geometry.groups, start=single)
        ])  # fmt: skip
        z, w = component_nodes(
            mean, root, spread, effort, label, kinks, centre, further if further.size else None
        )
        parts.append(with_lengths(geometry, c, axes, z, radius))
        owners.append(np.full(len(w), c))
        weights.append(weight * w)
    return Nodes(np.concatenate(parts), np.concatenate(owners), np.concatenate(weights), effort)


def single_axes(geometry: Geometry, neurons: Neurons) -> list[int]:
    """Axes that stand for one direction each: those of the geometry, then those of the step."""
    single = geometry.rank - len(geometry.groups)
    return [*range(single), *range(geometry.rank, neurons.vectors.shape[1])]


def with_lengths(
    geometry: Geometry,
    component: int,
    axes: list[int],
    z: Array,
    law: Callable[[Array, int], Array],
) -> Array:
    """κ from coordinates along single axes and, last, one Gaussian for each group's length.

    law : |Z_g| as a function of that Gaussian and g
    """
    if not geometry.groups:
        return z
    single = geometry.rank - len(geometry.groups)
    kappa = np.empty_like(z)
    kappa[:, axes] = z[:, : len(axes)]
    for j, size in enumerate(geometry.groups):
        scale = math.sqrt(float(geometry.covariances[component, single + j, single + j]))
        kappa[:, single + j] = scale * law(z[:, len(axes) + j], size)
    return kappa


def features_at(
    geometry: Geometry, labels: Labels, training: Training, neurons: Neurons, where: Nodes
) -> Features:
    """ν, d, e of every type at every node, and the labels there  (docs/theory.md eq. (5)–(7))."""
    if geometry.groups:
        tables = averaged_tables(geometry, training.activation, neurons, where)
    else:
        scale = np.broadcast_to(neurons.bulk[:, None], (len(neurons.bulk), len(where.weights)))
        shift = neurons.vectors @ where.kappa.T
        value, slope, variance = smoothed(training.activation, shift, scale)
        tables = value, slope, np.maximum(variance - (scale * slope) ** 2, 0.0), ()
    target = np.empty(len(where.weights))
    for c in range(len(geometry.weights)):
        mine = where.component == c
        target[mine] = label_means(geometry, labels, c, where.kappa[mine])
    return Features(
        mean=tables[0],
        slope=tables[1],
        extra=tables[2],
        bulk=neurons.bulk,
        counts=neurons.counts,
        weights=where.weights,
        labels=target,
        noise=np.full(len(target), labels.noise**2),
        bulk_dim=np.asarray(float(neurons.bulk_dim)),
        tilt=neurons.tilt,
        harmonics=tables[3],
    )


def averaged_tables(
    geometry: Geometry, activation: Activation, neurons: Neurons, where: Nodes
) -> tuple[Array, Array, Array, tuple[Harmonic, ...]]:
    """ν, d, e averaged over the angles within groups, and the harmonics of d and ν.

    A harmonic of degree l of ν is N_l coordinates of the sample that the readout can fit, beside
    the bulk's n'. What is not kept is counted as noise. O(types × nodes × angles), held in
    parts; memory two tables for each harmonic.
    """
    groups, single = geometry.groups, geometry.rank - len(geometry.groups)
    axes, seen = single_axes(geometry, neurons), neurons.spread
    effort = where.effort or Effort.level(1)
    kept = degrees(len(groups), effort.harmonics)
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
            orders.append(axis_order(reach, effort))
            along.append(np.outer(neurons.vectors[:, axis], kappa[:, axis]))
        cosines, weight, levels = _angular_rule(groups, tuple(orders), kept)
        step = max(1, _ANGULAR // (len(weight) * len(mine)))
        for rows in (slice(a, a + step) for a in range(0, shape[0], step)):
            moved = shift[None, rows] + np.tensordot(cosines, [a[rows] for a in along], 1)
            tall = moved.transpose(1, 0, 2).reshape(moved.shape[1], -1)  # rows share a scale
            value, slope, variance = (
                x.reshape(len(tall), len(weight), -1).transpose(1, 0, 2)
                for x in smoothed(activation, tall, neurons.bulk[rows, None])
            )
            extra[rows][:, mine] = np.tensordot(weight, variance + value**2, 1)
            values[:, rows][:, :, mine] = np.tensordot(levels * weight, value, 1)
            slopes[:, rows][:, :, mine] = np.tensordot(levels * weight, slope, 1)
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
    levels = np.ones((len(kept), len(weights)))
    for row, degree in zip(levels, kept, strict=True):
        for j, d in enumerate(degree):
            row *= harmonic(groups[j], d, cosines[:, j]) if d < orders[j] else 0.0
    return cosines, weights, levels
