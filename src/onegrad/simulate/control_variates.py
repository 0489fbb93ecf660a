"""Control variates: what other teachers would have made of the same inputs.

Most of the variance of a test error between repetitions comes from where the teacher ξ (and the
label noise) happens to lie relative to the inputs X and the initial weights W₀. Ridge regression
on a model's features at the initial weights, σ(XW₀ᵀ) for the network, feels it like the model does,
and it knows nothing of the teacher: on the same X and W₀ its error for our teacher and its errors
for others have the same law. Hence

    C = S(ξ) − (1/R) Σ_r S(ξ_r),    ξ_1 … ξ_R drawn like ξ, each with label noise of its own,

has mean zero exactly, whatever function S is of the teacher, X and W₀, and however roughly it is
computed; it is a control variate for the errors of every model of the repetition. With the factor 1
it leaves Var S(ξ)/R of what it takes away, hence many teachers. The rest is mostly the teacher's
norm: |ξ|² = 1/‖Σ̄‖ depends on how much the random spikes of the components overlap, and labels scale
with ξ. The label power g(|ξ|²) less its mean over other populations, relative to a fixed number, is
the second control.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array, host, like, lower_gram, namespace
from onegrad.data.instance import Instance
from onegrad.data.label_base import Teacher, flipped
from onegrad.data.labels import SingleIndex
from onegrad.data.population import Population
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.pair_moments import expand
from onegrad.problem import Problem
from onegrad.simulate.models import MODELS
from onegrad.simulate.network.readout import RidgeSolver, solve_shifted
from onegrad.simulate.network.trial import Draw, Trial

CONTROLS = 2  # control variates of a repetition: C, and the label power
_TEACHERS = 63  # other teachers per repetition: the mean over them adds 1/8 of a standard deviation
_WORTH_ROUNDING = 256  # samples and neurons from which single precision is faster
_CHEAP = 512  # most inputs for which the Gram matrix of one more model is cheap
_ROUNDING = 1e-2  # largest relative rounding error of the readouts: C need not be exact


def random_teacher(problem: Problem) -> bool:
    """Whether every repetition has a teacher of its own."""
    labels = problem.labels
    random = isinstance(labels, SingleIndex) and labels.direction != "spikes"
    return random and problem.directions != "fixed"


def random_labels(problem: Problem) -> bool:
    """Whether the same inputs may have other labels: only then do teachers differ."""
    known = problem.data.known and problem.joint_link is None and problem.outputs == 1
    known = known and problem.labels.preprocess == "none"
    return known and (random_teacher(problem) or problem.label_noise_variance > 0)


def controlled_by(model: str, problem: Problem) -> str:
    """The model whose features at the initial weights control this one: itself where it has such
    features, else the network.

    A polynomial model of a large network has the network's, too: it differs the less from it the
    larger n is, and the price of a Gram matrix of its own is the higher.
    """
    if MODELS[model].untrained is None:
        return "network"
    side = min(problem.samples, problem.width)
    cheap = problem.dim <= _CHEAP or 2 * side <= problem.dim
    return model if cheap or not MODELS[model].noise else "network"


def own_controls(models: Iterable[str]) -> bool:
    """Whether C of every one of these models is of features like its own: its factor is about 1."""
    return all(MODELS[model].untrained is not None for model in models)


class Control(NamedTuple):
    """The control variates of a repetition for test error, training error and objective."""

    test_error: float
    train_error: float
    train_objective: float


Controls = tuple[Control, ...]  # C, then the label power; none where they were not asked for

# As columns of a table or of a store. The label power is the same for all three quantities.
CONTROL_COLUMNS = ("control_test", "control_train", "control_objective", "control_power")


def control_columns(controls: Controls) -> dict[str, float]:
    """The control variates of a row by column; NaN where there are none."""
    first, power = controls or (Control(*(math.nan,) * 3),) * 2
    return dict(zip(CONTROL_COLUMNS, (*first, power.test_error), strict=True))


def controls_from(values: Sequence[float | None]) -> Controls:
    """The control variates of a row from the values of its columns."""
    if any(value is None or math.isnan(value) for value in values):
        return ()
    test, train, objective, power = (float(v) for v in values if v is not None)
    return Control(test, train, objective), Control(power, power, power)


class ControlVariates:
    """The control variates of one draw: its other teachers serve all activations and ridges."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self._known: dict[tuple[str, int, Activation, tuple[float, ...]], list[Controls]] = {}

    @cached_property
    def _sampled(self) -> tuple[Teacher, Array]:
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

    def controls(self, trial: Trial, ridges: Sequence[float], model: str) -> list[Controls]:
        """The controls of a model of this draw, at each λ_eff; the same at every step size
        (eq. control).

        Cost: XW₀ᵀ, once for all activations; then that of one more model (`controlled_by`), whose
        memory it also takes, and a sixteenth of a product with the inputs for each component.
        """
        source = controlled_by(model, trial.problem)
        degree = trial.degree if MODELS[source].polynomial else 0
        key = source, degree, trial.problem.activation, tuple(ridges)
        if key not in self._known:
            power = Control(*(self._power,) * 3)
            found = self._controls(trial, ridges, source)
            self._known[key] = [(control, power) for control in found]
        return self._known[key]

    def _controls(self, trial: Trial, ridges: Sequence[float], source: str) -> Iterator[Control]:
        untrained = MODELS[source].untrained
        assert untrained is not None, f"{source} has no features at the initial weights"
        features = untrained(trial)
        phi, variance = features.moments(trial.train)
        if variance:
            trial.draw.add_noise(source.partition(":")[0], phi, variance)
        y = self._sampled[1]
        for ridge, a, residual in _readouts(phi, y, ridges):
            train = np.mean(residual**2, axis=0)
            objective = train + ridge * np.sum(a**2, axis=0)
            neurons = features.predictor(trial, a[:, 0]).neurons
            assert neurons is not None
            test = self._test_errors(neurons.activation, a, neurons.scale)
            test += variance * np.sum(a**2, axis=0)
            yield Control(*(float(v[0] - v[1:].mean()) for v in (test, train, objective)))

    @cached_property
    def _power(self) -> float:
        """g(|ξ|²) less its mean over other populations, over a fixed g; zero where |ξ| is the same
        in all: the relative luck of Var y, about."""
        problem = self.draw.problem
        components = len(self.draw.instance.population.weights)
        if problem.directions != "random" or components == 1 or not random_teacher(problem):
            return 0.0
        own = self.draw.instance.population.mean_covariance_norm
        rng = self.draw.streams.rng("control-instances")
        others = problem.data.covariance_norms(problem.spread, rng)
        usual = problem.data.population(problem.spread, np.random.default_rng(0))
        norms = [usual.mean_covariance_norm, own, *others]
        fixed, mine, *rest = _label_power(self.draw.instance, 1 / np.array(norms))
        difference = float(mine - np.mean(rest)) / float(fixed)
        return difference if abs(difference) > 1e-9 else 0.0

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

    def _test_errors(self, activation: Activation, readout: Array, scale: float) -> Array:
        """Test errors of features σ(w_iᵀx/scale) under each teacher, up to a constant: orders 0 and
        1 of `risk.exact` and the diagonal, which is what differs between teachers."""
        (population, weights), teachers = self._whitened, self._sampled[0]
        roots, projected, norms = self._projected
        total = np.zeros(readout.shape[1])
        for c in np.flatnonzero(population.weights):
            root, inner, shift = roots[c], projected[c][:, :-1], projected[c][:, -1]
            deviation = np.sqrt(norms + np.sum(inner**2, axis=1))
            neurons = expand(activation, shift / scale, deviation / scale, 1)
            bias = -neurons.coefficients[0] @ readout
            first = readout * (neurons.coefficients[1] / deviation)[:, None]
            slope = -host(like(first.T, weights) @ weights).T
            value = neurons.tail(1) @ readout**2
            if teachers.values is not None:
                bias += teachers.kept * teachers.values[c]
            else:
                xi = self.draw.instance.population.seen(teachers.direction.T).T
                link = teachers.links[c if len(teachers.links) > 1 else 0]
                length = np.sqrt(np.sum(xi**2, axis=0) + np.sum((root.T @ xi) ** 2, axis=0))
                label = expand(link, population.means[c] @ xi, length, 1)
                bias += teachers.kept * label.coefficients[0]
                slope += xi * (teachers.kept * label.coefficients[1] / length)
                value += teachers.kept**2 * label.tail(1)
            value += bias**2 + np.sum(slope**2, axis=0) + np.sum((root.T @ slope) ** 2, axis=0)
            total += population.weights[c] * value
        return total


def _readouts(
    phi: Array, y: np.ndarray, ridges: Sequence[float]
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """At each ridge the readouts (k × R) for labels in columns and their residuals (m × R).

    In single precision without refinement where it loses little: the teachers share what is lost.
    """
    m, k = phi.shape
    xp = namespace(phi)
    dual = k > m
    if isinstance(phi, np.ndarray) and min(m, k) >= _WORTH_ROUNDING:
        numbers = phi.reshape(-1)
        rounding = float(np.finfo(np.float32).eps) / 2 * float(numbers @ numbers)
        if rounding <= _ROUNDING * m * min(ridges):
            phi = phi.astype(np.float32, copy=False)
            labels: Array = np.asarray(y, dtype=phi.dtype)
            gram = lower_gram(phi, dual, np.empty((min(m, k),) * 2, phi.dtype))
            right = labels if dual else phi.T @ labels
            for i, ridge in enumerate(ridges):
                shifted = gram if i == len(ridges) - 1 else gram.copy(order="F")
                solution = solve_shifted(shifted, right, m * ridge)
                a = phi.T @ solution if dual else solution
                residual = m * ridge * solution if dual else labels - phi @ a
                yield ridge, host(a), host(residual)
            return
    phi = xp.astype(phi, xp.float64, copy=False)
    columns = like(y, phi)
    solver = RidgeSolver(phi, columns)
    for i, ridge in enumerate(ridges):
        a = solver.coefficients(ridge, last=i == len(ridges) - 1)
        yield ridge, host(a), host(columns - phi @ a)


def _label_power(instance: Instance, squares: np.ndarray) -> np.ndarray:
    """Σ_c ρ_c Var f_c(|ξ|Z) for several |ξ|²: of a teacher that meets no spike."""
    links, total = instance.teacher.links, np.zeros(len(squares))
    for c, weight in enumerate(instance.population.weights):
        link = links[c if len(links) > 1 else 0]
        total += weight * expand(link, np.zeros(len(squares)), np.sqrt(squares), 0).tail(0)
    return total
