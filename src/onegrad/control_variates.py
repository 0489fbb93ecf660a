"""Control variates: what other teachers would have made of the same inputs.

Most of the variance of a test error between repetitions comes from where the teacher ξ (and the
label noise) happens to lie relative to the inputs X and the initial weights W₀. Ridge regression
on the initial features σ(XW₀ᵀ) feels it like the network does, and it knows nothing of the
teacher: on the same X and W₀ its error for our teacher and its errors for others have the same
law. Hence

    C = S(ξ) − (1/R) Σ_r S(ξ_r),    ξ_1 … ξ_R drawn like ξ, each with label noise of its own,

has mean zero exactly, whatever function S is of the teacher, X and W₀; it is a control variate
for the errors of every model of the repetition. The rest is mostly the teacher's norm: |ξ|² =
1/‖Σ̄‖ depends on how much the random spikes of the components overlap, and labels scale with ξ.
Its difference to the mean of |ξ|² over other instances is the second control.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array, host, like, namespace
from onegrad.data.label_base import Teacher, flipped
from onegrad.data.labels import SingleIndex
from onegrad.data.population import Population
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.pair_moments import expand
from onegrad.network.readout import RidgeSolver
from onegrad.network.trial import Draw, Trial
from onegrad.problem import Problem

CONTROLS = 2  # control variates of a repetition: C, and the teacher's norm
_TEACHERS = 15  # other teachers of a repetition; more would lower the variance of C by 1/15 at most
_INSTANCES = 8  # of which the mean of |ξ|² is taken; a tenth of a millisecond and more each


def random_teacher(problem: Problem) -> bool:
    """Whether every repetition has a teacher of its own."""
    labels = problem.labels
    random = isinstance(labels, SingleIndex) and labels.direction != "spikes"
    return random and problem.directions != "fixed"


def random_labels(problem: Problem) -> bool:
    """Whether the same inputs may have other labels: only then do teachers differ."""
    known = problem.data.known and problem.joint_link is None and problem.outputs == 1
    return known and (random_teacher(problem) or problem.label_noise_variance > 0)


class Control(NamedTuple):
    """The control variates of a repetition for test error, training error and objective."""

    test_error: float
    train_error: float
    train_objective: float


Controls = tuple[Control, ...]  # C, then the norm; none where they were not asked for

# As columns of a table or of a store. The norm is the same for all three quantities.
CONTROL_COLUMNS = ("control_test", "control_train", "control_objective", "control_norm")


def control_columns(controls: Controls) -> dict[str, float]:
    """The control variates of a row by column; NaN where there are none."""
    first, norm = controls or (Control(*(math.nan,) * 3),) * 2
    return dict(zip(CONTROL_COLUMNS, (*first, norm.test_error), strict=True))


def controls_from(values: Sequence[float | None]) -> Controls:
    """The same back from the values of the columns."""
    if any(value is None or math.isnan(value) for value in values):
        return ()
    test, train, objective, norm = (float(v) for v in values if v is not None)
    return Control(test, train, objective), Control(norm, norm, norm)


class ControlVariates:
    """Of one draw: other teachers and their labels, for all activations and ridges."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self._known: dict[tuple[Activation, tuple[float, ...]], list[Controls]] = {}

    @cached_property
    def _drawn(self) -> tuple[Teacher, Array]:
        """The teachers and their labels of the training set, m × (1 + R): our own one first."""
        draw, rng = self.draw, self.draw.streams.rng("control-teachers")
        own, batch = draw.instance.teacher, draw.train.batch
        others = [own] * _TEACHERS
        if random_teacher(draw.problem):
            others = [draw.problem.draw_teacher(draw.instance.population, rng) for _ in others]
        directions = np.column_stack([t.direction for t in (own, *others)])
        teachers = replace(own, direction=directions)
        if own.values is None:
            projection = host(batch.x @ like(directions, batch.x))
            labels = teachers.of_projection(projection, batch.component)
        else:
            labels = np.repeat(own.values[batch.component][:, None], 1 + _TEACHERS, axis=1)
        labels = flipped(labels, own.flip, rng)
        if own.noise:
            labels += own.noise * rng.standard_normal(labels.shape)
        labels[:, 0] = host(batch.y)
        return teachers, labels

    def controls(self, trial: Trial, ridges: Sequence[float]) -> list[Controls]:
        """The controls of a trial of this draw, at each λ_eff; the same at every step size.

        Cost: XW₀ᵀ, once for all activations; then that of one more model in double precision
        (`RidgeSolver`), whose memory it also takes.
        """
        key = trial.problem.activation, tuple(ridges)
        if key not in self._known:
            norm = Control(*(self._norm,) * 3)
            self._known[key] = [(control, norm) for control in self._controls(trial, ridges)]
        return self._known[key]

    def _controls(self, trial: Trial, ridges: Sequence[float]) -> Iterator[Control]:
        inputs, labels = trial.train, self._drawn[1]
        product, out = inputs.workspace(trial.weights)
        phi = trial.problem.activation.into(product, out)
        xp = namespace(phi)
        phi = xp.astype(phi, xp.float64, copy=False)
        y = like(labels, phi)
        solver = RidgeSolver(phi, y, trial.draw.pool)
        for i, ridge in enumerate(ridges):
            a = solver.coefficients(ridge, last=i == len(ridges) - 1)
            residual, readout = host(y - phi @ a), host(a)
            train = np.mean(residual**2, axis=0)
            objective = train + ridge * np.sum(readout**2, axis=0)
            test = self._test_errors(trial.problem.activation, readout)
            yield Control(*(float(v[0] - v[1:].mean()) for v in (test, train, objective)))

    @cached_property
    def _norm(self) -> float:
        """|ξ|² less its mean over other instances; zero where it is the same in all."""
        problem, rng = self.draw.problem, self.draw.streams.rng("control-instances")
        components = len(self.draw.instance.population.weights)
        if problem.directions != "random" or components == 1 or not random_teacher(problem):
            return 0.0
        instances = [self.draw.instance, *(problem.draw_instance(rng) for _ in range(_INSTANCES))]
        own, *others = (float(np.sum(instance.teacher.direction**2)) for instance in instances)
        difference = own - float(np.mean(others))
        return difference if abs(difference) > 1e-9 * own else 0.0

    @cached_property
    def _whitened(self) -> tuple[Population, Array]:
        """The population and the initial weights for inputs whose bulk is the identity."""
        population = self.draw.instance.population
        return population.whitened, population.seen(self.draw.weights)

    @cached_property
    def _projected(self) -> tuple[list[Array], list[Array], Array]:
        """Σ_c = I + LLᵀ: every L, and of the neurons W₀L, W₀μ_c (last column) and |w_i|²; for
        whitened inputs, where the bulk is not the identity."""
        population, weights = self._whitened
        roots = [
            s * np.sqrt(t) for s, t in zip(population.spikes, population.strengths, strict=True)
        ]
        columns = [np.column_stack(pair) for pair in zip(roots, population.means, strict=True)]
        product = host(weights @ like(np.hstack(columns), weights))
        ends = np.cumsum([c.shape[1] for c in columns])[:-1]
        norms = host(namespace(weights).vecdot(weights, weights))
        return roots, np.split(product, ends, axis=1), norms

    def _test_errors(self, activation: Activation, readout: Array) -> Array:
        """Of the initial features under each teacher, up to a constant: the orders 0 and 1 of
        `risk.exact` and the diagonal, which is what differs between teachers."""
        (population, weights), teachers = self._whitened, self._drawn[0]
        roots, projected, norms = self._projected
        total = np.zeros(readout.shape[1])
        for c in np.flatnonzero(population.weights):
            root, inner, shift = roots[c], projected[c][:, :-1], projected[c][:, -1]
            deviation = np.sqrt(norms + np.sum(inner**2, axis=1))
            neurons = expand(activation, shift, deviation, 1)
            bias = -neurons.coefficients[0] @ readout
            first = readout * (neurons.coefficients[1] / deviation)[:, None]
            slope = -host(like(first.T, weights) @ weights).T
            value = neurons.tail(1) @ readout**2
            if teachers.values is not None:
                bias += teachers.kept * teachers.values[c]
            else:
                xi = self.draw.instance.population.seen(teachers.direction.T).T
                link = teachers.links[c if len(teachers.links) > 1 else 0]
                scale = np.sqrt(np.sum(xi**2, axis=0) + np.sum((root.T @ xi) ** 2, axis=0))
                label = expand(link, population.means[c] @ xi, scale, 1)
                bias += teachers.kept * label.coefficients[0]
                slope += xi * (teachers.kept * label.coefficients[1] / scale)
                value += teachers.kept**2 * label.tail(1)
            value += bias**2 + np.sum(slope**2, axis=0) + np.sum((root.T @ slope) ** 2, axis=0)
            total += population.weights[c] * value
        return total
