"""The 1/n correction of the readout on a given first layer: docs/book/any-first-layer.md.

The ratio of the errors of the free energy to those of its fixed point (ratio.py), for types
of neurons like those of the layer. Which neurons were drawn does not fluctuate: they are given. So
are their bulks, whose fluctuations stay in the ratio all the same: taken back they moved errors by
less than 0.1 % at n = 120.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.layers.features import Harmonic, NodeFeatures
from onegrad.theory.layers.given import GivenLayer, Part, twice
from onegrad.theory.layers.rules import MOST_NODES, nodes_of
from onegrad.theory.nodes.population import Nodes, labels_at
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.policy import Policy
from onegrad.theory.readout.errors import Correction, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.size.cumulants import Cumulants
from onegrad.theory.size.ratio import (
    NoCorrection,
    attempted,
    parts_of_errors,
)

_TYPES = 96  # clusters of neurons, at most
_ROUNDS = 8  # rounds of k-means
_LARGEST_CORRECTION = 0.5  # relative corrections beyond are no expansion any more


@dataclass(frozen=True)
class _Types:
    layer: GivenLayer
    counts: Array


def clustered(layer: GivenLayer, most: int = _TYPES) -> _Types:
    """Neurons that are alike as one type: k-means in what they see of κ and in their bulks."""
    k = len(layer.bulk)
    if k <= most:
        return _Types(layer, np.ones(k))
    geometry, columns = layer.geometry, [layer.bulk[:, None] / np.sqrt(np.mean(layer.bulk**2))]
    for weight, root, part in zip(geometry.weights, geometry.roots, layer.parts, strict=True):
        size = np.sqrt(weight / np.mean(part.spread**2))
        seen = (part.slope @ root, part.offset[:, None], part.spread[:, None])
        columns += [size * column for column in seen]
    points = np.concatenate(columns, axis=1)
    owner = _owners(points, most)
    counts = np.bincount(owner, minlength=most).astype(float)
    kept = counts > 0

    def mean(values: Array) -> Array:
        total = np.zeros((most, *values.shape[1:]))
        np.add.at(total, owner, values)
        shape = (-1,) + (1,) * (values.ndim - 1)
        return total[kept] / counts[kept].reshape(shape)

    parts = tuple(
        Part(mean(p.offset), mean(p.slope), np.sqrt(mean(p.spread**2))) for p in layer.parts
    )
    shares = mean(layer.shares)
    few = replace(layer, parts=parts, bulk=np.sqrt(mean(layer.bulk**2)), shares=shares)
    return _Types(few, counts[kept])


def _owners(points: Array, most: int) -> np.ndarray:
    """k-means from points that are far from each other: the same every time."""
    centres = [points[0]]
    distance = np.full(len(points), np.inf)
    for _ in range(most - 1):
        distance = np.minimum(distance, np.sum((points - centres[-1]) ** 2, axis=1))
        centres.append(points[int(np.argmax(distance))])
    middle = np.array(centres)
    for _ in range(_ROUNDS):
        square = np.sum(middle**2, axis=1) - 2 * points @ middle.T
        owner = np.argmin(square, axis=1)
        counts = np.bincount(owner, minlength=most)
        total = np.zeros_like(middle)
        np.add.at(total, owner, points)
        middle = np.where(counts[:, None] > 0, total / np.maximum(counts, 1)[:, None], middle)
    return np.asarray(owner)


def correction_at(
    problem: Problem, layer: GivenLayer, level: QuadratureLevel, policy: Policy
) -> Correction:
    """Of order 1/n, or why there is none."""
    with np.errstate(all="ignore"):  # numbers that are not finite end in ConvergenceError
        found = attempted(
            lambda: size_correction(problem, layer, nodes_of(problem, layer, level), policy),
            _LARGEST_CORRECTION,
        )
    if isinstance(found, NoCorrection):
        return Correction(remainder=found.seen, left_out=(found.reason,))
    return found


def size_correction(
    problem: Problem, layer: GivenLayer, where: Nodes, policy: Policy
) -> Correction | NoCorrection:
    """The ratios at those nodes; about 0.1 s at 50 of them, 1 s at 250."""
    if len(where.weights) > MOST_NODES:
        return NoCorrection(f"{len(where.weights)} nodes are too many for it")
    if layer.outside < policy.smallest_bulk:
        return NoCorrection(f"{layer.outside} directions beside the special ones are too few")
    types = clustered(layer)
    features = _features(problem, types, where)
    samples, ridge = float(problem.samples), problem.effective_ridge
    limit = errors_of(solve_fixed_point(features, samples, ridge))
    # Nothing to learn: the errors are zero
    if not (limit.test_error > 0 and limit.train_error > 0):
        return Correction()
    beyond = _cumulants(types, where)
    errors, added, low = parts_of_errors(problem, features, where, beyond, neurons=False)
    found = Correction(*((errors + added) / low).tolist())
    # where features are far from Gaussian an expansion in their cumulants is no help
    by_cumulants = float(np.abs(added / low)[:2].max())
    least = policy.layer_open + policy.of_chaos / layer.effective + by_cumulants
    return replace(found, remainder=found.size**2 + policy.layer_correction * found.size + least)


def _features(problem: Problem, types: _Types, where: Nodes) -> NodeFeatures:
    """What is special beside the axes is a block of its own for every component, whose neurons
    have as many random coefficients as there are such directions; so are the further blocks of a
    bulk that is not flat."""
    layer, geometry, all_nodes = types.layer, types.layer.geometry, twice(where)
    component, tables = all_nodes.component, layer.tables(where)
    scale = np.stack([part.spread for part in layer.parts], axis=1)[:, component]
    labels = labels_at(problem, geometry, all_nodes)
    harmonics = []
    for c, part in enumerate(layer.parts):
        more = np.sqrt(np.maximum(part.spread**2 - layer.bulk**2, 0.0))
        if layer.special > geometry.rank and np.any(component == c):
            table = more[:, None] * tables.slope * (component == c)
            harmonics.append(Harmonic(1.0, float(layer.special - geometry.rank), table))
    bulk = layer.bulk if harmonics else layer.parts[0].spread
    blocks = bulk[:, None] * np.sqrt(layer.shares)
    for own, count in zip(blocks.T[1:], layer.coordinates[1:], strict=True):
        harmonics.append(Harmonic(1.0, float(count), own[:, None] * tables.slope))
    return NodeFeatures(
        tables.mean, tables.slope, tables.variance - (scale * tables.slope) ** 2, blocks[:, 0],
        types.counts, all_nodes.weights, labels,
        np.full(len(labels), problem.label_noise_variance), np.asarray(float(layer.coordinates[0])),
        None, tuple(harmonics),
    )  # fmt: skip


def _cumulants(types: _Types, where: Nodes) -> Cumulants:
    """Without the lengths of neurons, which are given, and without quadratic forms of the bulk,
    which the couplings of the layer know."""
    layer = types.layer
    shift, scale = layer.preactivations(where)
    found = Cumulants.of(layer.activation, shift, scale, np.zeros(len(layer.bulk)), layer.effective)
    return replace(found, curvature=0 * found.curvature)
