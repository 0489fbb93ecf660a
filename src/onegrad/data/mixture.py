"""Gaussian mixtures whose covariances are identity plus spikes."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from onegrad.compute.backend import Array
from onegrad.data.base import DataModel
from onegrad.data.population import Population
from onegrad.declared import Count, Real, Whole
from onegrad.errors import SpecError

_Weight = Annotated[Real, Field(ge=0, le=1)]
_Strength = Annotated[Real, Field(ge=0, le=1e6)]


class Mixture(DataModel):
    """x ~ Σ_c ρ_c N(μ_c, I + Σ_i θ·s_{c,i} γ_{c,i}γ_{c,i}ᵀ): the setting of Demir & Dogan (2025).

    The spread θ comes from [scaling], or from `spread` here.
    """

    takes_spread: ClassVar[bool] = True
    model: Literal["mixture"] = "mixture"
    dim: Count = Field(description="number of inputs n", examples=[1000])
    weights: tuple[_Weight, ...] = Field(
        default=(0.5, 0.5), min_length=1, max_length=100,
        description="mixture weights, one per component, that sum to 1", examples=[[0.5, 0.5]],
    )  # fmt: skip
    rank: Whole = Field(default=1, ge=0, le=1000, description="spikes per component", examples=[1])
    strengths: tuple[_Strength, ...] | None = Field(
        default=None, description="strength of each of the `rank` spikes relative to the spread "
        "(all 1 unless given)", examples=[[1.0, 0.5]],
    )  # fmt: skip
    alignment: Real = Field(
        default=0.0, ge=-1, le=1,
        description="cosine between the components' leading spikes", examples=[0.5],
    )  # fmt: skip
    mean: Real = Field(
        default=0.0, ge=0, le=1e6,
        description="norm of the component means (antipodal for two components)", examples=[2.0],
    )  # fmt: skip
    directions: Literal["random", "orthogonal", "fixed"] = Field(
        default="random",
        description="random: drawn anew for each seed; fixed: drawn once; orthogonal: spikes, "
        "means and teacher without chance overlaps", examples=["random"],
    )  # fmt: skip
    counts: Literal["drawn", "proportional"] = Field(
        default="drawn", description="samples per component: drawn, or exactly proportional",
        examples=["drawn"],
    )  # fmt: skip
    spread: Real | None = Field(
        default=None, ge=0, le=1e9, description="θ by hand, instead of [scaling]", examples=[12.0]
    )

    @field_validator("weights")
    @classmethod
    def _sum_to_one(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        total = math.fsum(weights)
        if abs(total - 1.0) > 1e-9:
            raise SpecError.of(
                "data.weights", list(weights), f"must sum to 1 (they sum to {total:.6g})",
                _normalised(weights, total),
            )  # fmt: skip
        return tuple(w / total for w in weights)

    @model_validator(mode="after")
    def _consistent(self) -> Mixture:
        components = len(self.weights)
        if self.rank >= self.dim:
            raise SpecError.of(
                "data.rank", self.rank, f"must be below data.dim = {self.dim}",
                f"For example {min(5, self.dim - 1)}",
            )  # fmt: skip
        if self.strengths is not None and len(self.strengths) != self.rank:
            raise SpecError.of(
                "data.strengths", list(self.strengths),
                f"must have one entry per spike: data.rank = {self.rank}",
                f"For example {[1.0] * self.rank}",
            )  # fmt: skip
        lowest = -1.0 if components == 1 else -1.0 / (components - 1)
        if self.alignment < lowest - 1e-12:
            raise SpecError.of(
                "data.alignment", self.alignment,
                f"must be at least −1/(components − 1) = {lowest:.4g}: no {components} directions "
                "have such pairwise cosines", f"For example {lowest:.4g}",
            )  # fmt: skip
        needed = components * self.rank + (components if self.mean else 0) + 1
        if self.directions == "orthogonal" and needed > self.dim:
            raise SpecError.of(
                "data.directions", self.directions,
                f"needs data.dim of at least {needed} for {needed} orthogonal directions",
                'Use directions = "random" or a larger dim',
            )  # fmt: skip
        return self

    @property
    def components(self) -> int:
        return len(self.weights)

    @property
    def structured(self) -> bool:
        return self.rank > 0

    @property
    def fixed_counts(self) -> bool:
        return self.counts == "proportional"

    def mean_trace(self, spread: float) -> float:
        return self.dim + spread * float(self.relative_strengths.sum())

    @property
    def relative_strengths(self) -> Array:
        """Strength of each spike over θ (rank), the same in every component."""
        return np.ones(self.rank) if self.strengths is None else np.array(self.strengths)

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """Draw the directions of spikes and means: O(n·(components·rank)²), no n × n matrix."""
        components, n, r = len(self.weights), self.dim, self.rank
        raw = rng.standard_normal((n, components * r + components))
        if self.directions == "orthogonal":
            raw = np.linalg.qr(raw)[0]
        raw /= np.linalg.norm(raw, axis=0)
        blocks = [raw[:, c * r : (c + 1) * r].copy() for c in range(components)]
        if r:
            mixing = _square_root(self.alignment, components)
            leading = np.stack([b[:, 0] for b in blocks], axis=1) @ mixing
            for c, block in enumerate(blocks):
                block[:, 0] = leading[:, c] / np.linalg.norm(leading[:, c])
                blocks[c] = _orthonormal(block)
        means = np.zeros((components, n))
        if self.mean:
            corners = _simplex(components) @ raw[:, components * r :].T
            means = self.mean * corners / np.linalg.norm(corners, axis=1, keepdims=True)
        strengths = tuple(spread * self.relative_strengths for _ in range(components))
        return Population(np.array(self.weights), means, tuple(blocks), strengths)


def _normalised(weights: tuple[float, ...], total: float) -> str:
    if not total > 0:
        return ""
    return f"Scaled to 1 they read {[float(f'{w / total:.6g}') for w in weights]}"


def _square_root(alignment: float, components: int) -> Array:
    """Symmetric root of the matrix with ones on the diagonal and `alignment` elsewhere."""
    gram = np.full((components, components), alignment)
    np.fill_diagonal(gram, 1.0)
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _orthonormal(columns: Array) -> Array:
    """Gram–Schmidt from the left by a thin QR; the first column keeps its direction."""
    q, r = np.linalg.qr(columns)
    return np.asarray(q * np.sign(np.diag(r)))


def _simplex(components: int) -> Array:
    """Directions of the means: corners of a regular simplex, antipodal for two components."""
    if components == 1:
        return np.ones((1, 1))
    return np.eye(components) - 1.0 / components
