"""The readout with any convex loss as a squared one, re-weighted (docs/book/losses.md).

At every node the loss has the mean curvature D, mean slope E ρ and mean square E ρ² (moments.py),
all functions of (f, q, χ) there. With c = 1/D − χ the fixed point of the squared loss is that of
the weights w_s = ω_s/(c_s + χ_s), and

    f = Nα,  α_s = ω_s E ρ,      q = B(α) + (1/m) J (ω E ρ²)  (eq. loss-equations)

are its equations for f and q with other labels and noise. The outer iteration is over (f, q, χ),
on either engine (`Stage`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.convex_losses import Loss
from onegrad.theory.readout.anderson import Acceleration
from onegrad.theory.readout.errors import NodeErrors
from onegrad.theory.readout.fixed_point import FixedPoint
from onegrad.theory.readout.label_surplus import with_surplus
from onegrad.theory.readout.moments import LabelLaw, LossMoments
from onegrad.theory.readout.stage import Inner, Stage, State, TypeStage

_ITERATIONS = 80  # most outer iterations; 4 to 20 are usual
# Iterations after which a logarithm that still changes by more than one means failure
_HOPELESS = 40
# Tolerance of inner fixed points: at first, and in units of the last outer change
_ROUGH, _SHARE = 1e-4, 1e-3
_LOOSE = 1e-3  # tolerance on the way, at larger ridges and smoother kinks
_SMOOTH = (0.1, 0.0)  # added to χ where a loss has a kink
_SMOOTHEST = 100.0  # first value added to χ if the iteration does not converge without
_FACTORS = (4.0, 1.1)  # largest and smallest factor by which it is reduced in one step
_SHARP = 0.1  # smoothing below this share of χ is left out
_SMOOTHER = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)  # added to χ at each of the larger ridges
_RIDGES = (1000.0, 100.0, 10.0, 1.0)  # factors of the ridge, one after the other


class NotSettled(ConvergenceError):
    """The outer iteration over a loss has no end; says what to do."""


@dataclass(frozen=True)
class LossProblem(Generic[Inner]):
    """A readout to be solved for.

    surplus : z of one training set, with labels ±1: its mean label is ȳ + z √(Var y/m)
    near : a state that is not far from the solution, if one is known
    """

    stage: Stage[Inner]
    loss: Loss
    binary: bool
    surplus: Array | float = 0.0
    near: State[Inner] | None = None

    @property
    def labels(self) -> LabelLaw:
        """Of fresh samples."""
        return LabelLaw(self.stage.labels, self.stage.noise, self.binary)

    @cached_property
    def drawn(self) -> Stage[Inner]:
        """With the weights and labels of that training set, eq. surplus."""
        stage = self.stage
        if not np.any(self.surplus):
            return stage
        some = with_surplus(stage.weights, stage.labels, stage.samples, self.surplus)
        return stage.with_labels(*some)

    @property
    def drawn_labels(self) -> LabelLaw:
        return LabelLaw(self.drawn.labels, self.drawn.noise, self.binary)


@dataclass(frozen=True)
class LossErrors:
    """Errors of a readout with its loss, at fresh samples and at those of the training set (eqs.
    loss-values, readout-norm and squared-errors).

    found : moments of the loss at the state, in the training set
    node_test, node_train : (S,) squared residuals; the others are means over nodes
    """

    found: LossMoments
    node_test: Array
    node_train: Array
    test_error: Array
    train_error: Array
    train_objective: Array
    test_loss: Array
    train_loss: Array


def solve_with_loss(
    problem: LossProblem[FixedPoint], tolerance: float = 1e-6
) -> tuple[FixedPoint, NodeErrors]:
    """Fixed point and errors of types with any loss; the squared one goes through the same
    iteration. Tolerance and errors as in `solve_loss`."""
    state = solve_loss(problem, tolerance)
    drawn, stage = problem.drawn, problem.stage
    assert isinstance(drawn, TypeStage) and isinstance(stage, TypeStage)
    found = _moments(problem, state)
    readout, f, q, response = drawn.outputs(state.inner, state, found)
    end = errors_with_loss(problem, state, (f, q))
    along_labels = None
    if problem.binary:
        at = state.prediction, state.variance, state.chi
        slopes = problem.drawn_labels.slope_times_label(problem.loss, *at)
        along_labels = drawn.weights * slopes
    return state.inner, NodeErrors(
        f, q, end.node_test, end.node_train, readout, end.train_objective, end.test_error,
        end.train_error, response, end.train_loss, end.test_loss, drawn.weights * found.mean,
        along_labels,
    )  # fmt: skip


def _moments(problem: LossProblem[Inner], at: State[Inner]) -> LossMoments:
    return problem.drawn_labels.moments(problem.loss, at.prediction, at.variance, at.chi)


def errors_with_loss(
    problem: LossProblem[Inner], state: State[Inner], outputs: tuple[Array, Array] | None = None
) -> LossErrors:
    """At a solution. outputs : f and q of one more step, where they are known"""
    f, q, chi = state.prediction, state.variance, state.chi
    labels, found = problem.labels, _moments(problem, state)
    fresh = labels.moments(problem.loss, f, q, chi) if np.any(problem.surplus) else found
    mean, variance = outputs or (f, q)
    total = labels.noise + (labels.mean - mean) ** 2 + variance
    penalty = f * found.mean - q * found.slope + chi * found.square

    def over(stage: Stage[Inner], values: Array) -> Array:
        return np.asarray((stage.weights * values).sum(axis=-1))

    train = problem.drawn
    return LossErrors(
        found, total, found.train_square, over(problem.stage, total),
        over(train, found.train_square), over(train, found.train_loss + penalty),
        over(problem.stage, fresh.test_loss), over(train, found.train_loss),
    )  # fmt: skip


def solve_loss(problem: LossProblem[Inner], tolerance: float = 1e-6) -> State[Inner]:
    """The solution at all nodes. Eqs. loss-equations and smoothing.

    tolerance : of the outer iteration, in log q, log χ and f over its size. Raises ConvergenceError
    with advice where it does not settle. 4 to 20 outer iterations of one `Stage.step` each.
    """
    inner = min(1e-3 * tolerance, 1e-9)
    kink = problem.loss.kink
    if problem.near is not None:
        try:
            return _settled(problem, problem.near, 0.0, tolerance, inner)
        except ConvergenceError:
            pass
    state = problem.drawn.of_squared_loss(inner)
    try:
        for smooth in _SMOOTH if kink else (0.0,):
            state = _settled(problem, state, smooth, tolerance if smooth == 0 else _LOOSE, inner)
        return state
    except ConvergenceError:
        if kink:
            try:
                return _from_smoother_losses(problem, tolerance, inner)
            except ConvergenceError:
                pass
    try:
        return _from_larger_ridges(problem, tolerance, inner)
    except NotSettled:
        raise
    except ConvergenceError as error:
        raise NotSettled(
            f"the theory of the {problem.loss.name} loss did not settle ({error}) Data that can be "
            "separated have a readout without bounds as the ridge goes to zero. Use a larger "
            "training.ridge"
        ) from None


def _from_smoother_losses(
    problem: LossProblem[Inner], tolerance: float, inner: float
) -> State[Inner]:
    """A kink approached from far away, by steps in s that are as large as they may be.

    Where nearly all samples are on one side of a kink, none says where the output has to go. With a
    large s in eq. smoothing all are between, and what each counts changes by the factor of a step
    only.
    """
    smooth, factor = _SMOOTHEST, _FACTORS[0]
    state = _settled(problem, problem.drawn.of_squared_loss(inner), smooth, _LOOSE, inner)
    while smooth > 0:
        wanted = smooth / factor
        last = wanted < _SHARP * float(np.min(state.chi))
        try:
            state = _settled(
                problem, state, 0.0 if last else wanted, tolerance if last else _LOOSE, inner
            )
            smooth, factor = 0.0 if last else wanted, min(factor**1.5, _FACTORS[0])
        except ConvergenceError:
            factor = math.sqrt(factor)
            if factor < _FACTORS[1]:
                raise
    return state


def _from_larger_ridges(
    problem: LossProblem[Inner], tolerance: float, inner: float
) -> State[Inner]:
    """Solve by continuation: the ridge falls from a thousand times its value."""
    state = None
    kink = problem.loss.kink
    for factor in _RIDGES:
        part = replace(problem, stage=problem.stage.with_ridge(factor))
        if state is None:
            state = part.drawn.of_squared_loss(inner)
        for smooth in _SMOOTHER if kink else (0.0,):
            last = smooth == 0 and factor == 1
            state = _settled(part, state, smooth, tolerance if last else _LOOSE, inner)
    assert state is not None
    return state


def _settled(
    problem: LossProblem[Inner], state: State[Inner], smooth: float, tolerance: float, inner: float
) -> State[Inner]:
    """The outer iteration by Anderson acceleration on (f, log q, log χ)."""
    shape, stage, labels = state.prediction.shape, problem.drawn, problem.drawn_labels
    scale = np.sqrt((stage.weights * stage.labels**2).sum(axis=-1))
    scale = np.maximum(scale, 1e-12)[..., None]
    acceleration, close, root = Acceleration(), _ROUGH, stage.root
    z = _packed(state, scale)
    for number in range(1, _ITERATIONS + 1):
        f, q, chi = _unpacked(z, shape[:-1], shape[-1])
        at = State(scale * f, q, chi, state.inner)
        found = labels.moments(problem.loss, at.prediction, q, chi, smooth, losses=False)
        state = stage.step(at, found, max(inner, close))
        change = _packed(state, scale) - z
        residual = stage.size(change)
        if not np.all(np.isfinite(residual)):
            break
        if residual.max() < tolerance and close <= _SHARE * tolerance:
            return state
        close = min(_ROUGH, _SHARE * float(residual.max()))
        if number >= _HOPELESS and residual.max() > 1:
            break
        z = z + acceleration.step(root * z, root * change, residual) / root
    raise NotSettled(
        f"the theory of the {problem.loss.name} loss did not settle in {number} iterations "
        f"(last change {np.max(residual):.1e}): data that can be separated have a readout without "
        "bounds as the ridge goes to zero. Use a larger training.ridge"
    )


def _packed(state: State[Inner], scale: Array) -> Array:
    logs = [np.log(np.maximum(x, 1e-30)) for x in (state.variance, state.chi)]
    parts = [state.prediction / scale, *logs]
    return np.concatenate(parts, axis=-1).reshape(-1, 3 * state.chi.shape[-1])


def _unpacked(z: Array, lead: tuple[int, ...], count: int) -> tuple[Array, Array, Array]:
    z = z.reshape(*lead, 3, count)
    return z[..., 0, :], np.exp(z[..., 1, :]), np.exp(z[..., 2, :])
