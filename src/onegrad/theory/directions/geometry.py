"""What the theory of mixtures derives from a problem: a few directions, never n of them.

Data are a Gaussian mixture whose component c has weight ρ_c, mean μ_c and covariance
Σ_c = I + Σ_i θ_{c,i} γ_{c,i} γ_{c,i}ᵀ. With V an orthonormal basis of the span of all spikes,
means and the teacher ξ, everything that is not standard Gaussian lives in κ = Vᵀx
(docs/book/equivalent-models.md). Where the bulk is Λ instead of I, all of this is about Λ^{−½}x,
whose bulk is the identity (docs/book/structure.md). Labels are y = σ*_c(ξᵀx) + noise with ‖ξ‖ =
1/√‖Σ̄‖, Σ̄ = Σ ρ_c Σ_c, or one constant per component.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_power import joint_link_laws, link_laws, total_variance
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.directions.eigen import SAME, settled


@dataclass(frozen=True, eq=False)
class BulkLevels:
    """A bulk Λ that is not flat, for axes closed under it (closed.py).

    axes : (r,) λ along each axis of the geometry: Λ maps the axis to λ times itself
    values, counts : (J,) the rest of the inputs in blocks, p_j coordinates with the eigenvalue λ_j
    coarser : the same geometry to compare with, with one axis less for each direction and with
        fewer blocks, as far as there are any
    """

    axes: Array
    values: Array
    counts: Array
    coarser: tuple[Geometry, ...] = ()

    @property
    def trace(self) -> float:
        """Σ p_jλ_j."""
        return float(self.counts @ self.values)

    @property
    def effective_dim(self) -> float:
        """(Σ p_jλ_j)²/Σ p_jλ_j²: a sum of squares along the blocks fluctuates like one of so many
        equal terms."""
        return self.trace**2 / float(self.counts @ self.values**2)


@dataclass(frozen=True, eq=False)
class Geometry:
    """The mixture in the coordinates of an orthonormal basis V of its r special directions
    (eq. split).

    dim : n, the dimension of the inputs; the n − r other coordinates are standard Gaussian
    weights : (C,) ρ_c, summing to one
    means : (C, r) Vᵀμ_c
    covariances : (C, r, r) Vᵀ Σ_c V
    teacher : (r,) Vᵀξ with its norm 1/√‖Σ̄‖; zero if the labels do not use it; (p, r) where
        labels have several indices
    directions : named unit vectors (r,), for reports: "teacher", "spike 1.1", …
    basis : (n, r) V itself where the geometry comes from explicit vectors, else None; for
        whitened inputs where the bulk is not the identity
    groups : numbers of directions that the last axes stand for, one axis each: directions that
        are alike and free of everything else (symmetry.py); their coordinates are lengths
    levels : of a bulk that is not the identity, for whitened inputs (closed.py)
    """

    dim: int
    weights: Array
    means: Array
    covariances: Array
    teacher: Array
    directions: dict[str, Array] = field(default_factory=dict)
    basis: Array | None = None
    groups: tuple[int, ...] = ()
    levels: BulkLevels | None = None

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
    def seeds(self) -> list[Array]:
        """What labels and means see: the rows of `teacher` and of `means`, each (r,)."""
        return [*np.atleast_2d(self.teacher), *self.means]

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
    if problem.joint_link is not None:
        xi = geometry.teacher
        along = np.einsum("pi,cij,qj->cpq", xi, geometry.covariances, xi)
        means, variances = joint_link_laws(problem.joint_link, geometry.means @ xi.T, along)
    elif problem.links is None:
        means, variances = np.array(problem.component_values), np.zeros(problem.components)
    else:
        xi = geometry.teacher
        along = np.einsum("i,cij,j->c", xi, geometry.covariances, xi)
        means, variances = link_laws(problem.links, geometry.means @ xi, along)
    return total_variance(geometry.weights, means, variances, problem.label_noise_variance)


def drawn_geometry(
    population: Population, teacher: Array | None, own_length: bool = False
) -> Geometry:
    """The geometry of explicit vectors, with the overlaps that they have.

    teacher : (n,), or (n, p) for several indices, any length; it is rescaled to 1/√‖Σ̄‖, unless it
        keeps its `own_length`. None if labels do not use one.
    """
    if own_length and teacher is not None:
        own = float(np.linalg.norm(teacher)) * math.sqrt(population.mean_covariance_norm)
        return stretched(drawn_geometry(population, teacher), own)
    largest = None if population.bulk is None else population.mean_covariance_norm
    if teacher is not None and teacher.ndim == 2 and largest is not None:
        raise AssumptionError(
            "the theory of several indices needs a flat bulk: leave out data.spectrum, or use a "
            "single-index link"
        )
    if teacher is not None and largest is not None:
        teacher = population.seen(teacher / np.linalg.norm(teacher))
    length = None if teacher is None or largest is None else np.linalg.norm(teacher)
    population = population.whitened
    named = {
        f"spike {c + 1}.{i + 1}": spikes[:, i]
        for c, spikes in enumerate(population.spikes)
        for i in range(spikes.shape[1])
    }
    if teacher is not None:
        named |= teacher_names(teacher)
    vectors = np.stack([*named.values(), *population.means], axis=1)
    lengths = np.linalg.norm(vectors, axis=0)
    kept = lengths > 0
    u, s, _ = np.linalg.svd(vectors[:, kept] / lengths[kept], full_matrices=False)
    s, u = settled(s, u)
    basis = u[:, s > SAME] if s.size else np.zeros((population.dim, 0))
    geometry = assemble(
        population.dim, population.weights, population.means @ basis,
        [basis.T @ spikes for spikes in population.spikes], population.strengths,
        {name: basis.T @ v for name, v in named.items()}, basis,
    )  # fmt: skip
    if length is None or largest is None:
        return geometry
    # ‖Σ̄‖ is that of the inputs, not of the whitened ones
    seen = geometry.directions["teacher"] * (float(length) / math.sqrt(largest))
    return replace(geometry, teacher=seen)


def stretched(geometry: Geometry, length: float) -> Geometry:
    """The same directions with a teacher of that length, in units of 1/√‖Σ̄‖."""
    return replace(geometry, teacher=length * geometry.teacher)


def teacher_names(teacher: Array) -> dict[str, Array]:
    """The label's directions by name: columns "teacher 1", "teacher 2", … where it has several."""
    if teacher.ndim == 1:
        return {"teacher": teacher}
    return {f"teacher {j + 1}": column for j, column in enumerate(teacher.T)}


def reduced(geometry: Geometry) -> Geometry:
    """A geometry in its smallest basis, without unused coordinates."""
    vectors = np.stack([*geometry.directions.values(), *geometry.means])
    _, s, vt = np.linalg.svd(vectors, full_matrices=False)
    if s.size == 0 or (s > SAME * max(1.0, s[0])).sum() == geometry.rank:
        return geometry
    s, axes = settled(s, vt.T)
    basis = axes[:, s > SAME * max(1.0, s[0])]
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
    teachers = [v for name, v in units.items() if name.startswith("teacher ")]
    if teachers:
        teacher = np.stack(teachers) / math.sqrt(largest)
    else:
        teacher = units["teacher"] / math.sqrt(largest) if "teacher" in units else np.zeros(rank)
    return Geometry(dim, weights, means, covariances, teacher, units, basis)
