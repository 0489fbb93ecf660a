"""Labels: a teacher, the component itself, or what came with the data."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo

from onegrad.compute.backend import Array
from onegrad.data.label_base import Flip, LabelModel, Noise, Teacher
from onegrad.data.multi_index import MultiIndex
from onegrad.data.population import Population
from onegrad.errors import SpecError
from onegrad.gaussian.activation import SIGN, Activation, get_activation, written
from onegrad.spec.fields import Real


def _link(value: Any) -> Any:
    if isinstance(value, list | tuple):
        if not value:
            raise SpecError.of(
                "labels.link", [], "must name a link, or one per component", 'For example "relu"'
            )
        return tuple(get_activation(v, "labels.link") for v in value)
    return get_activation(value, "labels.link")


def _name(link: Activation | tuple[Activation, ...], info: SerializationInfo) -> Any:
    if isinstance(link, tuple):
        return [written(part, info) for part in link]
    return written(link, info)


Link = Annotated[
    Activation | tuple[Activation, ...], BeforeValidator(_link), PlainSerializer(_name)
]


class SingleIndex(LabelModel):
    """y = link(ξᵀx) + noise with ‖ξ‖ = 1/√‖Σ̄‖, as in Demir & Dogan (2025); with direction =
    "gaussian" ξ has entries N(0, 1/n)/√‖Σ̄‖, the Gaussian signal of Moniri et al. (2024)."""

    model: Literal["single-index"] = "single-index"
    link: Link = Field(
        default_factory=lambda: get_activation("relu"),
        description="an activation's name, sign, hermite(c0, c1, …), or a list, one per component",
        examples=["relu"],
    )
    direction: Literal["random", "gaussian", "spikes"] = Field(
        default="random",
        description="the teacher: a random direction; gaussian: that with entries N(0, 1/n), whose "
        "norm is 1 on average only; spikes: along the sum of the leading spikes",
        examples=["random"],
    )
    cosine: Annotated[Real, Field(ge=-1, le=1)] | None = Field(
        default=None, examples=[0.5],
        description="cosine of the teacher with the leading spike of the first component that has "
        "one; beside it the direction is random",
    )  # fmt: skip
    noise: Noise = 0.0
    flip: Flip = 0.0

    @property
    def links(self) -> tuple[Activation, ...]:
        """The link of all components, or one for each."""
        return self.link if isinstance(self.link, tuple) else (self.link,)

    def component_links(self, components: int) -> tuple[Activation, ...]:
        return self.links * components if len(self.links) == 1 else self.links

    @property
    def binary(self) -> bool:
        return all(link == SIGN for link in self.links)

    def check(self, components: int, structured: bool) -> None:
        self._check_flip()
        if len(self.links) not in (1, components):
            raise SpecError.of(
                "labels.link", [link.name for link in self.links],
                f"must be one link, or one per component ({components})",
                f'For example "{self.links[0].name}"',
            )  # fmt: skip
        self._check_direction(self.direction, structured, "labels.cosine", self.cosine)

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        direction = rng.standard_normal(population.dim)
        length = np.linalg.norm(direction) / np.sqrt(population.dim)
        if self.direction == "spikes":
            direction = np.sum([s[:, 0] for s in population.spikes if s.shape[1]], axis=0)
        elif orthogonal:
            direction = population.beside(direction)
        if self.cosine is not None:
            spike = next(s[:, 0] for s in population.spikes if s.shape[1])
            direction -= spike * (spike @ direction)
            direction *= np.sqrt(1 - self.cosine**2) / np.linalg.norm(direction)
            direction += self.cosine * spike
        direction /= np.linalg.norm(direction) * np.sqrt(population.mean_covariance_norm)
        if self.direction == "gaussian":
            direction *= length
        return Teacher(direction, self.links, None, self.noise, self.flip)


class ComponentLabels(LabelModel):
    """y tells the component: +1 and −1 for two of them; for more one output for each, 1 or 0."""

    model: Literal["component"] = "component"
    values: tuple[Annotated[Real, Field(ge=-1e6, le=1e6)], ...] | None = Field(
        default=None, max_length=100,
        description="label of each component; by default +1 and −1 for two, and for more as many "
        "outputs as components (one-hot)", examples=[[1, -1]],
    )  # fmt: skip
    noise: Noise = 0.0
    flip: Flip = 0.0

    def check(self, components: int, structured: bool) -> None:
        if self.values is None and components < 2:
            raise SpecError.of(
                "labels.values", None, "is needed for one component: its label", "For example [1]"
            )
        if self.values is not None and len(self.values) != components:
            raise SpecError.of(
                "labels.values", list(self.values),
                f"must have one entry per component ({components})",
                f"For example {list(range(components))}",
            )  # fmt: skip
        if self.flip and self.outputs(components) > 1:
            raise SpecError.of(
                "labels.flip", self.flip, f"changes the sign of labels ±1, and {components} "
                "classes have none", "Use labels.noise, or give labels.values of 1 and −1",
            )  # fmt: skip
        self._check_flip()

    def outputs(self, components: int) -> int:
        return components if self.values is None and components > 2 else 1

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        values = np.array(self.component_values)
        if self.outputs(population.components) > 1:
            values = np.eye(population.components)
        return Teacher(np.zeros(population.dim), (), values, self.noise, self.flip)

    @property
    def component_values(self) -> tuple[float, ...]:
        return self.values if self.values is not None else (1.0, -1.0)

    def of_rows(self, y: Array, component: np.ndarray) -> Array:
        return np.array(self.component_values)[component]


class GivenLabels(LabelModel):
    """The labels that came with the data: a column of the file, an array, or the class (±1)."""

    model: Literal["given"] = "given"
    noise: ClassVar[float] = 0.0
    flip: ClassVar[float] = 0.0


Labels = Annotated[
    SingleIndex | MultiIndex | ComponentLabels | GivenLabels, Field(discriminator="model")
]
