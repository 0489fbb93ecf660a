"""What the theory of mixtures needs to know about a problem: a few directions, never n of them.

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
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.hermite import Array

Gradient = Literal["exact", "labels-only"]

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
        count, rank = self.means.shape
        if self.weights.shape != (count,) or self.covariances.shape != (count, rank, rank):
            raise AssumptionError(
                f"the geometry's shapes disagree: weights {self.weights.shape}, means "
                f"{self.means.shape}, covariances {self.covariances.shape}; "
                "they must be (C,), (C, r) and (C, r, r)."
            )
        if rank >= self.dim:
            raise AssumptionError(
                f"the mixture has {rank} special directions in dimension {self.dim}; the theory "
                "needs many more dimensions than directions. Use a larger dim or fewer spikes."
            )
        if np.any(self.weights < 0) or abs(float(self.weights.sum()) - 1) > 1e-9:
            raise AssumptionError(
                f"component weights {self.weights.tolist()} must be ≥ 0 and sum to 1."
            )

    @property
    def rank(self) -> int:
        """Axes: r, with one for each group."""
        return int(self.means.shape[1])

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

    @property
    def mean_trace(self) -> float:
        """tr Σ̄, the scale 1/(entry variance of W) in the mixture convention."""
        along = self.mean_covariance.diagonal()
        more = sum((g - 1) * a for g, a in zip(self.groups, self._last(along), strict=True))
        return float(self.dim - self.special + along.sum() + more)

    def _last(self, axes: Array) -> Array:
        """The part that belongs to the axes of groups."""
        return axes[len(axes) - len(self.groups) :]


@dataclass(frozen=True)
class Labels:
    """y = links[c](ξᵀx) + noise·N(0,1) in component c, or values[c] + noise·N(0,1).

    Exactly one of `links` and `values` is given, with one entry per component.
    """

    links: tuple[Activation, ...] | None = None
    values: tuple[float, ...] | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        if (self.links is None) == (self.values is None):
            raise AssumptionError("give either the links of a teacher or constant labels.")
        if not self.noise >= 0:
            raise AssumptionError(f"label noise {self.noise} must be a standard deviation ≥ 0.")

    @property
    def separating(self) -> bool:
        """Labels that name the component."""
        return self.values is not None and len(set(self.values)) > 1

    @property
    def binary(self) -> bool:
        """Labels ±1 without noise, for which the sign of the prediction is a classifier."""
        return self.values is not None and self.noise == 0 and all(abs(v) == 1 for v in self.values)


@dataclass(frozen=True)
class Training:
    """One gradient step on ½·MSE, then ridge regression of the readout; both on fresh samples.

    activation : σ of f(x) = aᵀσ(Wx), centred already where the convention asks for it
    width, samples, step_samples : k, m, m̃
    rate : η; w_i moves by η a_i (1/m̃) Σ_t (y_t − f₀(x_t)) σ'(w_i·x_t) x_t
    ridge : λ_eff of (1/m)‖y − Φa‖² + λ_eff‖a‖²
    weight_variance : variance of an entry of the initial W
    readout_mean, readout_std : a_i ~ N(readout_mean, readout_std²) during the step
    gradient : "exact", or "labels-only" which leaves the initial output f₀ out of the residual
    """

    activation: Activation
    width: int
    samples: int
    step_samples: int
    rate: float
    ridge: float
    weight_variance: float
    readout_std: float
    readout_mean: float = 0.0
    gradient: Gradient = "exact"

    def __post_init__(self) -> None:
        for name in ("width", "samples", "step_samples", "weight_variance"):
            if not getattr(self, name) > 0:
                raise AssumptionError(f"{name} = {getattr(self, name)} must be positive.")
        if not (math.isfinite(self.ridge) and self.ridge > 0):
            raise AssumptionError(
                f"ridge = {self.ridge}: the theory needs a positive ridge. "
                "For the ridgeless limit use a small one, such as 1e-8."
            )
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise AssumptionError(f"rate = {self.rate} must be a finite number ≥ 0.")
        if self.gradient not in ("exact", "labels-only"):
            raise AssumptionError(f'gradient = "{self.gradient}" must be "exact" or "labels-only".')

    @property
    def readout_square(self) -> float:
        """E a_i²."""
        return self.readout_mean**2 + self.readout_std**2


def geometry_from_arrays(
    weights: ArrayLike,
    means: ArrayLike,
    spikes: Sequence[ArrayLike],
    strengths: Sequence[ArrayLike],
    teacher: ArrayLike | None,
) -> Geometry:
    """The geometry of explicit vectors: the actual overlaps of one draw.

    weights : (C,)
    means : (C, n)
    spikes : per component (n, r_c), orthonormal columns γ_{c,i}
    strengths : per component (r_c,), θ_{c,i} > −1
    teacher : (n,), any length; it is rescaled to 1/√‖Σ̄‖. None if labels do not use one.
    """
    mu = np.asarray(means, float)
    gammas = [np.asarray(g, float).reshape(mu.shape[1], -1) for g in spikes]
    named = {
        f"spike {c + 1}.{i + 1}": g[:, i] for c, g in enumerate(gammas) for i in range(g.shape[1])
    }
    if teacher is not None:
        named["teacher"] = np.asarray(teacher, float)
    vectors = np.stack([*named.values(), *mu], axis=1)
    lengths = np.linalg.norm(vectors, axis=0)
    kept = lengths > 0
    u, s, _ = np.linalg.svd(vectors[:, kept] / lengths[kept], full_matrices=False)
    basis = u[:, s > _RANK_TOLERANCE] if s.size else np.zeros((mu.shape[1], 0))
    return _assemble(
        mu.shape[1],
        np.asarray(weights, float),
        mu @ basis,
        [basis.T @ g for g in gammas],
        [np.asarray(t, float).reshape(-1) for t in strengths],
        {name: basis.T @ v for name, v in named.items()},
        basis,
    )


def typical_geometry(
    dim: int,
    weights: ArrayLike,
    strengths: Sequence[ArrayLike],
    *,
    alignment: float = 0.0,
    mean: float = 0.0,
    teacher: Literal["random", "spikes"] | None = "random",
    directions: Literal["random", "orthogonal"] = "random",
) -> Geometry:
    """The geometry of a typical draw, without drawing any n-dimensional vector.

    Spikes are orthonormal within a component. Between components the leading spikes have the
    cosine `alignment`; where that is 0 and directions are random, chance overlaps do not vanish
    at finite n: |γ·γ'| = E|N(0,1/n)| = √(2/(πn)) between spikes of different components, or where
    there are several in each a matrix with the singular values of a typical one
    (`_chance_overlaps`); ξ̂·γ = 1/√n (its root mean square, because E y² depends on its square),
    and likewise for means. Component means have norm `mean` and point to the corners of a regular
    simplex, ±μ for two components. The teacher is random, or along the sum of the leading spikes.
    `directions="orthogonal"` sets every chance overlap to zero.
    """
    rho = np.asarray(weights, float)
    theta = [np.asarray(t, float).reshape(-1) for t in strengths]
    owners = [(c, i) for c, t in enumerate(theta) for i in range(t.size)]
    count, drawn_teacher = len(owners), teacher == "random"
    corners = rho.size if mean else 0
    size = count + int(drawn_teacher) + corners
    chance = directions == "random"
    gram = np.full((size, size), 1 / math.sqrt(dim) if chance else 0.0)
    # The sign of a spike matters only to a teacher made of spikes. What is orthogonal to one of
    # two aligned spikes has that much less of a chance overlap with the other.
    cosine = alignment if teacher == "spikes" else abs(alignment)
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
    if drawn_teacher:
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
    rank = means.shape[1]
    covariances = np.stack(
        [np.eye(rank) + (g * t) @ g.T for g, t in zip(spikes, strengths, strict=True)]
    )
    mean_covariance = np.einsum("c,cij->ij", weights, covariances)
    largest = max(1.0, float(np.linalg.eigvalsh(mean_covariance)[-1])) if rank else 1.0
    units = {name: v / np.linalg.norm(v) for name, v in named.items()}
    teacher = units["teacher"] / math.sqrt(largest) if "teacher" in units else np.zeros(rank)
    return Geometry(dim, weights, means, covariances, teacher, units, basis)
