"""Gaussian mixtures whose covariances are a bulk, the identity by default, plus spikes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from onegrad.compute.backend import Array
from onegrad.data.base import DRAWN_NORMS
from onegrad.data.bulk import ExponentField, LevelsField, ShareField, SpectrumField, WithBulk
from onegrad.data.population import Population, orthonormal
from onegrad.errors import SpecError
from onegrad.spec.fields import Count, Real, Whole

_Weight = Annotated[Real, Field(ge=0, le=1)]
_Strength = Annotated[Real, Field(ge=0, le=1e6)]
_Rank = Annotated[Whole, Field(ge=0, le=1000)]
_DRAWN = 1 << 11  # random numbers that an estimate of covariance norms may draw
_Coordinate = Annotated[Real, Field(ge=-1e6, le=1e6)]


class Mixture(WithBulk):
    """x ~ Σ_c ρ_c N(μ_c, I + Σ_i θ·s_{c,i} γ_{c,i}γ_{c,i}ᵀ): the setting of Demir & Dogan (2025).

    The spread θ comes from [scaling], or from `spread` here. With a `spectrum` the bulk is Λ
    instead of I; spikes and means have the same directions and sizes as without.
    """

    takes_spread: ClassVar[bool] = True
    model: Literal["mixture"] = "mixture"
    dim: Count = Field(description="number of inputs n", examples=[1000])
    weights: tuple[_Weight, ...] = Field(
        default=(0.5, 0.5), min_length=1, max_length=100,
        description="mixture weights, one per component, that sum to 1", examples=[[0.5, 0.5]],
    )  # fmt: skip
    rank: Whole = Field(default=1, ge=0, le=1000, description="spikes per component", examples=[1])
    ranks: tuple[_Rank, ...] | None = Field(
        default=None, description="spikes of each component, instead of one `rank` for all",
        examples=[[1, 3]],
    )  # fmt: skip
    strengths: (
        tuple[_Strength, ...] | tuple[tuple[_Strength, ...], ...] | Literal["uniform"] | None
    ) = Field(
        default=None, description="strengths of the spikes relative to the spread (all 1 unless "
        'given): a list for all components, a list of lists, one for each, or "uniform": U(0, 1), '
        "drawn with the directions, those of later components scaled to the sum of the first",
        examples=[[1.0, 0.5]],
    )  # fmt: skip
    alignment: Real = Field(
        default=0.0, ge=-1, le=1,
        description="cosine between the components' leading spikes", examples=[0.5],
    )  # fmt: skip
    mean: Real = Field(
        default=0.0, ge=0, le=1e6,
        description="norm of the component means (antipodal for two components)", examples=[2.0],
    )  # fmt: skip
    centres: tuple[tuple[_Coordinate, ...], ...] | None = Field(
        default=None, description="component means placed freely, instead of `mean`: for each "
        "component its coordinates along orthonormal directions that are drawn like the spikes",
        examples=[[[2.0, 0.0], [-1.0, 1.5]]],
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
    spectrum: SpectrumField = None
    exponent: ExponentField = None
    levels: LevelsField = None
    share: ShareField = None

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
        self._check_ranks(components)
        self._check_strengths()
        self._check_centres(components)
        lowest = -1.0 if components == 1 else -1.0 / (components - 1)
        if self.alignment < lowest - 1e-12:
            raise SpecError.of(
                "data.alignment", self.alignment,
                f"must be at least −1/(components − 1) = {lowest:.4g}: no {components} directions "
                "have such pairwise cosines", f"For example {lowest:.4g}",
            )  # fmt: skip
        spanned = len(self.centres[0]) if self.centres else components if self.mean else 0
        needed = sum(self.component_ranks) + spanned + 1
        if self.directions == "orthogonal" and needed > self.dim:
            raise SpecError.of(
                "data.directions", self.directions,
                f"needs data.dim of at least {needed} for {needed} orthogonal directions",
                'Use directions = "random" or a larger dim',
            )  # fmt: skip
        return self

    def _check_ranks(self, components: int) -> None:
        # stored problems list every setting, also those at their default
        if self.ranks is not None and self.rank != type(self).model_fields["rank"].default:
            raise SpecError.of(
                "data.ranks", list(self.ranks), "cannot be combined with data.rank",
                "Keep one of the two",
            )  # fmt: skip
        if self.ranks is not None and len(self.ranks) != components:
            raise SpecError.of(
                "data.ranks", list(self.ranks),
                f"must have one entry per component ({components})",
                f"For example {[1] * components}",
            )  # fmt: skip
        if max(self.component_ranks) >= self.dim:
            key, value = ("rank", self.rank) if self.ranks is None else ("ranks", list(self.ranks))
            raise SpecError.of(
                f"data.{key}", value, f"must be below data.dim = {self.dim}",
                f"For example {min(5, self.dim - 1)}",
            )  # fmt: skip
        if self.alignment and 0 in self.component_ranks and any(self.component_ranks):
            raise SpecError.of(
                "data.alignment", self.alignment, "needs a spike in every component",
                "Set it to 0, or give every component a rank of at least 1",
            )  # fmt: skip

    def _check_strengths(self) -> None:
        if self.strengths is None or self.strengths == "uniform":
            return
        ranks = self.component_ranks
        nested = [s for s in self.strengths if isinstance(s, tuple)]
        good = tuple(map(len, nested)) == ranks if nested else {len(self.strengths)} == set(ranks)
        if not good:
            shown = f"rank = {self.rank}" if self.ranks is None else f"ranks = {list(ranks)}"
            example = [1.0] * ranks[0] if len(set(ranks)) == 1 else [[1.0] * r for r in ranks]
            raise SpecError.of(
                "data.strengths", [list(s) if isinstance(s, tuple) else s for s in self.strengths],
                f"must have one entry per spike, or a list for each component: data.{shown}",
                f"For example {example}",
            )  # fmt: skip

    def _check_centres(self, components: int) -> None:
        if self.centres is None:
            return
        given, example = [list(row) for row in self.centres], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
        shown = f"For example {[example[c % 3] for c in range(components)]}"
        if self.mean:
            raise SpecError.of(
                "data.centres", given, "cannot be combined with data.mean", "Keep one of the two"
            )
        if len(given) != components:
            raise SpecError.of(
                "data.centres", given, f"must have one row per component ({components})", shown
            )
        if len({len(row) for row in given}) != 1 or not 1 <= len(given[0]) < self.dim:
            raise SpecError.of(
                "data.centres", given, "must have rows of equal length, at least one coordinate "
                f"and fewer than data.dim = {self.dim}", shown,
            )  # fmt: skip

    @property
    def components(self) -> int:
        return len(self.weights)

    @property
    def component_ranks(self) -> tuple[int, ...]:
        """Spikes of each component."""
        return (self.rank,) * len(self.weights) if self.ranks is None else self.ranks

    @property
    def structured(self) -> bool:
        return any(self.component_ranks)

    @property
    def fixed_counts(self) -> bool:
        return self.counts == "proportional"

    def mean_trace(self, spread: float) -> float:
        sums = [float(strengths.sum()) for strengths in self.relative_strengths]
        same = len(set(sums)) == 1
        return self.dim + spread * (sums[0] if same else float(np.dot(self.weights, sums)))

    @property
    def relative_strengths(self) -> tuple[Array, ...]:
        """Strength of each spike over θ, component by component; the mean ones if drawn."""
        if self.strengths == "uniform":
            return tuple(
                np.full(r, 0.5 * self.component_ranks[0] / r if r else 0.0)
                for r in self.component_ranks
            )
        if self.strengths is None:
            return tuple(np.ones(r) for r in self.component_ranks)
        if isinstance(self.strengths[0], tuple):
            return tuple(np.array(s) for s in self.strengths)
        return (np.array(self.strengths),) * len(self.weights)

    @property
    def random_strengths(self) -> bool:
        """Whether strengths are drawn with the directions."""
        return self.strengths == "uniform"

    def strengths_at(self, uniform: Sequence[Array]) -> tuple[Array, ...]:
        """Strengths over θ from numbers in (0, 1), one per spike: strongest first, and scaled to
        the sum of the first component's  [demir2025, Fig. 2c]."""
        drawn = [np.sort(u)[::-1] for u in uniform]
        total = drawn[0].sum()
        return tuple(s * (total / s.sum()) if s.size and total else s for s in drawn)

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """Draw the directions of spikes and means: O(n·(components·rank)²), no n × n matrix."""
        components, n, ranks = len(self.weights), self.dim, self.component_ranks
        count = sum(ranks)
        spanned = len(self.centres[0]) if self.centres else components
        raw = rng.standard_normal((n, count + spanned))
        if self.directions == "orthogonal":
            raw = np.linalg.qr(raw)[0]
        raw /= np.linalg.norm(raw, axis=0)
        blocks = self._spikes(raw[:, :count])
        means = np.zeros((components, n))
        if self.mean:
            corners = _simplex(components) @ raw[:, count:].T
            means = self.mean * corners / np.linalg.norm(corners, axis=1, keepdims=True)
        if self.centres:
            means = np.array(self.centres) @ orthonormal(raw[:, count:]).T
        relative = self.relative_strengths
        if self.random_strengths:  # drawn last: directions do not depend on it
            relative = self.strengths_at([rng.random(r) for r in ranks])
        strengths = tuple(spread * s for s in relative)
        return Population(
            np.array(self.weights), means, tuple(blocks), strengths, self.bulk_eigenvalues
        )

    def _spikes(self, raw: Array) -> list[Array]:
        """Spikes of each component from unit columns (… × n × spikes): aligned, orthonormal."""
        ends = np.cumsum(self.component_ranks)[:-1]
        blocks = [block.copy() for block in np.split(raw, ends, axis=-1)]
        spiked = [c for c, rank in enumerate(self.component_ranks) if rank]
        if spiked:
            mixing = _square_root(self.alignment, len(spiked))
            leading = np.stack([blocks[c][..., 0] for c in spiked], axis=-1) @ mixing
            leading /= np.linalg.norm(leading, axis=-2, keepdims=True)
            for j, c in enumerate(spiked):
                blocks[c][..., 0] = leading[..., j]
                blocks[c] = orthonormal(blocks[c])
        return blocks

    def covariance_norms(self, spread: float, rng: np.random.Generator) -> Array:
        """With a bulk of white noise from the Gram matrix of random directions alone, whose
        Cholesky factor is drawn [bartlett1933]: hundreds at the price of one population."""
        count = sum(self.component_ranks)
        if self.bulk_eigenvalues is not None or self.directions != "random" or count > self.dim:
            return super().covariance_norms(spread, rng)
        draws = max(DRAWN_NORMS, _DRAWN // max(1, count) ** 2)
        raw = np.triu(rng.standard_normal((draws, count, count)), 1)
        lengths = np.sqrt(rng.chisquare(self.dim - np.arange(count), (draws, count)))
        raw += lengths[..., None] * np.eye(count)
        raw /= np.linalg.norm(raw, axis=-2, keepdims=True)
        relative = self.relative_strengths
        if self.random_strengths:
            drawn = [
                self.strengths_at([rng.random(r) for r in self.component_ranks])
                for _ in range(draws)
            ]
            relative = tuple(np.array(own) for own in zip(*drawn, strict=True))
        parts = zip(self.weights, self._spikes(raw), relative, strict=True)
        stacked = np.concatenate(
            [b * np.sqrt(w * spread * s)[..., None, :] for w, b, s in parts], -1
        )
        if not count:
            return np.ones(draws)
        return np.asarray(1 + np.linalg.eigvalsh(stacked.swapaxes(-1, -2) @ stacked)[:, -1])


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


def _simplex(components: int) -> Array:
    """Directions of the means: corners of a regular simplex, antipodal for two components."""
    if components == 1:
        return np.ones((1, 1))
    return np.eye(components) - 1.0 / components
