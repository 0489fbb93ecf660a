"""Problem: everything that simulation and theory need to know, frozen and validated."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from onegrad.compute.randomness import Rng, generator
from onegrad.data import Data, default_labels
from onegrad.data.base import DataNodes
from onegrad.data.instance import Instance, step_size
from onegrad.data.label_base import Teacher, noise_variance
from onegrad.data.labels import Labels, SingleIndex
from onegrad.data.population import Batch, Population
from onegrad.errors import AssumptionError, SpecError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.convex_losses import Loss, Softmax, loss_of
from onegrad.gaussian.joint_links import JointLink
from onegrad.spec.fields import Section, override
from onegrad.spec.presets import Spec, read_spec
from onegrad.spec.tables import Network, Scaling, Training
from onegrad.text.display import html_table

# Tables of a spec file that describe the experiment, not the problem (spec/experiment.py).
EXPERIMENT_KEYS = ("name", "compare", "sweep", "figure")
MOST_DEGREE = 4  # highest degree of the polynomial model, as in the source of the degree rule


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
    def from_spec(cls, spec: Spec) -> Problem:
        """From a TOML file, a preset's name or a nested mapping.

        Tables about the experiment are passed over: of a spec with a sweep this is the problem that
        its other tables state.
        """
        tables = read_spec(spec)
        return cls(**{str(k): v for k, v in tables.items() if k not in EXPERIMENT_KEYS})

    def replace(self, **changes: Any) -> Problem:
        """The same problem with some keys changed: `problem.replace(**{"training.rate": 3.0})`.

        A key may also be a whole table: `problem.replace(network=Network(width=50))`. What rules
        out the new setting is dropped: `training.rate` takes the place of [scaling], and the spread
        of the data stays what it was.

        >>> problem = Problem(data={"model": "isotropic", "dim": 50}, network={"width": 40},
        ...     training={"samples": 60, "rate": 1.0})
        >>> problem.replace(**{"training.rate": 3.0}).rate, problem.rate
        (3.0, 1.0)
        """
        keys = [key for key in changes if "." in key]
        tables = self.tables_for(keys)
        for key, value in changes.items():
            tables = override(tables, key, value)
        return Problem.from_spec(tables)

    def tables_for(self, keys: Collection[str]) -> dict[str, Any]:
        """Its tables without the settings that exclude these dotted keys."""
        opened = {key.partition(".")[0] for key in keys}
        by_hand = "training.rate" in keys and self.training.rate is None
        by_rule = self.training.rate is not None and "scaling" in opened
        by_spread = "data.spread" in keys and self.training.rate is None
        if by_hand or by_spread:
            opened |= {"data", "training"}
        if by_rule:
            opened |= {"data", "training"}
        tables = {
            name: _settings(getattr(self, name)) if name in opened else getattr(self, name)
            for name in type(self).model_fields
        }
        if by_hand or by_spread:
            tables["scaling"] = {}
            tables["training"]["rate"] = self.training.rate or _one(self.rates)
            if self.data.takes_spread and self.data.structured:
                tables["data"]["spread"] = self.spread
        if by_rule:
            tables["training"].pop("rate", None)
            tables["data"].pop("spread", None)
        return tables

    @model_validator(mode="before")
    @classmethod
    def _labels_of_the_data(cls, values: Any) -> Any:
        """The labels that the data default to; a table of labels may omit the default model."""
        if not isinstance(values, Mapping):
            return values
        values = {
            name: {str(key): v for key, v in table.items()} if isinstance(table, Mapping) else table
            for name, table in values.items()
        }
        labels, default = values.get("labels"), default_labels(values.get("data"))
        if callable(labels):  # y = labels(ξᵀx)
            labels = values["labels"] = {"link": labels}
        if labels is None and default is not None:
            values["labels"] = {"model": default}
        elif isinstance(labels, dict) and "model" not in labels:
            values["labels"] = {"model": "single-index", **labels}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Problem:
        self.data.check_labels(self.labels)
        self.scaling.check(self.network.convention, self.training, self.data)
        if self.labels.preprocess == "linear" and not self.data.isotropic:
            raise SpecError.of(
                "labels.preprocess", "linear", "takes the mean of y·x for the linear part of the "
                "labels, which holds where inputs are isotropic",
                'Set data.model = "isotropic" without data.spectrum, or preprocess = "none"',
            )  # fmt: skip
        if self.rows_left is not None and self.rows_left <= 0:
            raise SpecError.of(
                "training.samples", self.samples,
                f"step ({self.step_rows}) and readout ({self.samples}) must leave rows for "
                f"the test; the data have {self.data.rows}",
                f"For example {max(1, (self.data.rows or 0) // 3)}",
            )  # fmt: skip
        if self.outputs > 1:
            self.training.check_classes(self.outputs, self.label_noise)
        elif self.data.known and not self.labels_binary:
            self.training.check_no_signs()
        self._check_scales()
        return self

    def _check_scales(self) -> None:
        """Refuse scales that overflow: errors would be NaN, or the error of predicting zero."""
        with np.errstate(over="ignore", invalid="ignore"):
            scales = {
                "learning rate η": max(self.rates),
                "spread θ": self.spread,
                "mean trace of the covariances": self.mean_trace,
                "effective ridge": self.effective_ridge,
            }
        for name, value in scales.items():
            positive = value > 0 or name in ("learning rate η", "spread θ")
            if not (np.isfinite(value) and positive):
                of_data = name.startswith("mean trace")
                raise SpecError.of(
                    "data" if of_data else "scaling", value,
                    f"the {name} must be a finite number above 0",
                    "Inputs must not all be constant or as large as 1e150: rescale them" if of_data
                    else "Take less extreme sizes or exponents",
                )  # fmt: skip

    # --- how it looks ---------------------------------------------------------------------

    def __repr__(self) -> str:
        lines = [f"  {name:9} {text}" for name, text in self._described()]
        return "\n".join(["Problem", *lines])

    def _repr_html_(self) -> str:
        return html_table("Problem", ("", ""), self._described())

    def _described(self) -> list[tuple[str, str]]:
        """Its tables, and the sizes and scales that follow from them."""
        tables = [(name, getattr(self, name).summary()) for name in type(self).model_fields]
        sizes = f"n = {self.dim}, k = {self.width}, m = {self.samples}"
        rates = ", ".join(f"{rate:.4g}" for rate in dict.fromkeys(self.rates))
        scales = f"η = {rates}" + f", θ = {self.spread:.4g}" * self.data.structured
        degree = "" if self.strength is None else f", degree {self.degree}"
        notes = [("", self.activation.note)] if self.activation.note else []
        return [*tables, ("so that", f"{sizes}, {scales}{degree}"), *notes]

    # --- sizes and scales ---------------------------------------------------------------

    @property
    def rows_left(self) -> int | None:
        """Rows left for the test where the data are finite; None where any number can be drawn."""
        rows = self.data.rows
        return None if rows is None else rows - self.samples - self.step_rows

    @property
    def step_rows(self) -> int:
        """Samples that all steps use together; the readout does not see them."""
        if self.training.reuse:
            return 0
        return self.step_samples * (self.training.steps if self.training.batch == "fresh" else 1)

    @property
    def dim(self) -> int:
        """n: number of inputs."""
        return self.data.dim

    @property
    def samples(self) -> int:
        """m: samples of the readout stage."""
        return self.training.samples

    @property
    def operations(self) -> float:
        """Operations of the product XŴᵀ, 2·n·k·m; a repetition makes a few of these."""
        return 2.0 * self.dim * self.width * self.samples

    @property
    def step_samples(self) -> int:
        """m̃: samples of a gradient step."""
        return self.training.step_samples or self.training.samples

    @property
    def width(self) -> int:
        """k: number of neurons."""
        if self.network.width is not None:
            return self.network.width
        assert self.network.width_ratio is not None
        return max(1, round(self.network.width_ratio * self.samples))

    @property
    def rate(self) -> float:
        """η of the first step."""
        return self.rates[0]

    @property
    def rates(self) -> tuple[float, ...]:
        """η of every step."""
        steps, scaling = self.training.steps, self.scaling
        if self.training.rate is not None:
            return _each(self.training.rate, steps)
        if scaling.exponent is not None:
            constant = scaling.constant or 1.0
            return tuple(float(constant * self.samples**x) for x in _each(scaling.exponent, steps))
        assert scaling.strength is not None and scaling.weighting is not None
        return (float(self.dim ** (scaling.strength * scaling.weighting)),) * steps

    @property
    def trained(self) -> bool:
        """Whether any step moves the first layer."""
        return any(self.rates)

    @property
    def beyond_theory(self) -> str:
        """The first key that no theory covers, with advice; "" if all are covered."""
        refusals = {
            "training.reuse = true": (
                self.training.reuse, "needs fresh samples for the readout: the first layer depends "
                "on those of the step",
            ),
            'labels.preprocess = "linear"': (
                self.labels.preprocess != "none", "has no law of labels whose linear part was "
                "estimated and removed",
            ),
            'network.readout = "signs"': (
                self.network.readout == "signs", "is of Gaussian or equal initial readouts",
            ),
        }  # fmt: skip
        for key, (asked, why) in refusals.items():
            if asked:
                return f"{key}: the theory {why}. Simulate it, or leave that key out"
        return ""

    @property
    def one_step(self) -> bool:
        """Whether the first layer makes one step of gradient descent."""
        return self.training.steps == 1 and self.training.optimiser == "gd"

    @property
    def spread(self) -> float:
        """θ: the strength of the spikes, the trace of images; 0 where the data have neither."""
        if not self.data.structured:
            return 0.0
        if self.data.spread_by_hand is not None:
            return self.data.spread_by_hand
        assert self.scaling.strength is not None and self.scaling.weighting is not None
        return float(self.dim ** (self.scaling.strength * (1 - self.scaling.weighting)))

    @cached_property
    def activation(self) -> Activation:
        """σ as the network applies it: centred in the isotropic convention."""
        if self.network.convention == "isotropic":
            return self.network.activation.centred()
        return self.network.activation

    @cached_property
    def mean_trace(self) -> float:
        """tr Σ̄, the mean trace of the covariances."""
        return self.data.mean_trace(self.spread)

    @property
    def weight_variance(self) -> float:
        """Variance of the entries of W: 1/tr Σ̄, or 1/n in the isotropic convention."""
        return 1.0 / (self.dim if self.network.convention == "isotropic" else self.mean_trace)

    @property
    def readout_scale(self) -> float:
        """Standard deviation of the initial readout a: 1/k, or 1/√k in the isotropic convention."""
        return self.width ** (-0.5 if self.network.convention == "isotropic" else -1.0)

    @property
    def readout_mean(self) -> float:
        """E a_i of the initial readout: 0, or its scale where every entry is equal."""
        return self.readout_scale if self.network.readout == "constant" else 0.0

    @property
    def readout_std(self) -> float:
        """Standard deviation of the initial readout around `readout_mean`."""
        return 0.0 if self.network.readout == "constant" else self.readout_scale

    @property
    def readout_square(self) -> float:
        """E a_i² of the initial readout."""
        return self.readout_mean**2 + self.readout_std**2

    @property
    def effective_ridge(self) -> float:
        """λ_eff of (1/m) Σ ℓ + λ_eff‖a‖²: ridge·k, or ridge in the isotropic convention."""
        scale = 1 if self.network.convention == "isotropic" else self.width
        return self.training.ridge * scale

    @property
    def bulk_scale(self) -> float:
        """b: standard deviation of a preactivation that comes from the bulk of the covariance."""
        return float(np.sqrt(self.data.bulk_trace(self.spread) * self.weight_variance))

    @cached_property
    def loss(self) -> Loss:
        """The loss that the readout minimises; λ_eff‖a‖² is added to it."""
        return loss_of(self.training.loss, self.training.delta)

    @property
    def readout_loss(self) -> Loss | Softmax:
        """The loss of the readout; the logistic loss of several classes is a softmax."""
        return Softmax() if self.softmax else self.loss

    @property
    def softmax(self) -> bool:
        """Whether the readout is fitted to classes by a softmax."""
        return self.outputs > 1 and self.loss.name == "logistic"

    @cached_property
    def step_size(self) -> float | None:
        """η in units of the rate at which the step is large: the standard deviation of what it adds
        to a preactivation along its mean direction Cov(x, y), over that of the preactivation.

        Far below 1 the network is nearly one of random features; from about 1 on the step changes
        what a neuron sees altogether. 0 where labels have no linear part; None for real data,
        several outputs, several steps and other optimisers.
        """
        return step_size(self)

    # --- the degree rule ----------------------------------------------------------------

    @property
    def strength(self) -> float | None:
        """β of the degree rule, η·‖Σ‖ ≍ n^β; None where no rule is known.

        2·exponent in the isotropic convention; βα where the data have no spikes, because then the
        learning rate alone counts. None if η was set by hand, for spiked data in the isotropic
        convention, and for more than one step of gradient descent.
        """
        if not self.one_step:
            return None
        if self.scaling.exponent is not None:
            return None if self.data.structured else 2 * _each(self.scaling.exponent, 1)[0]
        if self.scaling.strength is None or self.data.structured:
            return self.scaling.strength
        assert self.scaling.weighting is not None
        return self.scaling.strength * self.scaling.weighting

    @property
    def degree(self) -> int:
        """ℓ of the equivalent polynomial model, by the degree rule."""
        return degree_rule(self.strength)

    # --- labels -------------------------------------------------------------------------

    @property
    def components(self) -> int:
        """Components of the data; one where they have none."""
        return self.data.components

    @cached_property
    def links(self) -> tuple[Activation, ...] | None:
        """σ*_c of E[y|x] = σ*_c(ξᵀx), one per component; None where no teacher labels."""
        links = self.labels.component_links(self.components)
        return None if links is None else tuple(link.scaled(self.label_kept) for link in links)

    @cached_property
    def joint_link(self) -> JointLink | None:
        """g of E[y|x] = g(Ξᵀx) where labels depend on several projections; else None."""
        joint = self.labels.joint_link
        return None if joint is None else joint.scaled(self.label_kept)

    @property
    def component_values(self) -> tuple[float, ...] | None:
        """E[y|x] in each component, where labels tell the component; else None."""
        values = self.labels.component_values
        return None if values is None else tuple(self.label_kept * v for v in values)

    @property
    def label_noise(self) -> float:
        """Standard deviation of the Gaussian noise of a label."""
        return self.labels.noise

    @property
    def label_flip(self) -> float:
        """Probability that a label ±1 has the wrong sign."""
        return self.labels.flip

    @property
    def label_kept(self) -> float:
        """Factor by which flips reduce the labels on average: 1 − 2·flip."""
        return 1.0 - 2.0 * self.label_flip

    @property
    def label_noise_variance(self) -> float:
        """Var[y|x], of noise and flips."""
        return noise_variance(self.label_noise, self.label_flip)

    @property
    def outputs(self) -> int:
        """K: outputs of the network, one for each class of one-hot labels; else one."""
        return self.labels.outputs(self.components)

    @property
    def labels_separate(self) -> bool:
        """Whether labels are constant in each component and differ between components."""
        return self.component_values is not None and len(set(self.component_values)) > 1

    @property
    def labels_binary(self) -> bool:
        """Labels ±1 without noise, for which the sign of the prediction is a classifier."""
        return self.labels.binary and self.label_noise == 0 and self.outputs == 1

    # --- draws --------------------------------------------------------------------------

    @property
    def directions(self) -> str:
        """Whether spikes are random, orthogonal or fixed; "random" where there are none."""
        return self.data.orientation

    @property
    def gaussian_teacher(self) -> bool:
        """Whether the teacher's norm is drawn with its direction."""
        return getattr(self.labels, "direction", None) == "gaussian"

    def instance(self, rng: Rng) -> Instance:
        """Directions and teacher of one draw, where the law of the data is known.

        The seed of a simulation, or the streams of a repetition, give what the simulation draws:
        the same in all repetitions if data.directions are fixed.
        """
        return self.draw_instance(generator(rng, "structure", self.directions == "fixed"))

    def draw_instance(self, rng: np.random.Generator) -> Instance:
        """Directions and teacher, drawn from this generator."""
        population = self.data.population(self.spread, rng)
        return Instance(population, self.draw_teacher(population, rng), self.data.fixed_counts)

    def draw_teacher(self, population: Population, rng: np.random.Generator) -> Teacher:
        """A teacher for this population: a direction and the links, or the components' values."""
        return self.labels.teacher(population, rng, self.directions == "orthogonal")

    def row_batch(self, rows: np.ndarray, rng: np.random.Generator) -> Batch:
        """Rows of finite data under noise of their own, with their labels before label noise."""
        batch = self.data.batch(rows, self.spread, rng)
        if self.outputs > 1:
            return replace(batch, y=np.eye(self.outputs)[batch.component])
        return replace(batch, y=self.labels.of_rows(batch.y, batch.component))

    def row_nodes(self, rows: np.ndarray) -> DataNodes:
        """Rows of finite data as nodes of the semi-parametric theory."""
        nodes = self.data.nodes(rows, self.spread)
        y = self.labels.of_rows(nodes.y, nodes.group)
        return replace(nodes, y=self.label_kept * y, label_noise=self.label_noise_variance)


def as_problem(problem: Problem | Spec) -> Problem:
    """The problem itself, or the one that a preset, a file or a mapping states."""
    return problem if isinstance(problem, Problem) else Problem.from_spec(problem)


def _settings(section: Section) -> dict[str, Any]:
    """The settings of a table that have a value."""
    values = {name: getattr(section, name) for name in type(section).model_fields}
    return {name: value for name, value in values.items() if value is not None}


def _one(values: tuple[float, ...]) -> float | tuple[float, ...]:
    return values[0] if len(set(values)) == 1 else values


def _each(value: float | tuple[float, ...], steps: int) -> tuple[float, ...]:
    """One value for each step."""
    return value if isinstance(value, tuple) else (value,) * steps


def degree_rule(strength: float | None) -> int:
    """Degree of the polynomial model: the least that is enough, but at most 4 (eq. degree-rule).

    min(4, max(1, ⌈β/(1 − β + 1e-6)⌉)), and 4 for β ≥ 1  [demir2025, Thm. 2 and its code;
    moniri2024 with β = 2α]: the integer ℓ with (ℓ−1)/ℓ < β ≤ ℓ/(ℓ+1) up to β = 4/5.

    >>> [degree_rule(b) for b in (0.0, 0.3, 0.5, 0.6, 0.74, 0.8, 0.9, 1.2)]
    [1, 1, 1, 2, 3, 4, 4, 4]
    """
    if strength is None:
        raise AssumptionError(
            "no degree rule applies: η or θ was set by hand, spiked data meet the isotropic "
            "convention, or there is more than one step of gradient descent. Give [scaling] "
            'strength and weighting for one step, set compare.degree, or name the model "hermite:3"'
        )
    needed = needed_degree(strength)
    return MOST_DEGREE if needed is None else min(needed, MOST_DEGREE)


def needed_degree(strength: float) -> int | None:
    """The degree rule without its cap; None for β ≥ 1, where no finite degree is enough.

    >>> [needed_degree(b) for b in (-0.4, 0.8, 0.9, 1.0)]
    [1, 4, 9, None]
    """
    beta = max(0.0, strength)
    return None if beta >= 1 else max(1, math.ceil(beta / (1 - beta + 1e-6)))
