"""Minimisers of (1/m) Σ ℓ(y_i, f_i) + λ‖a‖², f = Φa, for any convex loss.

In the variables ρ_i = −½ ℓ'(f_i): a = Φᵀρ/(mλ), f = K̃ρ with K̃ = ΦΦᵀ/(mλ), λ‖a‖² = ρᵀf/m.
Smooth losses by Newton's method; hinge and absolute loss, whose dual is a quadratic programme in a
box, by an interior-point method and then exactly on the set of samples that it finds at the kink;
the softmax of K classes by Newton's method in the coefficients (features × K). All state how far
the objective can be above its minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.convex_losses import Clipped, Loss, Softmax

_ENOUGH = 1e-16  # duality gap, over the objective, at which Newton's method stops
_ACCEPTED = 1e-8  # gap that is accepted where rounding prevents a smaller one
_STEPS = 100
_INTERIOR = 1e-13  # gap of the interior-point method
_ROUNDING = 1e-15  # rounding error per row, over the largest entry
_CLOSE = 1e-3  # gap below which the samples at the kink can be guessed
_RESIDUAL = 1e-3  # residual over the right side at which conjugate gradients of a softmax stop
_MOST = 200  # iterations of them
_MANY = 20  # iterations after which a new preconditioner pays


Solver = Callable[[Array], Array]  # v ↦ (I + sK̃s)⁻¹v


class System(Protocol):
    """A positive matrix K̃ = ΦΦᵀ/(mλ) (m × m), given or by its factors; shift = mλ."""

    shift: float

    def times(self, v: Array) -> Array:
        """K̃v."""

    def solver(self, s: Array) -> Solver:
        """For (I + sK̃s)⁻¹, s (m,) a diagonal."""

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """K̃ at some rows and columns."""

    def root(self) -> Array:
        """Features with ΦΦᵀ = mλ·K̃."""


class KernelSystem:
    """K̃ given by K = ΦΦᵀ: m³/3 operations for a solver, memory 8m² bytes beside K."""

    def __init__(self, gram: Array, shift: float) -> None:
        self.gram, self.shift = gram, shift

    def times(self, v: Array) -> Array:
        return np.asarray(self.gram @ v) / self.shift

    def solver(self, s: Array) -> Solver:
        matrix = self.gram * (s / self.shift)[:, None]
        matrix *= s
        matrix.flat[:: len(s) + 1] += 1.0
        cholesky = factor(matrix)
        return lambda v: np.asarray(cho_solve(cholesky, v, check_finite=False))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        return np.asarray(self.gram[np.ix_(rows, columns)] / self.shift)

    def root(self) -> Array:
        """Cholesky's factor, of K plus what rounding leaves of it."""
        matrix = self.gram.copy()
        matrix.flat[:: len(matrix) + 1] += _ROUNDING * len(matrix) * float(self.gram.max())
        return np.asarray(np.tril(factor(matrix)[0]))


class FeatureSystem:
    """K̃ given by Φ (m × k), for k ≤ m: mk² + k³/3 operations for a solver."""

    def __init__(self, features: Array, shift: float) -> None:
        self.features, self.shift = features, shift

    def times(self, v: Array) -> Array:
        return np.asarray(self.features @ (self.features.T @ v)) / self.shift

    def solver(self, s: Array) -> Solver:
        scaled = self.features * s[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += self.shift
        cholesky = factor(matrix)

        def solve(v: Array) -> Array:
            return np.asarray(v - scaled @ cho_solve(cholesky, scaled.T @ v, check_finite=False))

        return solve

    def block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        return np.asarray(self.features[rows] @ self.features[columns].T / self.shift)

    def root(self) -> Array:
        return self.features


def factor(matrix: Array) -> tuple[Array, bool]:
    """Cholesky's, of a positive matrix, which is overwritten."""
    try:
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=True)
    except (LinAlgError, ValueError):
        raise ConvergenceError(
            "the equations of the readout are singular to working precision, or the features "
            "overflowed. Use a larger training.ridge, or a smaller rate or spread"
        ) from None


@dataclass(frozen=True)
class Minimum:
    """ρ and f = K̃ρ, (m,) or (m, K).

    gap : how far the objective is above its minimum at most, relatively
    coefficients : a, where they are known better than ρ
    """

    slopes: Array
    outputs: Array
    gap: float
    coefficients: Array | None = None


def minimise(loss: Loss | Softmax, system: System, y: Array, start: Array | None = None) -> Minimum:
    """The minimiser; `start`: ρ of a similar problem."""
    if isinstance(loss, Softmax):
        found = _softmax(loss, system, y, start)
    elif isinstance(loss, Clipped) and loss.softness == 0:
        found = _interior(loss, system, y)
    else:
        found = _newton(loss, system, y, np.zeros_like(y) if start is None else start)
        if found.gap > _ACCEPTED and isinstance(loss, Clipped) and math.isfinite(loss.limit):
            found = _interior(loss, system, y)  # a small δ: next to a kink
    if not found.gap <= _ACCEPTED:
        raise ConvergenceError(
            f"the readout with the {loss.name} loss is only known to {found.gap:.1e} of its "
            "objective. Use a larger training.ridge"
        )
    return found


def _objective(loss: Loss | Softmax, y: Array, rho: Array, f: Array) -> float:
    return float(np.mean(loss.value(y, f)) + np.vdot(rho, f) / len(y))


def _line_search(
    objective: Callable[[Array, Array], float],
    here: tuple[Array, Array],
    step: tuple[Array, Array],
    value: float,
    slope: float,
    gap: float,
) -> tuple[float, Array, Array]:
    """Objective, variables and outputs after the first of the lengths 1, ½, … of a step at which
    the objective falls by 1e-4 of its slope there; after a whole step where the gap is rounding."""
    length = 1.0
    for _ in range(40):
        new, output = (x + length * change for x, change in zip(here, step, strict=True))
        found = objective(new, output)
        if found <= value - 1e-4 * length * slope or gap < 1e-12:
            break
        length /= 2
    return found, new, output


def _softmax(loss: Softmax, system: System, y: Array, start: Array | None) -> Minimum:
    """The minimiser by Newton's method in the coefficients of the features; where only K is given,
    of the rows of its Cholesky factor, which has K up to rounding."""
    best = _softmax_coefficients(loss, system.root(), system.shift, y, start)
    if isinstance(system, FeatureSystem):
        return best
    rho, f = best.slopes, system.times(best.slopes)
    d = loss.slope(y, f) - rho
    above = max(float(np.vdot(d, system.times(d))), 0.0) / len(y)
    return Minimum(rho, f, above / max(_objective(loss, y, rho, f), 1e-300))


def _newton(loss: Loss, system: System, y: Array, rho: Array) -> Minimum:
    """ρ' = ρ(f) − h(f' − f), h = ½ℓ'': (I + hK̃)(ρ' − ρ) = ρ(f) − ρ, with a line search.

    The objective is at most dᵀK̃d/m above its minimum, d = ρ(f) − ρ: it is λ‖·‖² plus something
    convex, and its gradient in a is −(2/m)Φᵀd.
    """
    objective, f = partial(_objective, loss, y), system.times(rho)
    value, best = objective(rho, f), Minimum(rho, f, np.inf)
    for _ in range(_STEPS):
        d = loss.slope(y, f) - rho
        pushed = system.times(d)
        gap = max(float(d @ pushed), 0.0) / len(y) / max(value, 1e-300)
        if gap < best.gap:
            best = Minimum(rho, f, gap)
        elif gap <= _ACCEPTED:
            return best
        if gap <= _ENOUGH:
            return best
        s = np.sqrt(loss.curvature(y, f))
        step = d - s * system.solver(s)(s * pushed)
        moved = system.times(step)
        # what the objective loses at first order along the step: its gradient there is −(2/m)K̃d
        slope = 2 * float(step @ pushed) / len(y)
        value, rho, f = _line_search(objective, (rho, f), (step, moved), value, slope, gap)
    return best


def _softmax_coefficients(
    loss: Softmax, features: Array, shift: float, y: Array, start: Array | None
) -> Minimum:
    """Minimise Σ_i (log Σ_c e^{f_ic} − f_iy) + mλ‖a‖², f = Φa, for labels (m, K) that are one-hot;
    shift = mλ, `start`: ρ of a similar problem (eq. softmax).

    Cost: 5 to 25 steps of 1 to 20 products with the features, and every few steps K factorisations
    of k³/3 (and products of mk²).
    """
    newton = _SoftmaxSteps(features, shift, y.shape[1])
    a = np.zeros((features.shape[1], y.shape[1]))
    if start is not None:
        a = features.T @ start / shift

    def objective(a: Array, f: Array) -> float:
        return float(np.sum(loss.value(y, f)) + shift * np.vdot(a, a))

    f = features @ a
    value, best = objective(a, f), Minimum(loss.slope(y, f), f, np.inf, a)
    for _ in range(_STEPS):
        rho = loss.slope(y, f)
        rest = features.T @ rho - shift * a  # minus half the gradient
        # the objective is shift·‖·‖² plus something convex
        gap = float(np.vdot(rest, rest)) / shift / max(value, 1e-300)
        if gap < best.gap:
            best = Minimum(rho, f, gap, a)
        elif gap <= _ACCEPTED:
            break
        if gap <= _ENOUGH:
            break
        step = newton.step(f, rest)
        slope = 2 * float(np.vdot(step, rest))
        value, a, f = _line_search(objective, (a, f), (step, features @ step), value, slope, gap)
    return best


class _SoftmaxSteps:
    """Newton's steps of one problem, whose equations are solved by conjugate gradients.

    Half the Hessian, mλ + ΦᵀHΦ with H = ½(diag p − ppᵀ) of each sample, couples the outputs. Its
    diagonal blocks, with ½p_c(1 − p_c), are the preconditioner, one factorisation for each output;
    times K/(K − 1) they are exact for two outputs, and where p is the same everywhere. A
    preconditioner serves until one step takes many iterations. Coefficients add up to zero over the
    outputs, and everything stays there.
    """

    def __init__(self, features: Array, shift: float, outputs: int) -> None:
        self._features, self._shift, self._outputs = features, shift, outputs
        self._factors: list[tuple[Array, bool]] = []

    def step(self, f: Array, rest: Array) -> Array:
        p = softmax(f, axis=1)
        if self._factors:
            found, used = self._solved(p, rest, _MANY)
            if used < _MANY:
                return found
        self._factors = [self._factor(p[:, c]) for c in range(self._outputs)]
        return self._solved(p, rest, _MOST)[0]

    def _factor(self, p: Array) -> tuple[Array, bool]:
        weight = 0.5 * self._outputs / (self._outputs - 1) * p * (1 - p)
        scaled = self._features * np.sqrt(weight)[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += self._shift
        return factor(matrix)

    def _near(self, v: Array) -> Array:
        """The preconditioner."""
        columns = [cho_solve(one, v[:, c]) for c, one in enumerate(self._factors)]
        found = np.stack(columns, axis=1)
        return np.asarray(found - found.mean(axis=1, keepdims=True))

    def _times(self, p: Array, v: Array) -> Array:
        """(mλ + ΦᵀHΦ)v."""
        image = self._features @ v
        image -= np.sum(p * image, axis=1, keepdims=True)
        return np.asarray(self._shift * v + self._features.T @ (0.5 * p * image))

    def _solved(self, p: Array, right: Array, most: int) -> tuple[Array, int]:
        """The solution by conjugate gradients, and the number of iterations."""
        x, rest = np.zeros_like(right), right
        direction = self._near(rest)
        size = begin = float(np.vdot(rest, direction))
        for used in range(most):
            if size <= _RESIDUAL**2 * begin:
                return x, used
            image = self._times(p, direction)
            length = size / float(np.vdot(direction, image))
            x, rest = x + length * direction, rest - length * image
            z = self._near(rest)
            size, before = float(np.vdot(rest, z)), size
            direction = z + size / before * direction
        return x, most


def _interior(loss: Clipped, system: System, y: Array) -> Minimum:
    """min ½ρᵀ(K̃ + c)ρ − yᵀρ over lo ≤ ρ ≤ hi: Mehrotra's predictor and corrector.

    Multipliers z of ρ ≥ lo and w of ρ ≤ hi; (K̃ + E)Δρ = …, E = c + z/(ρ − lo) + w/(hi − ρ). One
    factorisation a step.
    """
    c = loss.softness
    low, high = loss.bounds(y)
    t = v = 0.5 * (high - low)  # distances to the bounds: near one, ρ itself has lost digits
    rho = low + t
    f = system.times(rho)
    size = 1.0 + np.abs(y - f)
    z, w = size.copy(), size.copy()
    best, since = Minimum(rho, f, np.inf), 0
    for _ in range(_STEPS):
        gap = _gap(loss, y, rho, f)
        best, since = (Minimum(rho, f, gap), 0) if gap < best.gap else (best, since + 1)
        if gap <= _CLOSE:
            exact = _at_the_kink(loss, system, y, best)
            if exact.gap <= _INTERIOR or since > 3:
                return exact
        weight, rest = np.sqrt(1.0 / (c + z / t + w / v)), y - f - c * rho
        try:
            solve = system.solver(weight)
        except ConvergenceError:  # rounding prevents a smaller gap
            break
        step = weight * solve(weight * rest)
        dz, dw = -z - z / t * step, -w + w / v * step
        reach = _reach((t, step), (v, -step), (z, dz), (w, dw))
        after = (z + reach * dz) @ (t + reach * step) + (w + reach * dw) @ (v - reach * step)
        total = float(z @ t + w @ v)
        centre = (float(after) / total) ** 3 * total / (2 * len(y))
        to_low, to_high = (centre - step * dz) / t, (centre + step * dw) / v
        step = weight * solve(weight * (rest + to_low - to_high))
        dz, dw = to_low - z - z / t * step, to_high - w + w / v * step
        reach = 0.99 * _reach((t, step), (v, -step), (z, dz), (w, dw))
        t, v = t + reach * step, v - reach * step
        rho = np.where(t < v, low + t, high - v)
        z, w = z + reach * dz, w + reach * dw
        f = system.times(rho)
    return _at_the_kink(loss, system, y, best)


def _reach(*pairs: tuple[Array, Array]) -> float:
    """The longest step, at most 1, that leaves all of these positive."""
    longest = 1.0
    for value, change in pairs:
        down = change < 0
        if np.any(down):
            longest = min(longest, float(np.min(-value[down] / change[down])))
    return longest


def _gap(loss: Clipped, y: Array, rho: Array, f: Array) -> float:
    """Objective minus dual, (1/m)(2yᵀρ − ρᵀf − cρᵀρ), over the objective."""
    value = _objective(loss, y, rho, f)
    dual = float((2 * y - f - loss.softness * rho) @ rho) / len(y)
    return max(value - dual, 0.0) / max(value, 1e-300)


def _at_the_kink(loss: Clipped, system: System, y: Array, found: Minimum) -> Minimum:
    """The minimum with f + cρ = y exactly on the samples whose ρ is between its bounds; `found`
    itself where that has the smaller gap."""
    low, high = loss.bounds(y)
    rho, rest = found.slopes, y - found.outputs - loss.softness * found.slopes
    # of the distance to a bound and the multiplier |rest| one is small, in units of the largest
    inside = np.minimum(rho - low, high - rho)
    scale = float(np.abs(rest).max()) / max(float(inside.max()), 1e-300)
    bound = np.abs(rest) > scale * inside
    at_low, at_high = bound & (rest < 0), bound & (rest > 0)
    free = np.flatnonzero(~(at_low | at_high))
    new = np.where(at_low, low, np.where(at_high, high, 0.0))
    if len(free):
        matrix = system.block(free, free)
        matrix.flat[:: len(free) + 1] += loss.softness
        right = y[free] - system.times(new)[free]
        try:
            new[free] = cho_solve(cho_factor(matrix, lower=True, overwrite_a=True), right)
        except (LinAlgError, ValueError):
            return found
    new = np.clip(new, low, high)
    f = system.times(new)
    gap = _gap(loss, y, new, f)
    return Minimum(new, f, gap) if gap <= found.gap else found
