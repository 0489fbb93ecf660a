"""The softmax readout of K classes: minimise Σ_i (log Σ_c e^{f_ic} − f_iy) + mλ‖a‖², f = Φa
(eq. softmax).

Newton's method in the coefficients (features × K), whose equations are solved by conjugate
gradients: half the Hessian, mλ + ΦᵀHΦ with H = ½(diag p − ppᵀ) of each sample, couples the outputs.
Its diagonal blocks, with ½p_c(1 − p_c), are the preconditioner, one factorisation for each output;
times K/(K − 1) they are exact for two outputs, and where p is the same everywhere. Coefficients add
up to zero over the outputs, and everything stays there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import softmax

from onegrad.compute.backend import Array
from onegrad.gaussian.convex_losses import Softmax
from onegrad.simulate.network.systems import factor

_ENOUGH = 1e-16  # decrease, over the objective, at which Newton's method stops
_SMALL = 1e-8  # decrease that is accepted where rounding prevents a smaller one
_STEPS = 100
_RESIDUAL = 1e-3  # residual over the right side at which conjugate gradients stop
_MOST = 200  # iterations of them
_MANY = 20  # iterations after which a new preconditioner pays


class SoftmaxReadout(NamedTuple):
    """a (k, K), f = Φa and ρ = ½(y − p) (m, K), and how far the objective is above its minimum at
    most, relatively."""

    coefficients: Array
    outputs: Array
    slopes: Array
    gap: float


def softmax_readout(
    features: Array, shift: float, y: Array, start: Array | None = None
) -> SoftmaxReadout:
    """The minimiser for labels (m, K) that are one-hot; shift = mλ, `start`: ρ of a similar one
    (eq. softmax).

    Cost: 5 to 25 steps of 1 to 20 products with the features, and every few steps K factorisations
    of k³/3 (and products of mk²).
    """
    newton = _Newton(features, shift, y)
    a = np.zeros((features.shape[1], y.shape[1]))
    if start is not None:
        a = features.T @ start / shift
    f, loss = features @ a, Softmax()
    value = float(np.sum(loss.value(y, f)) + shift * np.vdot(a, a))
    best = SoftmaxReadout(a, f, loss.slope(y, f), np.inf)
    for _ in range(_STEPS):
        rho = loss.slope(y, f)
        rest = features.T @ rho - shift * a  # minus half the gradient
        # the objective is shift·‖·‖² plus something convex
        gap = float(np.vdot(rest, rest)) / shift / max(value, 1e-300)
        if gap < best.gap:
            best = SoftmaxReadout(a, f, rho, gap)
        elif gap <= _SMALL:
            break
        if gap <= _ENOUGH:
            break
        step = newton.step(f, rest)
        moved, length = features @ step, 1.0
        slope = 2 * float(np.vdot(step, rest))
        for _ in range(40):
            new, output = a + length * step, f + length * moved
            found = float(np.sum(loss.value(y, output)) + shift * np.vdot(new, new))
            if found <= value - 1e-4 * length * slope or gap < 1e-12:
                break
            length /= 2
        a, f, value = new, output, found
    return best


class _Newton:
    """The steps of one problem; a preconditioner serves until one takes many iterations."""

    def __init__(self, features: Array, shift: float, y: Array) -> None:
        self._features, self._shift, self._outputs = features, shift, y.shape[1]
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
        """By conjugate gradients, and the iterations used."""
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
