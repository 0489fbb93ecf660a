"""Products of functions of Gaussian projections beyond order 1 of their Hermite expansions.

For jointly Gaussian z of means s, variances q and correlations ρ,
E f(z_i)g(z_j) = Σ_r f̂_r(s_i, q_i)ĝ_r(s_j, q_j)ρ_ij^r (Mehler), exact also for s ≠ 0. Where the
features are Gaussian given some projections κ of x (conditional Gaussian model), ρ^r is replaced
by its first-order expansion around the part ρ^κ of the correlation that κ makes:
(ρ^κ)^r + r(ρ^κ)^{r−1}(ρ − ρ^κ). Here are the parts, and the sum for one function against many;
all pairs of neurons are in `pairs`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import roots_legendre

from onegrad.compute.backend import Array, namespace
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.pair_moments import ERF, RELU, Expansion, expand
from onegrad.gaussian.quadrature import gaussian_mean

# Orders of the expansion, tried one after the other until it has converged
ORDERS = (8, 16, 40, 120, 240)


class Sum(NamedTuple):
    """A sum, an estimate of its error, and how it was computed (order 0: in closed form)."""

    value: float
    error: float
    order: int


class Series:
    """The expansion of σ(s_i + b_iZ), taken to higher order on demand."""

    def __init__(self, activation: Activation, shift: Array, scale: Array) -> None:
        self.activation, self.shift, self.scale = activation, shift, scale
        self._expansion: Expansion | None = None

    def upto(self, order: int) -> Expansion:
        """To `order` at least."""
        if self._expansion is None or self._expansion.order < order:
            order = max(order, ORDERS[0])
            self._expansion = expand(self.activation, self.shift, self.scale, order)
        return self._expansion

    @property
    def linear(self) -> bool:
        """Whether there is nothing beyond order 1."""
        expansion = self.upto(1)
        return bool(np.all(expansion.tail(1) <= 1e-14 * expansion.energy.max()))

    @property
    def closed(self) -> Closed | None:
        """The sum over all orders r ≥ 2, where it has a name: centred relu and erf."""
        if np.any(self.shift):
            return None
        b = self.scale
        if self.activation.function is RELU.function:
            inverse = np.divide(1.0, b, out=np.zeros_like(b), where=b > 0)
            return Closed(inverse, b / math.sqrt(2 * math.pi), _relu_beyond, _relu_slope)
        if self.activation.function is ERF.function:
            root = np.sqrt(2 / (1 + 2 * b**2))
            return Closed(root, np.full_like(b, math.sqrt(2 / math.pi)), _erf_beyond, _erf_slope)
        return None


@dataclass(frozen=True)
class Closed:
    """Σ_{r≥2} of the series is amplitude_i·amplitude_j·beyond(K_ij·scale_i·scale_j)."""

    scale: Array
    amplitude: Array
    beyond: Callable[[Any], Any]
    slope: Callable[[Any], Any]

    def __call__(self, x: Any, rest: Any) -> Any:
        value = self.beyond(x)
        if rest is not None:
            value += self.slope(x) * rest
        return value


def _relu_beyond(x: Any) -> Any:
    """√(1−x²) + x·asin x − 1  [cho2009]."""
    xp = namespace(x)
    value = xp.asin(x)
    value *= x
    value += xp.sqrt(1 - x * x)
    value -= 1
    return value


def _relu_slope(x: Any) -> Any:
    return namespace(x).asin(x)


def _erf_beyond(x: Any) -> Any:
    """asin x − x  [williams1998]."""
    value = namespace(x).asin(x)
    value -= x
    return value


def _erf_slope(x: Any) -> Any:
    xp = namespace(x)
    gap = xp.maximum(1 - x * x, float(xp.finfo(x.dtype).eps))
    return 1 / xp.sqrt(gap) - 1


def cross_sum(
    single: Series, many: Series, factors: Array, x: Array, rest: Array | None, goal: float
) -> Sum:
    """Σ_i factors_i·E g(t)σ(z_i) beyond order 1, for one g(t) (the label, say) and k neurons.

    x are the correlations of t with the z_i, or their part through κ, and `rest` the remainder.
    Closed forms where both functions are relu, or both erf; else the series, taken to the order
    whose tail is below `goal`; the neurons for which no order is enough are integrated over t.
    """
    one, other = single.closed, many.closed
    if one is not None and other is not None and one.beyond is other.beyond:
        # the closed forms take K·scale_i·scale_j; x is K/(b_t·b_i)
        stretch = one.scale * single.scale * other.scale * many.scale
        far = None if rest is None else rest * stretch
        beyond = one(np.clip(x * stretch, -1, 1), far) * one.amplitude * other.amplitude
        return Sum(float(factors @ beyond), 0.0, 0)
    if single.linear or many.linear:
        return Sum(0.0, 0.0, 0)
    for most in (2, 3, 4, 6, *ORDERS):
        left, right = single.upto(most), many.upto(most)
        size = _whole_power(np.abs(x), most)
        bound = size * np.abs(x)
        if rest is not None:
            bound += (most + 1) * size * np.abs(rest)
        bound *= np.sqrt(left.tail(most) * right.tail(most)) * np.abs(factors)
        if bound.sum() <= goal:
            break
    beyond, power = np.zeros_like(x), np.ones_like(x)
    for r in range(2, most + 1):
        power = power * x
        kernel = power * x if rest is None else power * (x + r * rest)
        beyond += left.coefficients[r] * right.coefficients[r] * kernel
    error = float(bound.sum())
    rough = np.flatnonzero(bound > goal / len(bound))
    if error > goal and rest is None:
        exact, off = _integrated(single, many, x, rough)
        beyond[rough] = exact - sum(
            left.coefficients[j] * right.coefficients[j, rough] * x[rough] ** j for j in (0, 1)
        )
        bound[rough] = off * np.abs(factors[rough])
        error = float(bound.sum())
    return Sum(float(factors @ beyond), error, most)


def _whole_power(x: Array, exponent: int) -> Array:
    """x^exponent by squares and products, in a tenth of the time of `**`."""
    power, square = np.ones_like(x), x
    while exponent:
        if exponent % 2:
            power = power * square
        square = square * square
        exponent //= 2
    return power


def _integrated(single: Series, many: Series, x: Array, which: np.ndarray) -> tuple[Array, Array]:
    """E g(s + bU)σ(s_i + b_iV), corr(U, V) = x_i, panels over U split where g has breakpoints."""
    g, s, b = single.activation, float(single.shift[0]), float(single.scale[0])
    shift, scale, x = many.shift[which], many.scale[which], x[which]
    inner = sorted((breakpoint - s) / b for breakpoint in g.breakpoints) if b > 0 else []
    edges = np.array([-9.0, *(e for e in inner if abs(e) < 9), 9.0])
    unit, unit_weights = roots_legendre(16)
    previous = np.full(len(which), np.inf)
    off = previous
    for panels in (2, 4, 8, 16, 32, 64):
        fine = np.unique(
            np.concatenate([np.linspace(*ends, panels + 1) for ends in itertools.pairwise(edges)])
        )
        half = np.diff(fine) / 2
        u = ((fine[:-1] + half)[:, None] + half[:, None] * unit).ravel()
        w = (half[:, None] * unit_weights).ravel() * np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi)
        current = _given(many.activation, shift, scale, x, u) @ (w * g(s + b * u))
        off = np.abs(current - previous)
        previous = current
        if off.max() <= 1e-10 * (1 + np.abs(current).max()):
            break
    return previous, off


def _given(activation: Activation, shift: Array, scale: Array, x: Array, u: Array) -> Array:
    """E[σ(s_i + b_iV) | U = u], one row for each neuron."""
    mean = shift[:, None] + (scale * x)[:, None] * u
    deviation = np.broadcast_to((scale * np.sqrt(np.maximum(1 - x**2, 0)))[:, None], mean.shape)
    if activation.moments is not None:
        return activation.smoothed(mean, deviation).value
    return gaussian_mean(activation.__call__, mean, deviation, activation.breakpoints)
