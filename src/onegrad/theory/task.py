"""What the theory of mixtures is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.step import StepChance
from onegrad.theory.neurons.types import NeuronTypes
from onegrad.theory.nodes.population import Nodes
from onegrad.theory.open import Decision, Open
from onegrad.theory.policy import Policy
from onegrad.theory.readout.errors import Correction, NodeErrors

# What is averaged over draws of a problem
NUMBERS = (
    "test_error", "train_error", "train_objective", "misclassification", "label_variance",
    "test_loss", "train_loss", "calibration",
)  # fmt: skip
ERRORS = [NUMBERS.index(name) for name in ("test_error", "train_error", "test_loss", "train_loss")]
CALIBRATION = NUMBERS.index("calibration")
WRONG = NUMBERS.index("misclassification")


@dataclass(frozen=True)
class Task:
    """A problem with its special directions; its neurons are the pure ones unless given.

    chance : of the step along strong directions, where it is known or averaged over (chance.py)
    flat : whether outputs are known to differ less between nodes than at each of them, so that a
        loss with a clipped slope needs no more nodes than others
    most : types × nodes beyond which no resolution is solved (`Policy.patience`)
    surplus : surplus of positive labels in the readout's samples, in standard deviations; losses
        other than the squared one alone know it (`LossProblem`)
    coarse : a coarser resolution of the same task, for such a loss to start from
    policy : the numbers that decide
    """

    problem: Problem
    geometry: Geometry
    neurons: NeuronTypes | None = None
    chance: StepChance | None = None
    surplus: float = 0.0
    flat: bool = False
    most: float = np.inf
    coarse: Solution | None = None
    policy: Policy = field(default=Policy(), repr=False)

    @classmethod
    def of(cls, problem: Problem, overlaps: str = "auto", seed: int = 0) -> Task:
        """With the overlaps of a draw, or typical ones (`geometry_of`)."""
        return cls(problem, geometry_of(problem, overlaps, seed))


@dataclass(frozen=True)
class Solution:
    """What the theory says about one problem, and how far to trust it.

    test_error, train_error : mean squared errors; train_objective adds λ_eff‖a‖²
    component_test, component_train : (C,) the same within each component (NaN for weight 0)
    misclassification : share of wrong signs of f for labels ±1, else None
    test_loss, train_loss : of the readout's own loss, without penalty
    calibration : of the logistic loss, else None
    degrees_left : m − df₂, the samples beyond those that the readout uses up. The theory is an
        expansion in its inverse: at k ≈ m with next to no ridge it is of order one, and one
        training set differs from the next by a large factor
    iterations, residual : of the iteration for the fixed point
    by_node, where : errors node by node, and the nodes
    neurons : the types, T of them
    task : the problem, and the geometry whose coordinates nodes and neurons have: the task's own,
        or where many directions are alike one with an axis for each group of them (symmetry.py)
    mean_degrees : tr[νWνᵀ(diag(1/(cm)) + νWνᵀ)⁻¹], the degrees of freedom that the mean part of
        the features uses up and (11) does not count; 0 unless there are many directions
    status : "ok", "draft" (one coarse resolution, no error estimate) or "not settled" (the estimate
        is above the accuracy asked for)
    open : relative, of the larger of test and train: rules, from two resolutions that differ in
        every axis; sizes, what the correction leaves; chance of draws; physics left out. Not known
        of a draft
    decisions : of rules and of means over draws
    apart : what decides whether two resolutions are close; the same, with squared errors counted a
        third beside a loss of signs, of which they are no measure
    correction : for finite size, in the errors above; nodes and neurons are those of the limit
    label_variance : Var y of this geometry, exactly (no quadrature of the nodes)
    """

    test_error: float
    train_error: float
    train_objective: float
    component_test: Array
    component_train: Array
    misclassification: float | None
    degrees_left: float
    iterations: int
    residual: float
    by_node: NodeErrors
    where: Nodes
    neurons: NeuronTypes
    task: Task
    mean_degrees: float = 0.0
    status: str = "ok"
    open: Open = field(default=Open())
    correction: Correction | None = None
    label_variance: float = np.nan
    test_loss: float = np.nan
    train_loss: float = np.nan
    calibration: float | None = None
    apart: float = np.nan
    decisions: tuple[Decision, ...] = ()

    @property
    def error_estimate(self) -> float:
        """Relative; NaN for a draft."""
        return np.nan if self.status == "draft" else self.open.total

    @property
    def numbers(self) -> Array:
        """The `NUMBERS`, NaN for those it has not, then the errors of each component."""
        found = [getattr(self, name) for name in NUMBERS]
        known = [np.nan if value is None else value for value in found]
        return np.concatenate([known, self.component_test, self.component_train])

    def times(self, ratios: Array) -> Solution:
        """With its numbers times these; ratios that are not finite count as one."""
        ratios = np.where(np.isfinite(ratios), ratios, 1.0)
        own, parts = ratios[: len(NUMBERS)].tolist(), ratios[len(NUMBERS) :]
        values = [getattr(self, name) for name in NUMBERS]
        named = zip(NUMBERS, values, own, strict=True)
        count = len(self.component_test)
        return replace(
            self, **{name: value * ratio for name, value, ratio in named if value is not None},
            component_test=self.component_test * parts[:count],
            component_train=self.component_train * parts[count:],
        )  # fmt: skip

    @property
    def squared(self) -> bool:
        """Whether the readout is that of ridge regression."""
        return self.task.problem.loss.name == "squared"

    @property
    def flat(self) -> bool:
        """Whether outputs differ less between nodes of a component than at each of them."""
        result, where = self.by_node, self.where
        between = 0.0
        for c in np.unique(where.component):
            mine = where.component == c
            w, f = where.weights[mine], result.prediction[mine]
            between += float(w @ (f - w @ f / w.sum()) ** 2)
        return between < float(where.weights @ result.variance)

    @property
    def geometry(self) -> Geometry:
        return self.task.geometry

    @property
    def types(self) -> int:
        """T, the number of neuron types."""
        return len(self.neurons.bulk)

    @property
    def nodes(self) -> int:
        """S, the number of nodes of the data."""
        return len(self.where.weights)

    @property
    def work(self) -> float:
        """What the resolution cost, roughly: (T + S)R² an iteration, R the rank of the table of
        slopes, and its T·S entries."""
        rank = self.by_node.response.blocks[0].u.shape[-1]
        return float((self.types + self.nodes) * rank**2 + 150 * self.types * self.nodes)
