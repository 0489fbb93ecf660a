"""The readout with any convex loss as a squared one, re-weighted (docs/book/losses.md).

At every node the loss has the mean curvature D, mean slope E ρ and mean square E ρ² (moments.py),
all functions of (f, q, χ) there. With c = 1/D − χ the fixed point of the squared loss is that of
the weights w_s = ω_s/(c_s + χ_s), and

    f = Nα,  α_s = ω_s E ρ,      q = B(α) + (1/m) J (ω E ρ²)  (eq. loss-equations)

are its equations for f and q with other labels and noise. The outer iteration is over (f, q, χ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.convex_losses import Loss
from onegrad.theory.layers.features import NodeFeatures
from onegrad.theory.readout.anderson import Acceleration
from onegrad.theory.readout.errors import NodeErrors, errors_of, mean_readout, response_of
from onegrad.theory.readout.fixed_point import FixedPoint, first_guess, solve_fixed_point
from onegrad.theory.readout.label_surplus import with_surplus
from onegrad.theory.readout.moments import LabelLaw, LossMoments
from onegrad.theory.readout.woodbury import product, woodbury_factors

_ITERATIONS = 80  # most outer iterations; 4 to 20 are usual
# Iterations after which a logarithm that still changes by more than one means failure
_HOPELESS = 40
# Smallest curvature of a node in the system of the mean part, over the largest
_FLOOR = 0.01
_SOFTEST = 1e8  # softness c of a node without curvature
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
class LossProblem:
    """A readout to be solved for: features at nodes, samples and ridge (or stacks), loss.

    surplus : z of one training set, with labels ±1: its mean label is ȳ + z √(Var y/m)
    near : (f, q, χ) at the nodes that are not far from the solution, if some are known
    """

    features: NodeFeatures
    samples: Array
    ridge: Array
    loss: Loss
    binary: bool
    surplus: Array | float = 0.0
    near: tuple[Array, Array, Array] | None = None

    @property
    def labels(self) -> LabelLaw:
        """Of fresh samples."""
        return LabelLaw(self.features.labels, self.features.noise, self.binary)

    @cached_property
    def drawn(self) -> NodeFeatures:
        """With the weights and labels of that training set, eq. surplus."""
        f = self.features
        if not np.any(self.surplus):
            return f
        weights, labels = with_surplus(f.weights, f.labels, self.samples, self.surplus)
        return replace(f, weights=weights, labels=labels, noise=1 - labels**2).with_factors(f)

    @property
    def drawn_labels(self) -> LabelLaw:
        return LabelLaw(self.drawn.labels, self.drawn.noise, self.binary)


@dataclass(frozen=True)
class _State:
    """Where the outer iteration is: a fixed point, and f, q of its nodes."""

    point: FixedPoint
    prediction: Array
    variance: Array


def solve_with_loss(problem: LossProblem, tolerance: float = 1e-6) -> tuple[FixedPoint, NodeErrors]:
    """Fixed point and errors with any loss; the squared one goes through the same iteration. Eqs.
    loss-equations and smoothing.

    tolerance : of the outer iteration, in log q, log χ and f over its size. Raises ConvergenceError
    with advice where it does not settle. 4 to 20 outer iterations of one fixed point and one
    second-order solution each.
    """
    inner = min(1e-3 * tolerance, 1e-9)
    kink = problem.loss.kink
    if problem.near is not None:
        try:
            state = _settled(problem, _at(problem, *problem.near), 0.0, tolerance, inner)
            return _finished(problem, state)
        except ConvergenceError:
            pass
    state = _of_squared_loss(problem, inner)
    try:
        for smooth in _SMOOTH if kink else (0.0,):
            state = _settled(problem, state, smooth, tolerance if smooth == 0 else _LOOSE, inner)
        return _finished(problem, state)
    except ConvergenceError:
        if kink:
            try:
                return _finished(problem, _from_smoother_losses(problem, tolerance, inner))
            except ConvergenceError:
                pass
    try:
        return _finished(problem, _from_larger_ridges(problem, tolerance, inner))
    except NotSettled:
        raise
    except ConvergenceError as error:
        raise NotSettled(
            f"the theory of the {problem.loss.name} loss did not settle ({error}) Data that can be "
            "separated have a readout without bounds as the ridge goes to zero. Use a larger "
            "training.ridge"
        ) from None


def _at(problem: LossProblem, f: Array, q: Array, chi: Array) -> _State:
    """Where f, q and χ are given, with gains as they would be without any response."""
    first = first_guess(problem.drawn, problem.samples, problem.ridge)
    gain = np.exp(first[..., : problem.drawn.bulk.shape[-1]])
    none = np.zeros(f.shape[:-1])
    begin = FixedPoint(
        problem.drawn, problem.samples, problem.ridge, gain, chi, none, none, np.ones_like(chi)
    )
    return _State(begin, f, q)


def _of_squared_loss(problem: LossProblem, inner: float) -> _State:
    begin = solve_fixed_point(problem.drawn, problem.samples, problem.ridge, tolerance=inner)
    first = errors_of(begin)
    return _State(begin, first.prediction, first.variance)


def _from_smoother_losses(problem: LossProblem, tolerance: float, inner: float) -> _State:
    """A kink approached from far away, by steps in s that are as large as they may be.

    Where nearly all samples are on one side of a kink, none says where the output has to go. With a
    large s in eq. smoothing all are between, and what each counts changes by the factor of a step
    only.
    """
    smooth, factor = _SMOOTHEST, _FACTORS[0]
    state = _settled(problem, _of_squared_loss(problem, inner), smooth, _LOOSE, inner)
    while smooth > 0:
        wanted = smooth / factor
        last = wanted < _SHARP * float(np.min(state.point.chi))
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


def _from_larger_ridges(problem: LossProblem, tolerance: float, inner: float) -> _State:
    """Solve by continuation: the ridge falls from a thousand times its value."""
    state = None
    kink = problem.loss.kink
    for factor in _RIDGES:
        part = replace(problem, ridge=factor * problem.ridge)
        if state is None:
            state = _of_squared_loss(part, inner)
        for smooth in _SMOOTHER if kink else (0.0,):
            last = smooth == 0 and factor == 1
            state = _settled(part, state, smooth, tolerance if last else _LOOSE, inner)
    assert state is not None
    return state


def _settled(
    problem: LossProblem, state: _State, smooth: float, tolerance: float, inner: float
) -> _State:
    """The outer iteration by Anderson acceleration on (f, log q, log χ)."""
    shape = state.prediction.shape
    lead, count = shape[:-1], shape[-1]
    scale = np.sqrt((problem.drawn.weights * problem.drawn.labels**2).sum(axis=-1))
    scale = np.maximum(scale, 1e-12)[..., None]
    acceleration, point, close = Acceleration(), state.point, _ROUGH
    z = _packed(state.prediction / scale, state.variance, state.point.chi)
    for number in range(1, _ITERATIONS + 1):
        f, q, chi = _unpacked(z, lead, count)
        new = _step(problem, _State(point, scale * f, q), chi, smooth, max(inner, close))
        point = new.point
        image = _packed(new.prediction / scale, new.variance, point.chi)
        change = image - z
        residual = np.abs(change).max(axis=1)
        if not np.all(np.isfinite(residual)):
            break
        if residual.max() < tolerance and close <= _SHARE * tolerance:
            return new
        close = min(_ROUGH, _SHARE * float(residual.max()))
        if number >= _HOPELESS and residual.max() > 1:
            break
        z = z + acceleration.step(z, change, residual)
    raise NotSettled(
        f"the theory of the {problem.loss.name} loss did not settle in {number} iterations "
        f"(last change {np.max(residual):.1e}): data that can be separated have a readout without "
        "bounds as the ridge goes to zero. Use a larger training.ridge"
    )


def _packed(f: Array, q: Array, chi: Array) -> Array:
    parts = [f, np.log(np.maximum(q, 1e-30)), np.log(np.maximum(chi, 1e-30))]
    return np.concatenate(parts, axis=-1).reshape(-1, 3 * f.shape[-1])


def _unpacked(z: Array, lead: tuple[int, ...], count: int) -> tuple[Array, Array, Array]:
    z = z.reshape(*lead, 3, count)
    return z[..., 0, :], np.exp(z[..., 1, :]), np.exp(z[..., 2, :])


def _step(problem: LossProblem, at: _State, chi: Array, smooth: float, inner: float) -> _State:
    """From (f, q, χ) to the next ones: one fixed point of the squared loss with weights."""
    labels = problem.drawn_labels
    found = labels.moments(problem.loss, at.prediction, at.variance, chi, smooth, losses=False)
    softness = np.minimum(1 / np.maximum(found.slope, 1e-300) - chi, _SOFTEST)
    point = solve_fixed_point(
        problem.drawn, problem.samples, problem.ridge, softness=np.maximum(softness, 0.0),
        start=at.point, tolerance=inner,
    )  # fmt: skip
    _, prediction, variance, _ = _outputs(point, at, found, _SHARE * inner)
    return _State(point, prediction, variance)


def _outputs(point: FixedPoint, at: _State, found: LossMoments, tolerance: float = 1e-11) -> tuple:
    """f and q that follow from the mean slopes at `at`, with the readout and its response.

    tolerance : relative residual of the linear system for q
    """
    omega = point.features.weights
    blocks = woodbury_factors(point.features, point.gain, point.weights)
    share = point.weights / omega
    share = np.maximum(share, _FLOOR * share.max(axis=-1, keepdims=True))
    labels = at.prediction + found.mean / share
    readout = mean_readout(point, blocks, omega * share, labels)
    prediction = product(point.features.mean.mT, readout)
    fixed = omega * found.square - point.roots**2 * at.variance
    response, variance = response_of(point, blocks, readout).solved(fixed, 1.0, tolerance)
    return readout, prediction, variance, response


def _finished(problem: LossProblem, state: _State) -> tuple[FixedPoint, NodeErrors]:
    """Errors at the solution: mean squared ones, and those of the loss itself (eqs. loss-values,
    readout-norm and squared-errors)."""
    f, q, chi, labels = state.prediction, state.variance, state.point.chi, problem.labels
    found = problem.drawn_labels.moments(problem.loss, f, q, chi)
    fresh = labels.moments(problem.loss, f, q, chi) if np.any(problem.surplus) else found
    readout, prediction, variance, response = _outputs(state.point, state, found)
    total = labels.noise + (labels.mean - prediction) ** 2 + variance
    penalty = f * found.mean - q * found.slope + chi * found.square

    along_labels = None
    if problem.binary:
        slopes = problem.drawn_labels.slope_times_label(problem.loss, f, q, chi)
        along_labels = problem.drawn.weights * slopes

    def train(values: Array) -> Array:
        return np.asarray((problem.drawn.weights * values).sum(axis=-1))

    def test(values: Array) -> Array:
        return np.asarray((problem.features.weights * values).sum(axis=-1))

    return state.point, NodeErrors(
        prediction, variance, total, found.train_square, readout,
        train(found.train_loss + penalty), test(total), train(found.train_square), response,
        train(found.train_loss), test(fresh.test_loss), problem.drawn.weights * found.mean,
        along_labels,
    )  # fmt: skip
