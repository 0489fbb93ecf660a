"""Labels: a single-index teacher, the component itself, or what came with the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo

from onegrad.compute.backend import Array
from onegrad.data.population import Population
from onegrad.declared import Real, Section
from onegrad.errors import AssumptionError, SpecError
from onegrad.gaussian.activation import Activation, get_activation, written


def _link(value: Any) -> Any:
    if isinstance(value, list | tuple):
        if not value:
            raise SpecError.of(
                "labels.link", [], "must name a link, or one per component", 'For example "relu"'
            )
        return tuple(get_activation(v, "labels.link") for v in value)
    return get_activation(value, "labels.link")


def _name(link: Activation | tuple[Activation, ...], info: SerializationInfo) -> str | list[str]:
    return (
        [written(part, info) for part in link] if isinstance(link, tuple) else written(link, info)
    )


Link = Annotated[
    Activation | tuple[Activation, ...], BeforeValidator(_link), PlainSerializer(_name)
]


@dataclass(frozen=True)
class Teacher:
    """The label rule of one draw: y = link_c(ξᵀx) + noise, or y = value_c + noise.

    `direction` is ξ with its norm 1/√‖Σ̄‖, so that ξᵀx is O(1) along the strongest spike; it is
    zero for component labels, whose `values` are set instead. Several teachers at once have a
    `direction` in each column of an n × r matrix, and m × r labels.
    """

    direction: Array
    links: tuple[Activation, ...]
    values: Array | None
    noise: float

    def mean(self, x: Array, component: np.ndarray) -> Array:
        """E[y | x, component]."""
        if self.values is not None:
            return np.asarray(self.values[component])
        return self.of_projection(x @ self.direction, component)

    def of_projection(self, projection: Array, component: np.ndarray) -> Array:
        """link_c(ξᵀx), given ξᵀx."""
        if len(self.links) == 1:
            return self.links[0](projection)
        y = np.empty_like(projection)
        for c, link in enumerate(self.links):
            members = component == c
            y[members] = link(projection[members])
        return y

    def labels(self, x: Array, component: np.ndarray, noise: Array) -> Array:
        """E[y | x, component] plus the label noise, given as standard Gaussians (m)."""
        y = self.mean(x, component)
        return y + self.noise * noise if self.noise else y


class LabelModel(Section):
    """What a problem asks of its labels; the defaults are those of labels that came with the data.

    A subclass has a field or class variable `noise`, the standard deviation of the label noise.
    """

    table: ClassVar[str] = "labels"

    @property
    def component_values(self) -> tuple[float, ...] | None:
        """y of each component before noise, where labels tell the component; else None."""
        return None

    def component_links(self, components: int) -> tuple[Activation, ...] | None:
        """The teacher's link in each component; None where no teacher labels."""
        return None

    def check(self, components: int, structured: bool) -> None:
        """Refuse what does not fit the data: called when a Problem is put together."""

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        """The label rule of one draw; `orthogonal`: without chance overlaps with the spikes."""
        raise AssumptionError("labels that came with the data have no teacher")

    def of_rows(self, y: Array, component: np.ndarray) -> Array:
        """The labels (m) of rows that came with the labels y and are of these components."""
        return y


class SingleIndex(LabelModel):
    """y = link(ξᵀx) + noise with ‖ξ‖ = 1/√‖Σ̄‖, as in Demir & Dogan (2025)."""

    model: Literal["single-index"] = "single-index"
    link: Link = Field(
        default_factory=lambda: get_activation("relu"),
        description="an activation's name, hermite(c0, c1, …), or a list with one per component",
        examples=["relu"],
    )
    direction: Literal["random", "spikes"] = Field(
        default="random",
        description="the teacher's direction: random, or along the sum of the leading spikes",
        examples=["random"],
    )
    cosine: Annotated[Real, Field(ge=-1, le=1)] | None = Field(
        default=None, examples=[0.5],
        description="cosine of the teacher with the leading spike of the first component that has "
        "one; beside it the direction is random",
    )  # fmt: skip
    noise: Real = Field(
        default=0.0, ge=0, le=1e6, description="standard deviation of the label noise",
        examples=[0.1],
    )  # fmt: skip

    @property
    def links(self) -> tuple[Activation, ...]:
        """The link of all components, or one for each."""
        return self.link if isinstance(self.link, tuple) else (self.link,)

    def component_links(self, components: int) -> tuple[Activation, ...]:
        return self.links * components if len(self.links) == 1 else self.links

    def check(self, components: int, structured: bool) -> None:
        if len(self.links) not in (1, components):
            raise SpecError.of(
                "labels.link", [link.name for link in self.links],
                f"must be one link, or one per component ({components})",
                f'For example "{self.links[0].name}"',
            )  # fmt: skip
        if self.direction == "spikes" and not structured:
            raise SpecError.of(
                "labels.direction", self.direction, "needs data with spikes",
                'Use direction = "random", or data.model = "mixture" with rank ≥ 1',
            )  # fmt: skip
        if self.cosine is not None and (self.direction == "spikes" or not structured):
            what = "needs data with spikes" if not structured else "goes with a random direction"
            raise SpecError.of(
                "labels.cosine", self.cosine, what,
                'Leave it out, or set direction = "random" and data.rank ≥ 1',
            )  # fmt: skip

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        direction = rng.standard_normal(population.dim)
        if self.direction == "spikes":
            direction = np.sum([s[:, 0] for s in population.spikes if s.shape[1]], axis=0)
        elif orthogonal:
            basis = np.linalg.qr(np.hstack([*population.spikes, population.means.T]))[0]
            direction -= basis @ (basis.T @ direction)
        if self.cosine is not None:
            spike = next(s[:, 0] for s in population.spikes if s.shape[1])
            direction -= spike * (spike @ direction)
            direction *= np.sqrt(1 - self.cosine**2) / np.linalg.norm(direction)
            direction += self.cosine * spike
        direction /= np.linalg.norm(direction) * np.sqrt(population.mean_covariance_norm)
        return Teacher(direction, self.links, None, self.noise)


class ComponentLabels(LabelModel):
    """y tells the component: +1 and −1 for two of them."""

    model: Literal["component"] = "component"
    values: tuple[Real, ...] | None = Field(
        default=None, max_length=100,
        description="label of each component; +1 and −1 for two components", examples=[[1, -1]],
    )  # fmt: skip
    noise: Real = Field(
        default=0.0, ge=0, le=1e6, description="standard deviation of the label noise",
        examples=[0.0],
    )  # fmt: skip

    def check(self, components: int, structured: bool) -> None:
        if self.values is None and components != 2:
            raise SpecError.of(
                "labels.values", None,
                f"is needed for {components} components: one label for each (two components "
                "default to +1 and −1)", f"For example {list(range(components))}",
            )  # fmt: skip
        if self.values is not None and len(self.values) != components:
            raise SpecError.of(
                "labels.values", list(self.values),
                f"must have one entry per component ({components})",
                f"For example {list(range(components))}",
            )  # fmt: skip

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        return Teacher(np.zeros(population.dim), (), np.array(self.component_values), self.noise)

    @property
    def component_values(self) -> tuple[float, ...]:
        return self.values if self.values is not None else (1.0, -1.0)

    def of_rows(self, y: Array, component: np.ndarray) -> Array:
        return np.array(self.component_values)[component]


class GivenLabels(LabelModel):
    """The labels that came with the data: a column of the file, an array, or the class (±1)."""

    model: Literal["given"] = "given"
    noise: ClassVar[float] = 0.0


Labels = Annotated[SingleIndex | ComponentLabels | GivenLabels, Field(discriminator="model")]
