"""The tables [network], [training] and [scaling] of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from onegrad.data.base import DataModel
from onegrad.errors import SpecError
from onegrad.gaussian.activation import Activation, get_activation, written
from onegrad.gaussian.convex_losses import DELTA, OF_SIGNS
from onegrad.spec.fields import Count, Real, Section

NamedActivation = Annotated[
    Activation,
    BeforeValidator(lambda value: get_activation(value, "network.activation")),
    PlainSerializer(written),
]

Rate = Annotated[Real, Field(ge=0, le=1e9)]
Exponent = Annotated[Real, Field(ge=-5, le=2)]
Optimiser = Literal["gd", "sign", "adam", "muon", "kfac"]  # of simulate/network/optimisers.py
DAMPING = 0.1  # damping of K-FAC, where covariances are about one


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
    rows: Literal["gaussian", "unit"] = Field(
        default="gaussian", description="initial weights of a neuron: Gaussian, or a random "
        "direction of that length: norm 1 where tr Σ̄ = n", examples=["gaussian"],
    )  # fmt: skip
    readout: Literal["gaussian", "constant", "signs"] = Field(
        default="gaussian", description="initial readout: Gaussian, every entry equal, or entries "
        "of that size with random signs (simulation only)", examples=["gaussian"],
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
    """Steps on the first layer, on samples of their own, then the readout fitted on fresh ones."""

    table: ClassVar[str] = "training"
    samples: Count = Field(description="samples m of the readout stage", examples=[1000])
    step_samples: Count | None = Field(
        default=None, description="samples of the gradient step; as many as `samples` by default",
        examples=[1000],
    )  # fmt: skip
    total: Count | None = Field(
        default=None, description="samples of steps and readout together, instead of `samples`: "
        "half of them for the steps, or none where rate = 0", examples=[2000],
    )  # fmt: skip
    ridge: Real = Field(
        default=1e-4, gt=0, le=1e6, description="regularisation as the convention defines it",
        examples=[1e-4],
    )  # fmt: skip
    rate: Rate | tuple[Rate, ...] | None = Field(
        default=None, description="learning rate η by hand, instead of [scaling]; a list has one "
        "for each step", examples=[30.0],
    )  # fmt: skip
    gradient: Literal["exact", "labels-only"] = Field(
        default="exact",
        description="exact, or labels-only: the network's output left out of the residual",
        examples=["exact"],
    )
    steps: Annotated[Count, Field(le=1000)] = Field(
        default=1, description="steps on the first layer, the readout at its initial value",
        examples=[1],
    )  # fmt: skip
    batch: Literal["fresh", "same"] = Field(
        default="fresh", description="every step has step_samples of its own, or all have the same",
        examples=["fresh"],
    )  # fmt: skip
    reuse: bool = Field(
        default=False, description="the readout is fitted on the samples of the step, instead of "
        "fresh ones (simulation only)", examples=[True],
    )  # fmt: skip
    optimiser: Optimiser = Field(
        default="gd", examples=["gd"],
        description="how a gradient moves the first layer: docs/book/any-first-layer.md",
    )  # fmt: skip
    damping: Annotated[Real, Field(gt=0, le=1e6)] | None = Field(
        default=None, description=f"of kfac: δ added to the inputs' covariance, else {DAMPING}",
        examples=[DAMPING],
    )  # fmt: skip
    loss: Literal["squared", "logistic", "hinge", "squared-hinge", "huber", "absolute"] = Field(
        default="squared", description="what the readout minimises beside its ridge; logistic, "
        "hinge and squared-hinge for labels ±1, logistic of more than two classes is a softmax "
        "(simulation only): docs/book/losses.md", examples=["logistic"],
    )  # fmt: skip
    delta: Annotated[Real, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="of the huber loss: the residual from which on it grows "
        f"linearly, else {DELTA:g}", examples=[DELTA],
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _shared_out(cls, values: Any) -> Any:
        """`samples` and `step_samples` of a total."""
        total = values.get("total") if isinstance(values, Mapping) else None
        if not isinstance(total, int) or isinstance(total, bool) or total < 1:
            return values
        if values.get("rate") == 0:
            return {**values, "samples": total}
        steps, fresh = values.get("steps", 1), values.get("batch", "fresh") == "fresh"
        batches = steps if fresh and isinstance(steps, int) else 1
        each = max(1, total // (2 * batches))
        if each * batches >= total:
            raise SpecError.of(
                "training.total", total, f"must be more than {batches}, one sample for each step",
                f"For example {100 * batches}",
            )  # fmt: skip
        return {**values, "samples": total - each * batches, "step_samples": each}

    @model_validator(mode="after")
    def _a_rate_for_each_step(self) -> Training:
        check_steps("training.rate", self.rate, self.steps)
        if self.reuse and self.step_samples not in (None, self.samples):
            raise SpecError.of(
                "training.step_samples", self.step_samples, "must equal training.samples "
                f"({self.samples}) where reuse = true: step and readout have one sample",
                "Leave step_samples out",
            )  # fmt: skip
        if self.reuse and self.steps > 1 and self.batch == "fresh":
            raise SpecError.of(
                "training.reuse", True, f"needs one sample for all {self.steps} steps",
                'Set training.batch = "same", or leave reuse out',
            )  # fmt: skip
        if self.damping is not None and self.optimiser != "kfac":
            raise SpecError.of(
                "training.damping", self.damping, f'belongs to optimiser = "kfac", not '
                f'"{self.optimiser}"', "Remove it",
            )  # fmt: skip
        if self.delta is not None and self.loss != "huber":
            raise SpecError.of(
                "training.delta", self.delta, f'belongs to loss = "huber", not "{self.loss}"',
                'Remove it, or set loss = "huber"',
            )  # fmt: skip
        return self

    def check_classes(self, outputs: int, noise: float) -> None:
        """Several outputs have the squared loss, or the softmax of classes that are certain."""
        if self.loss not in ("squared", "logistic"):
            raise SpecError.of(
                "training.loss", self.loss,
                f"is a loss of one output, and {outputs} classes have as many",
                'Use loss = "logistic" (a softmax) or "squared", two components, or labels.values',
            )  # fmt: skip
        if self.loss == "logistic" and noise:
            raise SpecError.of(
                "labels.noise", noise, 'cannot be added to classes where training.loss = "logistic"'
                ": a softmax is for labels that name one class",
                'Use noise = 0, or loss = "squared"',
            )  # fmt: skip

    def check_no_signs(self) -> None:
        """Refuse a loss of signs, where labels are known to be others than ±1."""
        if self.loss in OF_SIGNS:
            raise SpecError.of(
                "training.loss", self.loss,
                "is for labels ±1 without noise: component labels with such values, or a teacher "
                "of signs",
                'Use labels.model = "component" with values ±1, or loss = "squared", "huber" or '
                '"absolute"',
            )  # fmt: skip


def check_steps(key: str, value: float | tuple[float, ...] | None, steps: int) -> None:
    """Refuse a list that has not one value for each step."""
    if isinstance(value, tuple) and len(value) != steps:
        raise SpecError.of(
            key, list(value), f"must have one value for each of the {steps} steps",
            f"Give {steps} values, one number for all steps, or training.steps = {len(value)}",
        )  # fmt: skip


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
    exponent: Exponent | tuple[Exponent, ...] | None = Field(
        default=None, description="isotropic convention: η = constant·m^exponent; a list has one "
        "for each step", examples=[0.29],
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

    def check(self, convention: str, training: Training, data: DataModel) -> None:
        """Refuse what leaves η or θ open, or sets them twice."""
        rate = training.rate
        check_steps("scaling.exponent", self.exponent, training.steps)
        isotropic = convention == "isotropic"
        by_strength = self.strength is not None
        by_exponent = self.exponent is not None
        if by_strength and isotropic:
            raise SpecError.of(
                "scaling.strength", self.strength,
                'belongs to network.convention = "mixture"',
                'With "isotropic" write for example exponent = 0.29',
            )  # fmt: skip
        if by_exponent and not isotropic:
            raise SpecError.of(
                "scaling.exponent", self.exponent,
                'belongs to network.convention = "isotropic"',
                'With "mixture" write for example strength = 0.74, weighting = 0.5',
            )  # fmt: skip
        if rate is not None and (by_strength or by_exponent):
            raise SpecError.of(
                "training.rate", rate,
                "cannot be combined with [scaling]: both set η",
                "Remove one of the two",
            )  # fmt: skip
        if rate is None and not (by_strength or by_exponent):
            wanted = "exponent = 0.29" if isotropic else "strength = 0.74, weighting = 0.5"
            raise SpecError.of(
                "scaling", None, "is needed to know the learning rate (or training.rate by hand)",
                f"For example [scaling] {wanted}",
            )  # fmt: skip
        if not data.takes_spread:
            return
        spread = data.spread_by_hand
        if spread is None and not by_strength:
            raise SpecError.of(
                "data.spread", None, "is needed: [scaling] does not set the spread θ here",
                "For example spread = 12.0",
            )  # fmt: skip
        if spread is not None and by_strength:
            raise SpecError.of(
                "data.spread", spread, "cannot be combined with scaling.strength: both set θ",
                "Remove one of the two, or set training.rate by hand too",
            )  # fmt: skip
