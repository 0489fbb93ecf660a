"""Labels that depend on several projections of the input."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PlainSerializer, SerializationInfo, model_validator

from onegrad.compute.backend import Array
from onegrad.data.label_base import Flip, LabelModel, Noise, Teacher
from onegrad.data.population import Population, orthonormal, outside
from onegrad.errors import SpecError
from onegrad.gaussian.joint_links import MOST_INDICES, JointLink, get_joint_link
from onegrad.spec.fields import Count, Real, is_whole


def _written(link: Any, info: SerializationInfo) -> Any:
    if not isinstance(link, JointLink):
        return link
    return link.identity if (info.context or {}).get("identity") else link.name


class MultiIndex(LabelModel):
    """y = link(t₁, …, t_p) + noise, t_j = ξ_jᵀx, the ξ_j orthogonal with the norm 1/√‖Σ̄‖."""

    model: Literal["multi-index"] = "multi-index"
    indices: Annotated[Count, Field(le=MOST_INDICES)] = Field(
        default=2, description="number p of directions that labels depend on", examples=[2]
    )
    link: Annotated[Any, PlainSerializer(_written)] = Field(
        default="product",
        description="product, sum, xor (sign of the product), max, or nested lists with the "
        "coefficients of H_i(t1)·H_j(t2)…; in Python also a function of the projections",
        examples=["product"],
    )
    direction: Literal["random", "spikes"] = Field(
        default="random",
        description="random directions, or along the first spikes: the leading ones of all "
        "components, then the second ones, …",
        examples=["random"],
    )
    cosines: tuple[Annotated[Real, Field(ge=-1, le=1)], ...] | None = Field(
        default=None, examples=[[0.5, 0.0]],
        description="cosine of each direction with the spike of its number, in that order; beside "
        "it the direction is random",
    )  # fmt: skip
    noise: Noise = 0.0
    flip: Flip = 0.0

    @model_validator(mode="before")
    @classmethod
    def _one_link(cls, values: Any) -> Any:
        """The link as a JointLink, which knows how many projections it has."""
        count = values.get("indices", 2) if isinstance(values, dict) else None
        if not is_whole(count) or not 1 <= count <= MOST_INDICES:
            return values  # the field says what is wrong with it
        return {**values, "link": get_joint_link(values.get("link", "product"), count)}

    @property
    def binary(self) -> bool:
        return bool(self.link.binary)

    @property
    def joint_link(self) -> JointLink:
        link: JointLink = self.link
        return link

    def check(self, components: int, structured: bool) -> None:
        self._check_flip()
        given = None if self.cosines is None else list(self.cosines)
        if given is not None and len(given) != self.indices:
            raise SpecError.of(
                "labels.cosines", given, f"must have one entry for each of the {self.indices} "
                "indices", f"For example {[0.5] + [0.0] * (self.indices - 1)}",
            )  # fmt: skip
        self._check_direction(self.direction, structured, "labels.cosines", given)

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        raw = rng.standard_normal((population.dim, self.indices))
        if self.direction == "spikes":
            raw = self._along(population)
        elif orthogonal:
            raw = population.beside(raw)
        if self.cosines is not None:
            raw = tilted(raw, self._along(population), np.array(self.cosines))
        directions = orthonormal(raw) / np.sqrt(population.mean_covariance_norm)
        return Teacher(directions, (), None, self.noise, self.flip, self.link)

    def _along(self, population: Population) -> Array:
        """The first spikes (n × p): leading ones of all components, then second ones, …"""
        sizes = [s.shape[1] for s in population.spikes]
        places = spike_order(sizes)[: self.indices]
        if len(places) < self.indices:
            raise SpecError.of(
                "labels.indices", self.indices, f"and the data have {len(places)} spikes",
                "Use fewer indices, a higher data.rank, or random directions",
            )  # fmt: skip
        return np.stack([population.spikes[c][:, i] for c, i in places], axis=1)


def spike_order(sizes: list[int]) -> list[tuple[int, int]]:
    """(component, number) of all spikes: leading ones first."""
    most = max(sizes, default=0)
    return [(c, i) for i in range(most) for c, size in enumerate(sizes) if i < size]


def tilted(raw: Array, spikes: Array, cosines: Array) -> Array:
    """cosine_j·γ_j + √(1 − cosine_j²)·u_j, u orthonormal and orthogonal to all these spikes."""
    beside = orthonormal(outside(spikes, raw))
    return np.asarray(cosines * spikes + np.sqrt(1 - cosines**2) * beside)
