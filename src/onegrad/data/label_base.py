"""What a label rule is: the teacher of one draw, and what a problem may ask of its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from onegrad.compute.backend import Array
from onegrad.data.population import Population
from onegrad.errors import AssumptionError, SpecError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.joint_links import JointLink
from onegrad.spec.fields import Real, Section
from onegrad.text.display import brief


@dataclass(frozen=True)
class Teacher:
    """The label rule of one draw: y = link_c(ξᵀx) + noise, y = joint(Ξᵀx) + noise, or
    y = value_c + noise.

    `direction` is ξ with its norm 1/√‖Σ̄‖, so that ξᵀx is O(1) along the strongest spike; it is
    zero for component labels, whose `values` (C, or C × K for K outputs) are set instead. Several
    teachers at once have a `direction` in each column of an n × r matrix, and m × r labels. Labels
    ±1 change their sign with the probability `flip`. With a `joint` link the columns of `direction`
    are its indices Ξ.
    """

    __repr__ = brief

    direction: Array
    links: tuple[Activation, ...]
    values: Array | None
    noise: float
    flip: float = 0.0
    joint: JointLink | None = None

    @property
    def outputs(self) -> int:
        """K, the length of a label: of one-hot classes their number."""
        return 1 if self.values is None or self.values.ndim == 1 else self.values.shape[1]

    @property
    def kept(self) -> float:
        """E y over the label before flips: 1 − 2·flip."""
        return 1.0 - 2.0 * self.flip

    @property
    def noise_variance(self) -> float:
        """Var[y | x]: noise² + 4·flip(1 − flip)."""
        return noise_variance(self.noise, self.flip)

    def mean(self, x: Array, component: np.ndarray) -> Array:
        """E[y | x, component]."""
        clean = self.clean(x, component)
        return self.kept * clean if self.flip else clean

    def clean(self, x: Array, component: np.ndarray) -> Array:
        """The label before flips and noise."""
        if self.values is not None:
            return np.asarray(self.values[component])
        single = x.dtype == np.float32
        projection = x @ (self.direction.astype(np.float32) if single else self.direction)
        if self.joint is not None:
            return self.joint(projection)
        return self.of_projection(projection, component)

    def of_projection(self, projection: Array, component: np.ndarray) -> Array:
        """link_c(ξᵀx), given ξᵀx."""
        if len(self.links) == 1:
            return self.links[0](projection)
        y = np.empty_like(projection)
        for c, link in enumerate(self.links):
            members = component == c
            y[members] = link(projection[members])
        return y

    def labels(
        self, x: Array, component: np.ndarray, noise: Array, signs: Array | float = 1.0
    ) -> Array:
        """Labels with their flips (−1 in `signs`) and noise, given as standard Gaussians (m, or
        m × K)."""
        y = signs * self.clean(x, component)
        return y + self.noise * noise if self.noise else y


def noise_variance(noise: float, flip: float) -> float:
    """Var[y | x] of labels: noise², and 4p(1 − p) for ±1 that change sign with probability p."""
    return noise**2 + 4.0 * flip * (1.0 - flip)


def flipped(y: Array, flip: float, rng: np.random.Generator) -> Array:
    """Labels whose signs have been changed with the probability `flip`; nothing drawn for 0."""
    return np.where(rng.random(y.shape) < flip, -y, y) if flip else y


class LabelModel(Section):
    """What a problem asks of its labels; the defaults are those of labels that came with the data.

    A subclass has fields or class variables `noise`, the standard deviation of the label noise, and
    `flip`, the probability that a label ±1 has the wrong sign.
    """

    table: ClassVar[str] = "labels"
    preprocess: Literal["none", "linear"] = Field(
        default="none", description="linear: mean and linear part of the labels are estimated on "
        "the step's sample, removed before step and readout, and added back to the prediction "
        "(isotropic data, simulation only)", examples=["linear"],
    )  # fmt: skip

    @property
    def binary(self) -> bool:
        """Labels ±1 before noise."""
        values = self.component_values
        return values is not None and all(abs(v) == 1 for v in values)

    @property
    def component_values(self) -> tuple[float, ...] | None:
        """y of each component before noise, where labels tell the component; else None."""
        return None

    def component_links(self, components: int) -> tuple[Activation, ...] | None:
        """The teacher's link in each component; None if labels do not come from a teacher."""
        return None

    def outputs(self, components: int) -> int:
        """K: how many numbers a label has; more than one where it says which class, one-hot."""
        return 1

    @property
    def joint_link(self) -> JointLink | None:
        """The link of several projections; None where there is none."""
        return None

    def check(self, components: int, structured: bool) -> None:
        """Raise SpecError if the labels do not fit the data; called when a Problem is made."""

    def teacher(
        self, population: Population, rng: np.random.Generator, orthogonal: bool
    ) -> Teacher:
        """The label rule of one draw; `orthogonal`: without chance overlaps with the spikes."""
        raise AssumptionError("labels that came with the data have no teacher")

    def of_rows(self, y: Array, component: np.ndarray) -> Array:
        """Labels (m) of rows of finite data: y are their own labels, component their components."""
        return y

    def _check_direction(self, direction: str, structured: bool, key: str, cosines: Any) -> None:
        """Refuse directions and cosines (`key`, None unless given) that need spikes to refer to."""
        needs = "needs data with spikes"
        if direction == "spikes" and not structured:
            raise SpecError.of(
                "labels.direction", direction, needs,
                'Use direction = "random", or data.model = "mixture" with rank ≥ 1',
            )  # fmt: skip
        if cosines is not None and (direction != "random" or not structured):
            raise SpecError.of(
                key, cosines, 'goes with direction = "random"' if structured else needs,
                'Leave it out, or set direction = "random" and data.rank ≥ 1',
            )  # fmt: skip

    def _check_flip(self) -> None:
        flip = getattr(self, "flip", 0.0)
        if flip and not self.binary:
            raise SpecError.of(
                "labels.flip", flip, "changes the sign of labels ±1, and these are others",
                'Use link = "sign", or component labels 1 and −1; for others labels.noise',
            )  # fmt: skip


Noise = Annotated[
    Real,
    Field(ge=0, le=1e6, description="standard deviation of the label noise", examples=[0.1]),
]
Flip = Annotated[
    Real,
    Field(
        ge=0, lt=0.5, examples=[0.1],
        description="probability with which a label ±1 has the wrong sign, independently",
    ),
]  # fmt: skip
