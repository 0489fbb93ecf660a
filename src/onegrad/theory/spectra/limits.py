"""Limiting spectra of Ŵ and of the features σ(XŴᵀ)/√m, nothing trained.

Types of neurons after the step(s) and nodes of the data as in the theory of the errors: the bulk is
that of what is random given them, the outliers come from the mean part of the features and from
the coordinates of the weights in the special directions (docs/book/spectra.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.chance import chance_of
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.layers.features import Harmonic, NodeFeatures, features_at
from onegrad.theory.neurons.recursion import NoiseDirections, recursion_holds, trained_types
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import data_nodes, quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for
from onegrad.theory.spectra.functions import strong_axis_nodes, unit_functions
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.outliers import (
    FiniteRank,
    Outlier,
    Outliers,
    Seen,
    find_outliers,
    mean_outliers,
)
from onegrad.theory.spectra.resolvent import Resolvent
from onegrad.theory.task import Task

# Levels of the rules; the density needs many points, so a coarser one
_LAW_LEVEL, _OUTLIER_LEVEL = 1, 2
_MOST_NODES = 500  # most nodes of a rule, for speed; errors use up to 2,400
_SEEN = 512  # nodes per component for alignments: they need polynomials of degree six
# Weights have outliers along these directions
NOISE = NoiseDirections(most=6, visible=0.01)


@dataclass(frozen=True)
class MatrixLimit:
    """What the limit says about one matrix.

    law : of its bulk; outliers : beyond it, largest first
    strengths : ℓ of the leading directions at the edge; above 1 they leave the bulk  [baik2006]
    """

    law: SpectralLaw
    outliers: tuple[Outlier, ...]
    strengths: Array


@dataclass(frozen=True)
class LimitingSpectrum:
    """Limits of the weights Ŵ and of the features F/√m after the step(s)."""

    weights: MatrixLimit
    features: MatrixLimit

    def __repr__(self) -> str:
        lines = ["Limiting spectrum"]
        for name, one in (("weights", self.weights), ("features", self.features)):
            found = ", ".join(f"{o.singular_value:.3f}" for o in one.outliers) or "none"
            lines.append(f"  {name:9} bulk up to {math.sqrt(one.law.edge):.3f}, outliers {found}")
        return "\n".join(lines)


def why_no_limit(problem: Problem) -> str:
    """Why the limiting spectra of a problem are not known, or nothing."""
    data, training = problem.data, problem.training
    several = problem.trained and training.steps > 1
    if not data.known or data.own_nodes:
        return "the law of these data is not known"
    if data.bulk_eigenvalues is not None and several:
        return "types of neurons after several steps are known for a flat bulk only"
    isotropic = data.isotropic and problem.network.convention == "isotropic"
    if isotropic and (problem.strength or 0.0) >= 1:
        return "it needs a step below √m, an exponent below 1/2"
    if problem.outputs > 1:
        return "neurons have as many initial readouts as there are classes"
    if problem.trained and training.optimiser != "gd":
        return f'no types of neurons are known for optimiser = "{training.optimiser}"'
    if several and not recursion_holds(problem, spectra=True):
        return (
            "several steps have types of neurons on fresh batches in the mixture convention, or of "
            "the gradient of the labels alone"
        )
    return ""


def spectral_limit(problem: Problem, overlaps: str = "auto", seed: int = 0) -> LimitingSpectrum:
    """Bulks, outliers and alignments of weights and features; about a second, up to half a minute
    after a step on a bulk that is not flat.

    overlaps, seed : as for `geometry_of`; "drawn" for a comparison with that draw

    Raises AssumptionError where no limit is known (`why_no_limit`).
    """
    if reason := why_no_limit(problem):
        raise AssumptionError(f"no limiting spectrum: {reason}")
    chance = chance_of(problem, overlaps, seed)
    plain = replace(chance.typical, chance=None)
    if plain.geometry.levels is not None:
        plain = replace(plain, geometry=geometry_of(problem, overlaps, seed, spectra=True))
    if plain.geometry.special >= plain.policy.many_directions:
        raise AssumptionError(
            f"no limiting spectrum: {plain.geometry.special} special directions are too many"
        )
    neurons, features = resolved(plain, _LAW_LEVEL)
    atoms = 1 - neurons.bulk_dim / problem.width, 1 - problem.samples / problem.width
    bulks = bulk_of_weights(neurons, plain.geometry), bulk_of_features(features, problem.samples)
    laws = [SpectralLaw.of(b, max(0.0, atom)) for b, atom in zip(bulks, atoms, strict=True)]
    # the mean of the step's chance along strong directions is zero, but outliers grow with its
    # square (docs/book/chance-and-size.md)
    tasks, shares = chance.steps() if chance.strong else ([plain], np.ones(1))
    edges = laws[0].edge, laws[1].edge
    parts = [outliers_of(task, *resolved(task, _OUTLIER_LEVEL), edges) for task in tasks]
    limits = []
    for law, found in zip(laws, zip(*parts, strict=True), strict=True):
        count = min(len(one.strengths) for one in found)
        strengths = shares @ np.array([one.strengths[:count] for one in found])
        outliers = mean_outliers(found, shares, math.sqrt(law.edge))
        limits.append(MatrixLimit(law, outliers, strengths))
    return LimitingSpectrum(*limits)


def outliers_of(
    task: Task, neurons: NeuronTypes, features: NodeFeatures, edges: tuple[float, float]
) -> tuple[Outliers, Outliers]:
    """Of weights and features, beyond these edges."""
    geometry = task.geometry
    root = _roots(geometry, neurons.vectors.shape[1])
    part = FiniteRank(neurons.vectors / root, np.eye(len(root)), fixed=True)
    mean = FiniteRank.of_table(features.mean, features.counts, features.weights)
    named = _projections(task, neurons)
    weights, bulk = (
        bulk_of_weights(neurons, geometry),
        bulk_of_features(features, task.problem.samples),
    )
    return (
        find_outliers(weights, part, edges[0], Seen.directions(named)),
        find_outliers(bulk, mean, edges[1], _seen(task, neurons, named)),
    )


def _level(task: Task, number: int) -> QuadratureLevel:
    level = level_for(task.problem, task.geometry, QuadratureLevel.at(number))
    return replace(level, most=min(level.most, _MOST_NODES), halves=True)


def resolved(task: Task, number: int) -> tuple[NeuronTypes, NodeFeatures]:
    """Types, and features at the nodes, at one resolution."""
    problem, geometry, level = task.problem, task.geometry, _level(task, number)
    neurons = _present(trained_types(problem, geometry, level, task.chance, noise=NOISE))
    if geometry.levels is None:
        where = data_nodes(problem, geometry, neurons.spread, level)
    else:
        where = strong_axis_nodes(geometry, neurons.spread, level)
    return neurons, features_at(problem, geometry, neurons, where)


def _present(neurons: NeuronTypes) -> NeuronTypes:
    """Without the nodes of the readout that stand for less than half a neuron together: far out in
    the tail, they would move the edge of a bulk that no network has."""
    if neurons.readout is None:
        return neurons
    _, owner = np.unique(np.round(neurons.readout, 12), return_inverse=True)
    kept = np.bincount(owner, neurons.counts)[owner] > 0.5
    shares = None if neurons.shares is None else neurons.shares[kept]
    return replace(neurons.of(kept), shares=shares)


def _projections(task: Task, neurons: NeuronTypes) -> dict[str, Array]:
    """Named unit directions along the axes of the types: teacher, spikes, means, the step.

    They are those of the inputs x; where the bulk is Λ, axes are those of Λ^{−½}x, the teacher is
    seen as Λ^{½}ξ, and spikes and means are Λ^{−½}γ and Λ^{−½}μ there.
    """
    problem, geometry, size = task.problem, task.geometry, neurons.vectors.shape[1]
    root = _roots(geometry, size)
    named = dict(geometry.directions)
    if problem.links is None:
        named.pop("teacher", None)
    named |= {f"mean {c + 1}": mean for c, mean in enumerate(geometry.means) if np.any(mean)}
    found = {}
    for name, vector in named.items():
        padded = np.pad(vector, (0, size - len(vector)))
        found[name] = padded / root if name.startswith("teacher") else padded * root
    if problem.trained and neurons.readout is not None:
        moved = (neurons.counts * neurons.readout) @ neurons.vectors
        found["step"] = (moved - _along_readout(task, neurons)) / root
    return {name: vector / np.linalg.norm(vector) for name, vector in found.items()}


def _along_readout(task: Task, neurons: NeuronTypes) -> Array:
    """W₀ᵀa in the types' coordinates, where it is one of them: no part of the step."""
    before = np.zeros(neurons.vectors.shape[1])
    if neurons.tilt is None:
        return before
    problem, chance = task.problem, task.chance
    free = problem.dim - (chance.directions if chance else 0)
    before[-2] = math.sqrt(free * problem.weight_variance * problem.width * problem.readout_square)
    if chance is not None:
        before[: len(chance.output)] += chance.output
    return before


def _roots(geometry: Geometry, size: int) -> Array:
    """√λ along each of the types' axes: ones where the bulk is flat."""
    if geometry.levels is None:
        return np.ones(size)
    return np.sqrt(np.concatenate([geometry.levels.axes, geometry.levels.values])[:size])


def _seen(task: Task, neurons: NeuronTypes, named: dict[str, Array]) -> Seen:
    """The constant, components, and Hermite polynomials of every projection."""
    geometry, level, size = task.geometry, _level(task, _OUTLIER_LEVEL), neurons.vectors.shape[1]
    root = _roots(geometry, size)
    directions = {name: root * v / np.linalg.norm(root * v) for name, v in named.items()}
    if geometry.groups:
        where = quasi_nodes(geometry, _SEEN, size, level)
    else:
        where = strong_axis_nodes(geometry, neurons.spread, level, _SEEN)
    features = features_at(task.problem, geometry, neurons, where)
    names, unit = unit_functions(geometry, directions, where)
    tables = [slopes.table for slopes in slopes_of(features)]
    return Seen(names, unit, where.weights, features.mean, features.extra, tables)


def slopes_of(features: NodeFeatures) -> list[Harmonic]:
    """All that is linear in coordinates which entries share."""
    table = features.slope * features.bulk[:, None]
    return [Harmonic(1.0, float(features.bulk_dim), table), *features.harmonics]


def bulk_of_features(features: NodeFeatures, samples: float) -> Resolvent:
    """FᵀF/m: slopes and noise given the nodes; the means there are of finite rank."""
    return Resolvent(features.extra, slopes_of(features), features.counts, features.weights,
                     float(samples), features.lift)  # fmt: skip


def bulk_of_weights(neurons: NeuronTypes, geometry: Geometry | None) -> Resolvent:
    """ŴŴᵀ: rows b_i/√n' times white noise in n' coordinates; v_i is of finite rank.

    Where the bulk is not flat, the coordinates are in blocks: b_ij²/(p_jλ_j) for each.
    """
    square, size = neurons.bulk[:, None] ** 2, float(neurons.bulk_dim)
    if neurons.shares is not None and neurons.coordinates is not None:
        assert geometry is not None and geometry.levels is not None
        p, values = neurons.coordinates, geometry.levels.values
        table = square * neurons.shares * (p.sum() / (p * values))
        return Resolvent(table, (), neurons.counts, p / p.sum(), float(p.sum()))
    lift = None if neurons.tilt is None else neurons.tilt / neurons.bulk
    return Resolvent(square, (), neurons.counts, np.ones(1), size, lift)
