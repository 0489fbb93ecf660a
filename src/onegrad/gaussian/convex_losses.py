"""Convex losses ℓ(y, f) of a readout: values, slopes, and means when the output f is Gaussian.

All slopes are ρ = −½ ∂ℓ/∂f, so that the squared loss has ρ = y − f. Every loss but the logistic one
is

    ℓ(y, f) = max over lo ≤ ρ ≤ hi of 2ρ(y − f) − cρ²

with c = 1, or c = 0 for losses with a kink; `Clipped` says which lo, hi and c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, ndtr, softmax

from onegrad.compute.backend import Array

NAMES = ("squared", "logistic", "hinge", "squared-hinge", "huber", "absolute")
OF_SIGNS = ("logistic", "hinge", "squared-hinge")  # losses defined for labels ±1 only
DELTA = 1.0  # default δ of the Huber loss
_HERMITE = 48  # nodes for the mean of the logistic loss


class ClippedMoments(NamedTuple):
    """E ρ, E ρ² and P(lo < x < hi) of ρ = clip(x, lo, hi), x Gaussian."""

    mean: Array
    square: Array
    inside: Array


def clipped_moments(mean: Array, scale: Array, low: Array, high: Array) -> ClippedMoments:
    """Moments of clip(x, low, high) for x ~ N(mean, scale²), scale ≥ 0. Bounds may be infinite."""
    scale = np.maximum(scale, 1e-150)
    with np.errstate(over="ignore"):  # beyond 40 standard deviations there is nothing
        a, b = (np.clip((x - mean) / scale, -40.0, 40.0) for x in (low, high))
    below, above = ndtr(a), ndtr(-b)
    inside = np.maximum(np.where(a + b > 0, ndtr(-a) - above, ndtr(b) - below), 0.0)
    da, db = _density(a), _density(b)
    first = inside * mean + scale * (da - db)
    second = inside * (mean**2 + scale**2) + 2 * mean * scale * (da - db)
    second += scale**2 * (a * da - b * db)
    return ClippedMoments(
        first + _finite(low) * below + _finite(high) * above,
        second + _finite(low) ** 2 * below + _finite(high) ** 2 * above,
        inside,
    )


def _density(x: Array) -> Array:
    return np.exp(-0.5 * np.minimum(x**2, 1e4)) / math.sqrt(2 * math.pi)


def _finite(bound: Array) -> Array:
    """Infinite bounds are never reached."""
    return np.where(np.isfinite(bound), bound, 0.0)


@dataclass(frozen=True)
class Clipped:
    """A loss whose slope is clip((y − f)/c, lo, hi); of labels ±1 with `signs`: 0 ≤ yρ ≤ limit.

    squared: c = 1, no limit; squared-hinge the same with signs; hinge: c = 0, limit ½, signs;
    absolute: c = 0, limit ½; huber: c = 1, limit δ.
    """

    name: str
    softness: float
    limit: float = math.inf
    signs: bool = False

    @property
    def kink(self) -> bool:
        """Whether the slope jumps."""
        return self.softness == 0

    def bounds(self, y: Array) -> tuple[Array, Array]:
        """lo and hi of ρ."""
        high = np.full(np.shape(y), self.limit)
        if not self.signs:
            return -high, high
        return np.where(y > 0, 0.0, -high), np.where(y > 0, high, 0.0)

    def slope(self, y: Array, f: Array) -> Array:
        """ρ = −½ ∂ℓ/∂f; where the loss has a kink, 0."""
        low, high = self.bounds(y)
        rest = y - f
        if self.softness:
            return np.clip(rest / self.softness, low, high)
        return np.where(rest > 0, high, np.where(rest < 0, low, 0.0))

    def curvature(self, y: Array, f: Array) -> Array:
        """½ ∂²ℓ/∂f², of a loss without a kink."""
        low, high = self.bounds(y)
        rest = y - f
        return ((rest >= low) & (rest <= high)).astype(float)

    def value(self, y: Array, f: Array) -> Array:
        """ℓ(y, f)."""
        slope = self.slope(y, f)
        return np.asarray(2 * slope * (y - f) - self.softness * slope**2)

    def expected(self, y: Array, mean: Array, variance: Array) -> Array:
        """E ℓ(y, f) for f ~ N(mean, variance); noise of y counts in the variance just as well."""
        low, high = self.bounds(y)
        rest, scale = y - mean, np.sqrt(variance)
        if self.softness:
            m = clipped_moments(rest, scale, low, high)
            return np.asarray(2 * (rest * m.mean + variance * m.inside) - m.square)
        up = _positive_part(rest, scale)
        return np.asarray(2 * (high * up + low * (rest - up)))


def _positive_part(mean: Array, scale: Array) -> Array:
    """E max(x, 0) for x ~ N(mean, scale²)."""
    z = mean / np.maximum(scale, 1e-150)
    return np.where(scale > 0, mean * ndtr(z) + scale * _density(z), np.maximum(mean, 0.0))


@dataclass(frozen=True)
class Logistic:
    """log(1 + e^{−yf}), of labels ±1."""

    name: str = "logistic"
    signs: bool = True
    kink: bool = False

    def slope(self, y: Array, f: Array) -> Array:
        """ρ = ½y/(1 + e^{yf})."""
        return np.asarray(0.5 * y * expit(-y * f))

    def curvature(self, y: Array, f: Array) -> Array:
        """½ e^{f}/(1 + e^{f})²."""
        chance = expit(f)
        return np.asarray(0.5 * chance * (1 - chance))

    def value(self, y: Array, f: Array) -> Array:
        """ℓ(y, f)."""
        return np.logaddexp(0.0, -y * f)

    def expected(self, y: Array, mean: Array, variance: Array) -> Array:
        """E ℓ(y, f) for f ~ N(mean, variance), by Gauss's rule."""
        z, w = np.polynomial.hermite_e.hermegauss(_HERMITE)
        f = np.asarray(mean)[..., None] + np.sqrt(np.asarray(variance))[..., None] * z
        return np.asarray(self.value(np.asarray(y)[..., None], f) @ (w / w.sum()))


Loss = Clipped | Logistic


@dataclass(frozen=True)
class Softmax:
    """log Σ_c e^{f_c} − f_y of K outputs, y the class: labels one-hot, (m, K) like the outputs."""

    name: str = "logistic"
    signs: bool = False

    def slope(self, y: Array, f: Array) -> Array:
        """ρ_c = ½(y_c − p_c), p the probabilities e^{f_c}/Σ e^{f}."""
        return np.asarray(0.5 * (y - softmax(f, axis=-1)))

    def value(self, y: Array, f: Array) -> Array:
        """ℓ(y, f): (m,)."""
        return np.asarray(logsumexp(f, axis=-1) - np.sum(y * f, axis=-1))


def loss_of(name: str, delta: float | None = None) -> Loss:
    """The loss of that name; δ of the Huber loss.

    >>> float(loss_of("huber", 1.0).value(3.0, 0.0)), float(loss_of("hinge").value(1.0, -1.0))
    (5.0, 2.0)
    """
    if name == "logistic":
        return Logistic()
    signs = name in OF_SIGNS
    if name in ("hinge", "absolute"):
        return Clipped(name, 0.0, 0.5, signs)
    limit = (DELTA if delta is None else delta) if name == "huber" else math.inf
    return Clipped(name, 1.0, limit, signs)
