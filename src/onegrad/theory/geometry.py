"""What the theory of mixtures derives from a problem: a few directions, never n of them.

Data are a Gaussian mixture whose component c has weight ρ_c, mean μ_c and covariance
Σ_c = I + Σ_i θ_{c,i} γ_{c,i} γ_{c,i}ᵀ. With V an orthonormal basis of the span of all spikes,
means and the teacher ξ, everything that is not standard Gaussian lives in κ = Vᵀx
(docs/theory.md, section 1). Labels are y = σ*_c(ξᵀx) + noise with ‖ξ‖ = 1/√‖Σ̄‖,
Σ̄ = Σ ρ_c Σ_c, or one constant per component.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_power import link_laws, total_variance
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.problem import Problem

RANK_TOLERANCE = 1e-9  # directions that add less than this to the span are not new


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
    bins : into how many bins a component's unequal strengths were put (bins.py); 0: they are exact
    """

    dim: int
    weights: Array
    means: Array
    covariances: Array
    teacher: Array
    directions: dict[str, Array] = field(default_factory=dict)
    basis: Array | None = None
    groups: tuple[int, ...] = ()
    bins: int = 0

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
    basis = u[:, s > RANK_TOLERANCE] if s.size else np.zeros((population.dim, 0))
    return assemble(
        population.dim, population.weights, population.means @ basis,
        [basis.T @ spikes for spikes in population.spikes], population.strengths,
        {name: basis.T @ v for name, v in named.items()}, basis,
    )  # fmt: skip


def reduced(geometry: Geometry) -> Geometry:
    """The same geometry in the smallest basis: coordinates that nothing uses are dropped."""
    vectors = np.stack([*geometry.directions.values(), *geometry.means])
    _, s, vt = np.linalg.svd(vectors, full_matrices=False)
    if s.size == 0 or (s > RANK_TOLERANCE * max(1.0, s[0])).sum() == geometry.rank:
        return geometry
    basis = vt[s > RANK_TOLERANCE * max(1.0, s[0])].T
    return replace(
        geometry,
        means=geometry.means @ basis,
        covariances=np.einsum("ia,cij,jb->cab", basis, geometry.covariances, basis),
        teacher=geometry.teacher @ basis,
        directions={name: v @ basis for name, v in geometry.directions.items()},
    )


def assemble(
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
