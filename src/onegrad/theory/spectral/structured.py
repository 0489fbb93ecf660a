"""Limiting spectra of Ŵ and of the features σ(XŴᵀ)/√m under structure, nothing trained.

Types of neurons after the step(s) and nodes of the data as in the theory of the errors: the bulk is
that of what is random given them, the outliers come from the mean part of the features and from
the coordinates of the weights in the special directions (docs/structure.md, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.polynomials import orthonormal_hermite
from onegrad.problem import Problem
from onegrad.theory.chance import law_of
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.features import NodeFeatures, features_at
from onegrad.theory.layers.recursion import recursion_holds, trained_types
from onegrad.theory.layers.types import NeuronTypes
from onegrad.theory.nodes.population import Nodes, data_nodes, quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.overlaps import geometry_of
from onegrad.theory.resolution import MANY_DIRECTIONS, Task, level_for
from onegrad.theory.spectral.finite_rank import (
    FiniteRank,
    Outlier,
    Seen,
    find_outliers,
)
from onegrad.theory.spectral.law import SpectralLaw
from onegrad.theory.spectral.resolvent import Resolvent, Slopes

DEGREES = 3  # Hermite polynomials of a projection that outliers are compared with
_LAW_LEVEL, _OUTLIER_LEVEL = 1, 2  # resolutions: the density needs many points, and less
_HALF = 0.5
_MOST_NODES = 500
_SEEN = 512  # nodes of each component for alignments


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
class StructuredLimit:
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
    if not data.known or data.own_nodes:
        return "the law of these data is not known"
    if data.bulk_eigenvalues is not None and problem.trained and training.steps > 1:
        return "types of neurons after several steps are known for a flat bulk only"
    isotropic = data.isotropic and problem.network.convention == "isotropic"
    if isotropic and (problem.strength or 0.0) >= 1:
        return "it needs a step below √m, an exponent below 1/2"
    if problem.outputs > 1:
        return "neurons have as many initial readouts as there are classes"
    if problem.trained and training.optimiser != "gd":
        return f'no types of neurons are known for optimiser = "{training.optimiser}"'
    if problem.trained and training.steps > 1 and not recursion_holds(problem):
        return "several steps have types of neurons on fresh batches in the mixture convention only"
    return ""


def structured_limit(problem: Problem, overlaps: str = "auto", seed: int = 0) -> StructuredLimit:
    """Bulks, outliers and alignments of weights and features; about a second, up to half a minute
    after a step on a bulk that is not flat.

    overlaps, seed : as for `geometry_of`; "drawn" for a comparison with that draw

    Raises AssumptionError where no limit is known (`why_no_limit`).
    """
    if reason := why_no_limit(problem):
        raise AssumptionError(f"no limiting spectrum: {reason}")
    law = law_of(problem, overlaps, seed)
    # the chance of the step along strong directions has the mean zero, and outliers are for that
    task = replace(law.task(law.typical), chance=None)
    if task.geometry.levels is not None:
        task = replace(task, geometry=geometry_of(problem, overlaps, seed, spectra=True))
    geometry = task.geometry
    if geometry.special >= MANY_DIRECTIONS:
        raise AssumptionError(
            f"no limiting spectrum: {geometry.special} special directions are too many"
        )
    neurons, features, seen = _resolved(task, _OUTLIER_LEVEL)
    law_neurons, law_features, _ = _resolved(task, _LAW_LEVEL)
    width, m = problem.width, float(problem.samples)
    weights = _weights(neurons, geometry), _weights(law_neurons, geometry)
    root = _roots(geometry, neurons.vectors.shape[1])
    part = FiniteRank(neurons.vectors / root, np.eye(len(root)), fixed=True)
    mean = FiniteRank.of_table(features.mean, features.counts, features.weights)
    named = _projections(problem, geometry, neurons)
    atoms = max(0.0, 1 - neurons.bulk_dim / width), max(0.0, 1 - m / width)
    pair = _features(features, m), _features(law_features, m)
    return StructuredLimit(
        _limit(weights, part, atoms[0], named), _limit(pair, mean, atoms[1], seen)
    )


def _resolved(task: Task, number: int) -> tuple[NeuronTypes, NodeFeatures, Seen]:
    """Types, features at the nodes, and what outliers are compared with, at one resolution."""
    problem, geometry = task.problem, task.geometry
    level = level_for(problem, geometry, QuadratureLevel.at(number))
    level = replace(level, most=min(level.most, _MOST_NODES))
    neurons = _present(trained_types(problem, geometry, level, task.chance, rows="isotropic"))
    fine = quasi_nodes(geometry, _SEEN, neurons.vectors.shape[1], level)
    if geometry.levels is None:
        where = data_nodes(problem, geometry, neurons.spread, level)
    else:  # an axis for each block: rules would have too few nodes along each
        where = fine
    features = features_at(problem, geometry, neurons, where)
    root = _roots(geometry, neurons.vectors.shape[1])
    named = _projections(problem, geometry, neurons)
    projections = {name: root * v / np.linalg.norm(root * v) for name, v in named.items()}
    seen = _seen(features_at(problem, geometry, neurons, fine), fine, projections)
    return neurons, features, seen


def _present(neurons: NeuronTypes) -> NeuronTypes:
    """Without the nodes of the readout that stand for less than half a neuron together: far out in
    the tail, they would move the edge of a bulk that no network has."""
    if neurons.readout is None:
        return neurons
    _, owner = np.unique(np.round(neurons.readout, 12), return_inverse=True)
    kept = np.bincount(owner, neurons.counts)[owner] > _HALF
    counts = neurons.counts[kept] * (neurons.counts.sum() / neurons.counts[kept].sum())
    tilt = None if neurons.tilt is None else neurons.tilt[kept]
    shares = None if neurons.shares is None else neurons.shares[kept]
    return replace(
        neurons, vectors=neurons.vectors[kept], bulk=neurons.bulk[kept], counts=counts, tilt=tilt,
        readout=neurons.readout[kept], shares=shares,
    )  # fmt: skip


def _projections(problem: Problem, geometry: Geometry, neurons: NeuronTypes) -> dict[str, Array]:
    """Named unit directions along the axes of the types: teacher, spikes, means, the step.

    They are those of the inputs x; where the bulk is Λ, axes are those of Λ^{−½}x, the teacher is
    seen as Λ^{½}ξ, and spikes and means are Λ^{−½}γ and Λ^{−½}μ there.
    """
    size = neurons.vectors.shape[1]
    root = _roots(geometry, size)
    named = dict(geometry.directions)
    if problem.links is None:
        named.pop("teacher", None)
    for c, mean in enumerate(geometry.means):
        if np.any(mean):
            named[f"mean {c + 1}"] = mean
    found = {}
    for name, vector in named.items():
        padded = np.zeros(size)
        padded[: len(vector)] = vector
        found[name] = padded / root if name.startswith("teacher") else padded * root
    if problem.trained and neurons.readout is not None:
        found["step"] = (neurons.counts * neurons.readout) @ neurons.vectors / root
    return {name: vector / np.linalg.norm(vector) for name, vector in found.items()}


def _roots(geometry: Geometry, size: int) -> Array:
    """√λ along each of the types' axes: ones where the bulk is flat."""
    if geometry.levels is None:
        return np.ones(size)
    return np.sqrt(np.concatenate([geometry.levels.axes, geometry.levels.values])[:size])


def _seen(features: NodeFeatures, where: Nodes, projections: dict[str, Array]) -> Seen:
    """The constant, components, and Hermite polynomials of every projection."""
    components = {
        f"component {c + 1}": (where.component == c).astype(float)
        for c in np.unique(where.component)
    }
    functions = sample_functions(
        {name: where.kappa @ v for name, v in projections.items()}, components, where.weights
    )
    return Seen(functions, where.weights, features.mean, features.extra, _slopes(features))


def _slopes(features: NodeFeatures) -> list[Slopes]:
    first = Slopes(1.0, float(features.bulk_dim), features.slope * features.bulk[:, None])
    others = [Slopes(h.copies, float(h.coordinates), h.table) for h in features.harmonics]
    return [first, *others]


def sample_functions(
    projections: dict[str, Array], components: dict[str, Array], weights: Array
) -> dict[str, Array]:
    """Functions of samples that singular vectors are compared with, at nodes or samples with
    `weights` (S,) that sum to one: "constant", "component 1", "teacher", "teacher H2", …"""
    found = {"constant": np.ones(len(weights))}
    if len(components) > 1:
        found |= {name: member - weights @ member for name, member in components.items()}
    for name, t in projections.items():
        centred = t - weights @ t
        spread = math.sqrt(float(weights @ centred**2))
        if spread == 0:
            continue
        table = orthonormal_hermite(DEGREES, centred / spread)
        for degree in range(1, DEGREES + 1):
            key = name if degree == 1 else f"{name} H{degree}"
            psi = table[degree]
            found[key] = psi - weights @ psi
    return found


def _weights(neurons: NeuronTypes, geometry: Geometry) -> Resolvent:
    """ŴŴᵀ: rows b_i/√n' times white noise in n' coordinates; v_i is of finite rank.

    Where the bulk is not flat, the coordinates are in blocks: b_ij²/(p_jλ_j) for each.
    """
    if neurons.shares is not None and neurons.coordinates is not None:
        assert geometry.levels is not None
        p, values = neurons.coordinates, geometry.levels.values
        table = neurons.bulk[:, None] ** 2 * neurons.shares * (p.sum() / (p * values))
        return Resolvent(table, (), neurons.counts, p / p.sum(), float(p.sum()))
    size = float(neurons.bulk_dim)
    return Resolvent(neurons.bulk[:, None] ** 2, (), neurons.counts, np.ones(1), size)


def _features(features: NodeFeatures, samples: float) -> Resolvent:
    """FᵀF/m: slopes and noise given the nodes; the means there are of finite rank."""
    slopes = _slopes(features)
    return Resolvent(features.extra, slopes, features.counts, features.weights, samples)


def _limit(
    bulks: tuple[Resolvent, Resolvent], part: FiniteRank, atom: float, seen: Seen | dict[str, Array]
) -> MatrixLimit:
    """Outliers at the finer resolution, the law of the bulk at the other one."""
    law = SpectralLaw.of(bulks[1], atom)
    outliers, strengths = find_outliers(bulks[0], part, law.edge, seen)
    return MatrixLimit(law, tuple(outliers), strengths)
