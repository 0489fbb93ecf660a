"""What a loss makes of a node: means over the output of a fresh sample there, h ~ N(f_s, q_s).

A sample that is fitted as well moves to p = argmin ℓ(y, p) + (p − h)²/χ_s, where its slope is
ρ = −½ℓ'(p) = (p − h)/χ_s (eqs. proximal and force). Losses with a clipped slope have closed
forms, the logistic one a rule over h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from onegrad.compute.backend import Array
from onegrad.gaussian.convex_losses import Clipped, Logistic, Loss, clipped_moments

_STEEPEST = 1e12  # 1/χ of a sharp loss at most
_REACH = 6.5  # standard deviations of h that the rule covers
_STEP = 1.0  # largest step of the rule, in units of √q and of h
_MOST = 600  # points at most
_PROX = 60  # iterations; a dozen are enough


class LossMoments(NamedTuple):
    """Of every node (S,), over h and over the label.

    The last three are NaN where they were not asked for.
    slope : D = −E ∂ρ/∂h; mean, square : E ρ, E ρ²
    train_loss, train_square : E ℓ(y, p), E(y − p)²; test_loss : E ℓ(y, h)
    """

    slope: Array
    mean: Array
    square: Array
    train_loss: Array
    train_square: Array
    test_loss: Array


@dataclass(frozen=True)
class LabelLaw:
    """y given a node: N(mean, noise), or ±1 with that mean where `binary`."""

    mean: Array
    noise: Array
    binary: bool

    def moments(
        self, loss: Loss, f: Array, q: Array, chi: Array, smooth: float = 0.0, losses: bool = True
    ) -> LossMoments:
        """Means of a loss; `smooth` is added to χ_s in ρ where a kink is approached
        (eq. smoothing). Eqs. proximal, force and clipped.

        losses : also compute the losses, which the iteration over (f, q, χ) does not need
        """
        if not self.binary:
            return _moments(loss, self.mean, q + self.noise, f, chi, smooth, losses)
        if np.all(np.abs(self.mean) == 1):
            return _moments(loss, self.mean, q, f, chi, smooth, losses)
        plus, ones = 0.5 * (1 + self.mean), np.ones_like(self.mean)
        up, down = (_moments(loss, y, q, f, chi, smooth, losses) for y in (ones, -ones))
        return LossMoments(*(plus * u + (1 - plus) * d for u, d in zip(up, down, strict=True)))

    def slope_times_label(self, loss: Loss, f: Array, q: Array, chi: Array) -> Array:
        """E[ρy] of labels ±1."""
        plus, ones = 0.5 * (1 + self.mean), np.ones_like(self.mean)
        up, down = (_moments(loss, y, q, f, chi, 0.0, False).mean for y in (ones, -ones))
        return plus * up - (1 - plus) * down


def _moments(
    loss: Loss, y: Array, spread: Array, f: Array, chi: Array, smooth: float, losses: bool
) -> LossMoments:
    """Of labels with the mean y; spread : the variance of y − h. Logistic labels are ±1."""
    if isinstance(loss, Logistic):
        return _logistic(y, f, spread, chi, losses)
    return _clipped(loss, y, spread, f, chi, smooth)


def _clipped(
    loss: Clipped, y: Array, spread: Array, f: Array, chi: Array, smooth: float
) -> LossMoments:
    """ρ = clip(u/(c + χ), lo, hi) with u = y − h, so that E uρ = E u·E ρ + Var u·D (Stein) and
    ℓ(y, p) = 2ρ(u − χρ) − cρ² (eq. clipped)."""
    low, high = loss.bounds(y)
    rest, divisor = y - f, np.maximum(loss.softness + chi + smooth, 1 / _STEEPEST)
    found = clipped_moments(rest / divisor, np.sqrt(spread) / divisor, low, high)
    slope = found.inside / divisor
    product = rest * found.mean + spread * slope
    return LossMoments(
        slope, found.mean, found.square,
        np.maximum(2 * product - (2 * chi + loss.softness) * found.square, 0.0),
        rest**2 + spread - 2 * chi * product + chi**2 * found.square,
        loss.expected(y, f, spread),
    )  # fmt: skip


def _logistic(y: Array, f: Array, q: Array, chi: Array, losses: bool) -> LossMoments:
    """By a trapezoidal rule over h; ρ, p and h are those of the label +1, times y.

    As functions of h they are singular at a distance of π from the real axis, whatever χ is: with a
    step δ the rule is wrong by exp(−2π·π/δ), and exp(−2π²q/δ²) for the Gaussian.
    """
    size = float(np.sqrt(np.max(q)))
    count = min(1 + math.ceil(2 * _REACH * max(size, 1.0) / _STEP), _MOST)
    z = np.linspace(-_REACH, _REACH, count)
    w = np.exp(-0.5 * z**2)
    w /= w.sum()
    h = (y * f)[..., None] + np.sqrt(q)[..., None] * z
    rho = logistic_slope(h, chi[..., None])
    p = h + chi[..., None] * rho
    bend = rho * (1 - 2 * rho)  # ½ℓ''(p): ρ is half of 1/(1 + e^p) there
    slopes = (bend / (1 + chi[..., None] * bend)) @ w, y * (rho @ w), rho**2 @ w
    if not losses:
        return LossMoments(*slopes, *np.full((3, *f.shape), np.nan))
    return LossMoments(
        *slopes, np.logaddexp(0.0, -p) @ w, (1 - p) ** 2 @ w, np.logaddexp(0.0, -h) @ w
    )


def logistic_slope(h: Array, chi: Array) -> Array:
    """ρ = ½/(1 + e^p) with p = h + χρ, by Halley's method in p.

    F = p − h − ½χ/(1 + e^p) is increasing, and concave for p > 0, where the method begins to the
    left of the root. Roots p < 0 are those of −h − ½χ, mirrored. A step takes the third power of
    the error: F‴/F' is below one.
    """
    half = np.broadcast_to(0.5 * chi, h.shape)
    mirrored = h < -0.5 * half
    to = np.where(mirrored, -h - half, h)
    p = np.maximum(to, 0.0)
    # nearer from the left, where χ is large: e^p is about ½χ/(p − h)
    nearer = np.log(np.maximum(half / (1 + np.log1p(2 * half) + np.maximum(-to, 0.0)), 1.0))
    p = np.where(nearer - to <= half * expit(-nearer), np.maximum(p, nearer), p)
    for _ in range(_PROX):
        s = expit(-p)
        bend = half * s * (1 - s)
        slope = 1 + bend
        step = (p - to - half * s) / slope
        step = step / (1 + 0.5 * step * (1 - 2 * s) * bend / slope)
        p = p - step
        if float(np.max(np.abs(step))) < 1e-5:  # the next step is below rounding
            break
    return np.asarray(0.5 * expit(np.where(mirrored, p, -p)))
