"""Problem: everything that simulation and theory need to know, frozen and validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from onegrad.activation import Activation, get_activation
from onegrad.data.arrays import Arrays, File
from onegrad.data.digits import Digits
from onegrad.data.fashion_mnist import FashionMnist
from onegrad.data.images import Images
from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import ComponentLabels, GivenLabels, Labels, SingleIndex, Teacher
from onegrad.data.mixture import Mixture
from onegrad.data.population import Population
from onegrad.errors import AssumptionError, SpecError
from onegrad.hermite import Array
from onegrad.randomness import Streams
from onegrad.sections import Count, Real, Section, read_toml

Data = Annotated[
    Isotropic | Mixture | FashionMnist | Digits | Arrays | File, Field(discriminator="model")
]
NamedActivation = Annotated[
    Activation,
    BeforeValidator(lambda value: get_activation(value, "network.activation")),
    PlainSerializer(lambda activation: activation.name),
]

# Tables of a spec file that describe the experiment, not the problem (experiments/spec.py).
EXPERIMENT_KEYS = ("name", "compare", "sweep", "figure")


class Network(Section):
    """f(x) = aᵀσ(Wx) with k neurons; the convention sets the initial scales."""

    table: ClassVar[str] = "network"
    convention: Literal["mixture", "isotropic"] = Field(
        default="mixture", description="initial scales and meaning of the ridge: docs/notation.md",
        examples=["mixture"],
    )  # fmt: skip
    activation: NamedActivation = Field(
        default_factory=lambda: get_activation("relu"), validate_default=True,
        description="σ: a name, or hermite(c0, c1, …)", examples=["relu"],
    )  # fmt: skip
    width: Count | None = Field(default=None, description="number of neurons k", examples=[1000])
    width_ratio: Real | None = Field(
        default=None,
        gt=0,
        le=1000,
        description="neurons per sample k/m, instead of width",
        examples=[1.0],
    )
    readout: Literal["gaussian", "constant"] = Field(
        default="gaussian", description="initial readout: Gaussian, or every entry equal",
        examples=["gaussian"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _one_width(self) -> Network:
        if (self.width is None) == (self.width_ratio is None):
            given = None if self.width is None else [self.width, self.width_ratio]
            raise SpecError.of(
                "network.width", given, "give either width = k or width_ratio = k/m, not both",
                "For example width = 1000",
            )  # fmt: skip
        return self


class Training(Section):
    """One gradient step on its own samples, then ridge regression on fresh ones."""

    table: ClassVar[str] = "training"
    samples: Count = Field(description="samples m of the readout stage", examples=[1000])
    step_samples: Count | None = Field(
        default=None, description="samples of the gradient step; as many as `samples` by default",
        examples=[1000],
    )  # fmt: skip
    ridge: Real = Field(
        default=1e-4, gt=0, le=1e6, description="regularisation as the convention defines it",
        examples=[1e-4],
    )  # fmt: skip
    rate: Real | None = Field(
        default=None, ge=0, le=1e9, description="learning rate η by hand, instead of [scaling]",
        examples=[30.0],
    )  # fmt: skip
    gradient: Literal["exact", "labels-only"] = Field(
        default="exact",
        description="exact, or labels-only: the initial output left out of the residual",
        examples=["exact"],
    )


class Scaling(Section):
    """How η and θ grow: strength β and weighting α, or an exponent for η alone."""

    table: ClassVar[str] = "scaling"
    strength: Real | None = Field(
        default=None, ge=0, le=1, examples=[0.74],
        description="β: how strong the spread of the data and the step are together, η·θ = n^β",
    )  # fmt: skip
    weighting: Real | None = Field(
        default=None, ge=0, le=1, examples=[0.5],
        description="α: how β is shared, from the data alone (0) to the learning rate alone (1); "
        "η = n^{βα}, θ = n^{β(1−α)}",
    )  # fmt: skip
    exponent: Real | None = Field(
        default=None, ge=-5, le=2, description="isotropic convention: η = constant·m^exponent",
        examples=[0.29],
    )  # fmt: skip
    constant: Real | None = Field(
        default=None, gt=0, le=1e9, description="isotropic convention: factor of η", examples=[1.0]
    )

    @model_validator(mode="after")
    def _one_way(self) -> Scaling:
        pair = (self.strength is not None, self.weighting is not None)
        if any(pair) and self.exponent is not None:
            raise SpecError.of(
                "scaling.exponent", self.exponent,
                "cannot be combined with strength and weighting", "Keep one of the two",
            )  # fmt: skip
        if any(pair) and not all(pair):
            missing = "weighting" if pair[0] else "strength"
            raise SpecError.of(
                f"scaling.{missing}", None, "is needed: strength and weighting come together",
                "For example strength = 0.74, weighting = 0.5",
            )  # fmt: skip
        if self.constant is not None and self.exponent is None:
            raise SpecError.of(
                "scaling.exponent", None, "is needed beside constant", "For example exponent = 0.29"
            )
        return self


@dataclass(frozen=True)
class World:
    """One draw of what is random about the population itself: directions and teacher."""

    population: Population
    teacher: Teacher


class Problem(Section):
    """Data, labels, network, training and scaling: one problem for simulation and theory alike.

    >>> problem = Problem(
    ...     data={"model": "mixture", "dim": 500}, network={"width": 400},
    ...     training={"samples": 600}, scaling={"strength": 0.74, "weighting": 0.5},
    ... )
    >>> round(problem.rate, 3), round(problem.spread, 3), problem.degree
    (9.968, 9.968, 3)
    """

    data: Data
    labels: Labels = Field(default_factory=SingleIndex, validate_default=True)
    network: Network
    training: Training
    scaling: Scaling = Field(default_factory=Scaling)

    @classmethod
    def from_spec(cls, spec: str | Path | Mapping[str, Any]) -> Problem:
        """From a TOML file or a nested mapping; tables about the experiment are passed over."""
        tables = dict(spec) if isinstance(spec, Mapping) else read_toml(spec)
        return cls(**{str(k): v for k, v in tables.items() if k not in EXPERIMENT_KEYS})

    @model_validator(mode="before")
    @classmethod
    def _labels_of_the_data(cls, values: Any) -> Any:
        """Data that bring their labels need no [labels]; a table may omit the default model."""
        if not isinstance(values, Mapping):
            return values
        values = dict(values)
        data, labels = values.get("data"), values.get("labels")
        kind = data.get("model") if isinstance(data, Mapping) else getattr(data, "model", None)
        if labels is None and kind in ("arrays", "file"):
            values["labels"] = GivenLabels()
        elif labels is None and kind in ("fashion-mnist", "digits"):
            values["labels"] = ComponentLabels()
        elif isinstance(labels, Mapping) and "model" not in labels:
            values["labels"] = {"model": "single-index", **labels}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Problem:
        fitting: tuple[str, ...] = ("single-index", "component")
        if isinstance(self.data, Images):
            fitting = ("component", "given")
        elif isinstance(self.data, Arrays | File):
            fitting = ("given",)
        if self.labels.model not in fitting:
            wanted = " or ".join(f'"{name}"' for name in fitting)
            raise SpecError.of(
                "labels.model", self.labels.model, f"must be {wanted} for this data.model",
                f'For example "{fitting[0]}"' if len(fitting) > 1 else "Leave out [labels]",
            )  # fmt: skip
        components = 2 if isinstance(self.data, Images) else 1
        components = len(self.data.weights) if isinstance(self.data, Mixture) else components
        rank = self.data.rank if isinstance(self.data, Mixture) else 0
        self.labels.check(components, rank)
        self._check_scaling(isinstance(self.data, Mixture | Images))
        if self.rows_left is not None and self.rows_left <= 0:
            rows = self.rows_left + self.samples + self.step_samples
            raise SpecError.of(
                "training.samples", self.samples,
                f"step ({self.step_samples}) and readout ({self.samples}) must leave rows for "
                f"the test; the data have {rows}",
                f"For example {max(1, rows // 3)}",
            )  # fmt: skip
        return self

    def _check_scaling(self, mixture: bool) -> None:
        isotropic_convention = self.network.convention == "isotropic"
        by_strength = self.scaling.strength is not None
        by_exponent = self.scaling.exponent is not None
        if by_strength and isotropic_convention:
            raise SpecError.of(
                "scaling.strength", self.scaling.strength,
                'belongs to convention = "mixture"; the isotropic one takes exponent and constant',
                "For example exponent = 0.29",
            )  # fmt: skip
        if by_exponent and not isotropic_convention:
            raise SpecError.of(
                "scaling.exponent", self.scaling.exponent,
                'belongs to convention = "isotropic"; the mixture one takes strength and weighting',
                "For example strength = 0.74, weighting = 0.5",
            )  # fmt: skip
        if self.training.rate is not None and (by_strength or by_exponent):
            raise SpecError.of(
                "training.rate", self.training.rate,
                "cannot be combined with [scaling]: both set η",
                "Remove one of the two",
            )  # fmt: skip
        if self.training.rate is None and not (by_strength or by_exponent):
            wanted = (
                "exponent = 0.29" if isotropic_convention else "strength = 0.74, weighting = 0.5"
            )
            raise SpecError.of(
                "scaling", None, "is needed to know the learning rate (or training.rate by hand)",
                f"For example [scaling] {wanted}",
            )  # fmt: skip
        spread = getattr(self.data, "spread", None)
        if mixture and spread is None and not by_strength:
            raise SpecError.of(
                "data.spread", None, "is needed: [scaling] does not set the spread θ here",
                "For example spread = 12.0",
            )  # fmt: skip
        if mixture and spread is not None and by_strength:
            raise SpecError.of(
                "data.spread", spread, "cannot be combined with scaling.strength: both set θ",
                "Remove one of the two, or set training.rate by hand too",
            )  # fmt: skip

    # --- sizes and scales ---------------------------------------------------------------

    @property
    def rows_left(self) -> int | None:
        """Samples for the test where the data are finite; None where they are drawn at will."""
        if isinstance(self.data, Isotropic | Mixture):
            return None
        return self.data.rows - self.samples - self.step_samples

    @property
    def dim(self) -> int:
        return self.data.dim

    @property
    def samples(self) -> int:
        return self.training.samples

    @property
    def step_samples(self) -> int:
        return self.training.step_samples or self.training.samples

    @property
    def width(self) -> int:
        if self.network.width is not None:
            return self.network.width
        assert self.network.width_ratio is not None
        return max(1, round(self.network.width_ratio * self.samples))

    @property
    def rate(self) -> float:
        """η."""
        if self.training.rate is not None:
            return self.training.rate
        if self.scaling.exponent is not None:
            return float((self.scaling.constant or 1.0) * self.samples**self.scaling.exponent)
        assert self.scaling.strength is not None and self.scaling.weighting is not None
        return float(self.dim ** (self.scaling.strength * self.scaling.weighting))

    @property
    def spread(self) -> float:
        """θ: the strength of the spikes, the trace of images; 0 where the data have neither."""
        if not self._structured:
            return 0.0
        assert isinstance(self.data, Mixture | Images)
        if self.data.spread is not None:
            return self.data.spread
        assert self.scaling.strength is not None and self.scaling.weighting is not None
        return float(self.dim ** (self.scaling.strength * (1 - self.scaling.weighting)))

    @property
    def _structured(self) -> bool:
        return isinstance(self.data, Images) or getattr(self.data, "rank", 0) > 0

    @cached_property
    def activation(self) -> Activation:
        """σ as the network applies it: centred in the isotropic convention."""
        if self.network.convention == "isotropic":
            return self.network.activation.centred()
        return self.network.activation

    @cached_property
    def mean_trace(self) -> float:
        """tr Σ̄, the mean trace of the covariances."""
        if isinstance(self.data, Mixture):
            return self.dim + self.spread * float(self.data.relative_strengths.sum())
        if isinstance(self.data, Isotropic | Images):
            return float(self.dim + self.spread)
        return float(self.data.load()[0].var(axis=0).sum())

    @property
    def weight_variance(self) -> float:
        """Variance of the entries of W: 1/tr Σ̄, or 1/n in the isotropic convention."""
        return 1.0 / (self.dim if self.network.convention == "isotropic" else self.mean_trace)

    @property
    def readout_scale(self) -> float:
        """Standard deviation of the initial readout a: 1/k, or 1/√k in the isotropic convention."""
        return self.width ** (-0.5 if self.network.convention == "isotropic" else -1.0)

    @property
    def effective_ridge(self) -> float:
        """λ_eff of (1/m)‖y − Φa‖² + λ_eff‖a‖²: ridge·k, or ridge in the isotropic convention."""
        scale = 1 if self.network.convention == "isotropic" else self.width
        return self.training.ridge * scale

    @property
    def bulk_scale(self) -> float:
        """b: standard deviation of a preactivation that comes from the bulk of the covariance.

        For data given as arrays nothing splits bulk from structure, and the whole trace counts.
        So it does for images, whose structure is spread over hundreds of directions, unless
        data.bulk says otherwise.
        """
        whole = getattr(self.data, "bulk", "noise") == "all" or isinstance(self.data, Arrays | File)
        bulk = self.mean_trace if whole else self.dim
        return float(np.sqrt(bulk * self.weight_variance))

    # --- the degree rule ----------------------------------------------------------------

    @property
    def strength(self) -> float | None:
        """β of the degree rule, η·‖Σ‖ ≍ n^β; None where no rule is known.

        2·exponent in the isotropic convention; βα where the data have no spikes, because then the
        learning rate alone counts. None if η was set by hand, and for spiked data in the isotropic
        convention.
        """
        if self.scaling.exponent is not None:
            return None if self._structured else 2 * self.scaling.exponent
        if self.scaling.strength is None or self._structured:
            return self.scaling.strength
        assert self.scaling.weighting is not None
        return self.scaling.strength * self.scaling.weighting

    @property
    def degree(self) -> int:
        """ℓ = ⌈β/(1−β)⌉, at least 1: the degree of the equivalent polynomial model."""
        return degree_rule(self.strength)

    # --- draws --------------------------------------------------------------------------

    @property
    def class_labels(self) -> Array:
        """The label of each component, before noise; +1 and −1 where nothing else is said."""
        known = self.labels if isinstance(self.labels, ComponentLabels) else ComponentLabels()
        return known.label_values

    def world(self, streams: Streams) -> World:
        """Directions and teacher of one repetition; the same for all if directions are fixed."""
        if isinstance(self.data, Arrays | File | Images) or isinstance(self.labels, GivenLabels):
            raise AssumptionError("images and arrays have no known population to draw from")
        shared = self.directions == "fixed"
        return self.draw_world((streams.shared_rng if shared else streams.rng)("structure"))

    def draw_world(self, rng: np.random.Generator) -> World:
        assert not isinstance(self.data, Arrays | File | Images)
        population = self.data.population(self.spread, rng)
        return World(population, self.draw_teacher(population, rng))

    def draw_teacher(self, population: Population, rng: np.random.Generator) -> Teacher:
        assert not isinstance(self.labels, GivenLabels)
        return self.labels.teacher(population, rng, self.directions == "orthogonal")

    @property
    def directions(self) -> str:
        """How the spikes lie: random, orthogonal, fixed; random where there are none."""
        return str(getattr(self.data, "directions", "random"))


def degree_rule(strength: float | None) -> int:
    """The integer ℓ ≥ 1 with (ℓ−1)/ℓ < β ≤ ℓ/(ℓ+1)  [demir2025, Thm. 2; moniri2024 with β = 2α].

    >>> [degree_rule(b) for b in (0.0, 0.3, 0.5, 0.6, 0.74)]
    [1, 1, 1, 2, 3]
    """
    if strength is None:
        raise AssumptionError(
            "no degree rule applies: η or θ was set by hand, or spiked data meet the isotropic "
            "convention. Give [scaling] strength and weighting instead, or set compare.degree"
        )
    if strength >= 1:
        raise AssumptionError(
            f"no finite degree is enough at β = {strength:g} ≥ 1. Set compare.degree (4, say), or "
            "use the conditional-gaussian model, which has no degree"
        )
    # 1e-9 keeps β = ℓ/(ℓ+1), not exact in floating point, at ℓ
    return max(1, int(np.ceil(strength / (1 - strength) - 1e-9)))
