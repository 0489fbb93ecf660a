"""What the theory of mixtures derives from a problem: a few directions, never n of them.

Data are a Gaussian mixture whose component c has weight ρ_c, mean μ_c and covariance
Σ_c = I + Σ_i θ_{c,i} γ_{c,i} γ_{c,i}ᵀ. With V an orthonormal basis of the span of all spikes,
means and the teacher ξ, everything that is not standard Gaussian lives in κ = Vᵀx
(docs/theory.md, section 1). Labels are y = σ*_c(ξᵀx) + noise with ‖ξ‖ = 1/√‖Σ̄‖,
Σ̄ = Σ ρ_c Σ_c, or one constant per component.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_power import link_laws, total_variance
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.randomness import Streams

_RANK_TOLERANCE = 1e-9  # directions that add less than this to the span are not new


@dataclass(frozen=True, eq=False)
class Geometry:
    """The mixture in the coordinates of an orthonormal basis V of its r special directions.

    dim : n, the dimension of the inputs; the n − r other coordinates are standard Gaussian
    weights : (C,) ρ_c, summing to one
    means : (C, r) Vᵀμ_c
    covariances : (C, r, r) Vᵀ Σ_c V
    teacher : (r,) Vᵀξ with its norm 1/√‖Σ̄‖; zero if the labels do not use it
    directions : named unit vectors (r,), for reports: "teacher", "spike 1.1", …
    basis : (n, r) V itself where the geometry comes from explicit vectors, else None
    groups : numbers of directions that the last axes stand for, one axis each: directions that
        are alike and free of everything else (symmetry.py); their coordinates are lengths
    """

    dim: int
    weights: Array
    means: Array
    covariances: Array
    teacher: Array
    directions: dict[str, Array] = field(default_factory=dict)
    basis: Array | None = None
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.rank >= self.dim:
            raise AssumptionError(
                f"the mixture has {self.rank} special directions in dimension {self.dim}; the "
                "theory needs many more dimensions than directions. Use a larger dim or fewer "
                "spikes."
            )

    @property
    def rank(self) -> int:
        """Axes: r, with one for each group."""
        return int(self.means.shape[1])

    @property
    def single(self) -> int:
        """Axes that stand for one direction each: the first ones."""
        return self.rank - len(self.groups)

    @property
    def special(self) -> int:
        """Special directions: those of the axes, with all of each group."""
        return self.rank + sum(self.groups) - len(self.groups)

    @property
    def mean_covariance(self) -> Array:
        """VᵀΣ̄V, Σ̄ = Σ ρ_c Σ_c; outside of V it is the identity."""
        return np.einsum("c,cij->ij", self.weights, self.covariances)

    @cached_property
    def roots(self) -> Array:
        """(C, r, r) symmetric roots of the covariances."""
        values, vectors = np.linalg.eigh(self.covariances)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return np.asarray(scaled @ vectors.transpose(0, 2, 1))


def geometry_of(problem: Problem, overlaps: str = "auto", seed: int = 0) -> Geometry:
    """The special directions of a problem: those of a draw, or typical ones.

    overlaps : "drawn": spikes, means and teacher of the simulation's first repetition with that
        seed; "typical": `typical_geometry`; "auto": drawn where directions are fixed or orthogonal.
        A drawn geometry knows its `basis`, and problems with the same typical one share the object
    """
    data: Any = problem.data  # what is known is a mixture, or has no structure at all
    if not data.known:
        raise AssumptionError(
            f'the conditional theory needs a known population; data.model = "{data.model}" has '
            'the methods "semi-parametric" and "surrogate"'
        )
    if overlaps == "drawn" or (overlaps == "auto" and problem.directions != "random"):
        instance = problem.instance(Streams(seed, 0))
        teacher = None if problem.links is None else instance.teacher.direction
        return drawn_geometry(instance.population, teacher)
    strengths = None if data.isotropic else data.relative_strengths
    return geometry_with(problem, strengths)


def geometry_with(problem: Problem, relative: Sequence[Array] | None) -> Geometry:
    """Typical directions of a known population, with these strengths over θ of its spikes."""
    data: Any = problem.data
    along = getattr(problem.labels, "direction", None)
    cosine = getattr(problem.labels, "cosine", None)
    along = along if cosine is None else cosine
    if relative is None:
        return typical_geometry(problem.dim, (1.0,), ((),), teacher=along)
    strengths = tuple(tuple((problem.spread * s).tolist()) for s in relative)
    return typical_geometry(
        problem.dim, data.weights, strengths, alignment=data.alignment,
        mean=data.mean, teacher=along, chance=problem.directions != "orthogonal",
    )  # fmt: skip


def variance_of_labels(problem: Problem, geometry: Geometry) -> float:
    """Var y where the directions lie like this: the test error of the best constant."""
    if problem.links is None:
        means, variances = np.array(problem.component_values), np.zeros(problem.components)
    else:
        xi = geometry.teacher
        along = np.einsum("i,cij,j->c", xi, geometry.covariances, xi)
        means, variances = link_laws(problem.links, geometry.means @ xi, along)
    return total_variance(geometry.weights, means, variances, problem.label_noise)


def drawn_geometry(population: Population, teacher: Array | None) -> Geometry:
    """The geometry of explicit vectors, with the overlaps that they have.

    teacher : (n,), any length; it is rescaled to 1/√‖Σ̄‖. None if labels do not use one.
    """
    named = {
        f"spike {c + 1}.{i + 1}": spikes[:, i]
        for c, spikes in enumerate(population.spikes)
        for i in range(spikes.shape[1])
    }
    if teacher is not None:
        named["teacher"] = teacher
    vectors = np.stack([*named.values(), *population.means], axis=1)
    lengths = np.linalg.norm(vectors, axis=0)
    kept = lengths > 0
    u, s, _ = np.linalg.svd(vectors[:, kept] / lengths[kept], full_matrices=False)
    basis = u[:, s > _RANK_TOLERANCE] if s.size else np.zeros((population.dim, 0))
    return _assemble(
        population.dim, population.weights, population.means @ basis,
        [basis.T @ spikes for spikes in population.spikes], population.strengths,
        {name: basis.T @ v for name, v in named.items()}, basis,
    )  # fmt: skip


@lru_cache(maxsize=64)
def typical_geometry(
    dim: int,
    weights: tuple[float, ...],
    strengths: tuple[tuple[float, ...], ...],
    *,
    alignment: float = 0.0,
    mean: float = 0.0,
    teacher: Literal["random", "spikes"] | float | None = "random",
    chance: bool = True,
) -> Geometry:
    """The geometry of a typical draw, without drawing any n-dimensional vector.

    Spikes are orthonormal within a component; `strengths` has a tuple for each. Between
    components the leading spikes have the cosine `alignment`; where that is 0, chance overlaps do
    not vanish at finite n: |γ·γ'| = E|N(0,1/n)| = √(2/(πn)) between spikes of different
    components, or where there are several in each a matrix with the singular values of a typical
    one (`_chance_overlaps`); ξ̂·γ = 1/√n (its root mean square, because E y² depends on its
    square), and likewise for means. `chance=False` sets all of them to zero. Component means have
    norm `mean` and point to the corners of a regular simplex, ±μ for two components. The teacher
    is random, along the sum of the leading spikes, or at a given cosine to the first of them.
    """
    rho, theta = np.array(weights), [np.array(t, float) for t in strengths]
    owners = [(c, i) for c, t in enumerate(theta) for i in range(t.size)]
    count, drawn_teacher = len(owners), teacher == "random" or isinstance(teacher, float)
    corners = rho.size if mean else 0
    size = count + int(drawn_teacher) + corners
    gram = np.full((size, size), 1 / math.sqrt(dim) if chance else 0.0)
    # The sign of a spike matters only to a teacher made of spikes. What is orthogonal to one of
    # two aligned spikes has that much less of a chance overlap with the other.
    signed = teacher == "spikes" or isinstance(teacher, float)
    cosine = alignment if signed else abs(alignment)
    starts = np.cumsum([0, *(t.size for t in theta)])
    blocks = [slice(a, b) for a, b in itertools.pairwise(starts)]
    for c, mine in enumerate(blocks):
        gram[mine, mine] = np.eye(theta[c].size)
        for d, other in enumerate(blocks[:c]):
            overlaps = np.zeros((theta[c].size, theta[d].size))
            if chance:
                overlaps = _chance_overlaps(overlaps.shape, pair=c * (c - 1) // 2 + d)
                overlaps = overlaps / math.sqrt(dim)
            if alignment and overlaps.size:
                across = math.sqrt(1 - cosine**2)
                overlaps[0], overlaps[:, 0] = across * overlaps[0], across * overlaps[:, 0]
                overlaps[0, 0] = cosine
            gram[mine, other], gram[other, mine] = overlaps, overlaps.T
    np.fill_diagonal(gram, 1.0)
    first = next((p for p, (_, i) in enumerate(owners) if i == 0), None)
    if isinstance(teacher, float) and first is not None:  # what is drawn is orthogonal to it
        gram[first, count] = gram[count, first] = 0.0
    if corners:  # the directions that the simplex is made of, drawn independently
        gram[-corners:, -corners:] = np.eye(corners)
    values, vectors = np.linalg.eigh(gram)
    if size and values[0] < -_RANK_TOLERANCE:
        raise AssumptionError(
            f"no {size} directions in dimension {dim} have these typical overlaps. Use "
            'directions = "orthogonal", a larger dim, or the overlaps of an actual draw.'
        )
    kept = values > _RANK_TOLERANCE
    unit = vectors[:, kept] * np.sqrt(values[kept])  # rows: the unit vectors
    named = {f"spike {c + 1}.{i + 1}": unit[p] for p, (c, i) in enumerate(owners)}
    if isinstance(teacher, float) and first is not None:
        named["teacher"] = teacher * unit[first] + math.sqrt(1 - teacher**2) * unit[count]
    elif drawn_teacher:
        named["teacher"] = unit[count]
    elif teacher == "spikes":
        named["teacher"] = np.sum([unit[p] for p, (_, i) in enumerate(owners) if i == 0], axis=0)
    mu = np.zeros((rho.size, unit.shape[1]))
    if corners:
        mu = (np.eye(corners) - (1.0 / corners if corners > 1 else 0.0)) @ unit[-corners:]
        mu *= mean / np.linalg.norm(mu, axis=1, keepdims=True)
    gammas = [unit[mine].T for mine in blocks]
    return _reduced(_assemble(dim, rho, mu, gammas, theta, named, None))


def _chance_overlaps(shape: tuple[int, int], pair: int) -> Array:
    """√n·γ_i·γ'_j of two random sets of orthonormal directions: typical, nothing left to chance.

    One of each: the mean √(2/π) of |N(0,1)|. Else the singular vectors of one fixed draw (another
    one for each pair of components) with typical singular values, which decide about ‖Σ̄‖:
    quantiles of the quarter-circle law, within 2 % of their means from 2 × 2 on; q·Q² + p − q
    for the squares of p × q, p > q.
    """
    if shape == (1, 1):
        return np.full(shape, math.sqrt(2 / math.pi))
    few, many = min(shape), max(shape)
    drawn = np.random.default_rng([20250117, pair]).standard_normal(shape)
    left, _, right = np.linalg.svd(drawn, full_matrices=False)
    half = np.linspace(0.0, math.pi / 2, 2001)  # Q = 2 sin(half), probability (2h + sin 2h)/π
    law = (2 * half + np.sin(2 * half)) / math.pi
    quantiles = 2 * np.sin(np.interp(1 - (np.arange(few) + 0.5) / few, law, half))
    return np.asarray((left * np.sqrt(few * quantiles**2 + many - few)) @ right)


def _reduced(geometry: Geometry) -> Geometry:
    """The same geometry in the smallest basis: coordinates that nothing uses are dropped."""
    vectors = np.stack([*geometry.directions.values(), *geometry.means])
    _, s, vt = np.linalg.svd(vectors, full_matrices=False)
    if s.size == 0 or (s > _RANK_TOLERANCE * max(1.0, s[0])).sum() == geometry.rank:
        return geometry
    basis = vt[s > _RANK_TOLERANCE * max(1.0, s[0])].T
    return replace(
        geometry,
        means=geometry.means @ basis,
        covariances=np.einsum("ia,cij,jb->cab", basis, geometry.covariances, basis),
        teacher=geometry.teacher @ basis,
        directions={name: v @ basis for name, v in geometry.directions.items()},
    )


def _assemble(
    dim: int,
    weights: Array,
    means: Array,
    spikes: Sequence[Array],
    strengths: Sequence[Array],
    named: dict[str, Array],
    basis: Array | None,
) -> Geometry:
    """Everything in the coordinates of V; of the `named` directions the lengths do not matter."""
    rank = means.shape[1]
    covariances = np.stack(
        [np.eye(rank) + (g * t) @ g.T for g, t in zip(spikes, strengths, strict=True)]
    )
    mean_covariance = np.einsum("c,cij->ij", weights, covariances)
    largest = max(1.0, float(np.linalg.eigvalsh(mean_covariance)[-1])) if rank else 1.0
    units = {name: v / np.linalg.norm(v) for name, v in named.items()}
    teacher = units["teacher"] / math.sqrt(largest) if "teacher" in units else np.zeros(rank)
    return Geometry(dim, weights, means, covariances, teacher, units, basis)
