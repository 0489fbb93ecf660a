"""E σ(u)σ(v) for jointly Gaussian u and v, and the Hermite expansions that it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.activation import SIGN, Activation, HermitePolynomial, get_activation
from onegrad.gaussian.polynomials import (
    chebyshev_basis,
    chebyshev_nodes,
    chebyshev_transform,
    orthonormal_hermite,
)
from onegrad.gaussian.quadrature import gauss_hermite, gaussian_mean

RELU, ERF, SIN, IDENTITY = (get_activation(name) for name in ("relu", "erf", "sin", "identity"))
_MOST_ORDERS = 60
_WANTED = 1e-9
_WORST = 1e-5
_CHEBYSHEV = 8  # nodes per axis, doubled until the last coefficients vanish
_REACH = 12.0  # |H_r(z)|φ(z)/√r! < 1e-15 beyond, for every r (Cramér's inequality)
_PIECE = 1 << 13  # coefficients per quadrature node held at once where breakpoints set the nodes
_FAR = 40.0  # |s/b| beyond which a breakpoint is never met


@dataclass(frozen=True)
class Expansion:
    """σ(s_i + b_iZ) = Σ_r coefficients[r, i]·H_r(Z)/√r!, with energy[i] = E σ(s_i + b_iZ)².

    Mehler: for standard Gaussian U, V of correlation ρ,
    E σ(s_i + b_iU)σ(s_j + b_jV) = Σ_r coefficients[r, i]·coefficients[r, j]·ρ^r.
    """

    coefficients: Array
    energy: Array
    accuracy: float = 1e-14  # error of Σ (coefficients)², relative to E σ²

    @property
    def order(self) -> int:
        return len(self.coefficients) - 1

    def tail(self, order: int) -> Array:
        """Σ_{r > order} coefficients[r]², from the energy."""
        return np.maximum(self.energy - self._kept[min(order, self.order)], 0.0)

    @cached_property
    def _kept(self) -> Array:
        """Σ_{r' ≤ r} coefficients[r']², row by row."""
        return np.cumsum(self.coefficients**2, axis=0)


def expand(activation: Activation, shift: ArrayLike, scale: ArrayLike, order: int) -> Expansion:
    """The coefficients ĉ_r = E σ(s+bZ)H_r(Z)/√r!, r = 0…order, and E σ(s+bZ)², for k pairs (s, b).

    Closed forms for relu, erf, sign, sin, identity and polynomials. Otherwise quadrature to 1e-11
    on Chebyshev nodes in s and b, because the means and scales of a problem crowd together; at
    every pair where they do not. Cost O(k·order), and a few hundred values of σ for each node.
    """
    s, b = np.broadcast_arrays(np.asarray(shift, float), np.asarray(scale, float))
    if isinstance(activation.function, HermitePolynomial):
        return _expand_polynomial(activation, s, b, order)
    closed = next((form for known, form in _CLOSED if known is activation.function), None)
    if closed is not None:
        rows = closed(s, b, order)
        value, _, variance = activation.smoothed(s, b)
        rows[0] = value
        return Expansion(rows, variance + value**2)
    rows = _interpolate(lambda shifts, scales: _project(activation, shifts, scales, order), s, b)
    return Expansion(rows[:-1], rows[-1], accuracy=1e-10)


def _project(activation: Activation, s: Array, b: Array, order: int) -> Array:
    """ĉ_0…ĉ_order and the energy, stacked: (order+2) × k."""
    rows = np.empty((order + 2, len(s)))
    step = max(1, _PIECE // (order + 1) if activation.breakpoints else len(s))
    for start in range(0, len(s), step):
        part = slice(start, start + step)
        rows[:-1, part] = gaussian_mean(
            activation.__call__,
            s[part],
            b[part],
            activation.breakpoints,
            lambda z: orthonormal_hermite(order, z),
            _REACH,
        )
    rows[-1] = gaussian_mean(lambda x: activation(x) ** 2, s, b, activation.breakpoints)
    return rows


def _interpolate(project: Callable[[Array, Array], Array], s: Array, b: Array) -> Array:
    """`project` at few Chebyshev nodes, and from there at all (s, b); checked by its own decay."""
    axes = [_Axis(x) for x in (s, b)]
    p, q = (_CHEBYSHEV if axis.wide else 1 for axis in axes)
    while 2 * p * q <= len(b):
        left, right = np.meshgrid(axes[0].nodes(p), axes[1].nodes(q), indexing="ij")
        values = project(left.ravel(), right.ravel()).reshape(-1, p, q)
        transforms = chebyshev_transform(p), chebyshev_transform(q)
        series = np.einsum("rij,pi,qj->rpq", values, *transforms, optimize=True)
        size = 1e-10 * np.abs(series).max()
        rough = [p > 1 and np.abs(series[:, -2:]).max() > size]
        rough += [q > 1 and np.abs(series[:, :, -2:]).max() > size]
        if not any(rough):
            basis = axes[0].basis(p, s)[:, None] * axes[1].basis(q, b)
            return np.asarray(series.reshape(-1, p * q) @ basis.reshape(p * q, -1))
        p, q = (n * (1 + more) for n, more in zip((p, q), rough, strict=True))
    return project(s, b)


class _Axis:
    """Chebyshev polynomials on [low, high]."""

    def __init__(self, x: Array) -> None:
        self.low, self.high = float(x.min()), float(x.max())
        self.wide = self.high - self.low > 1e-12 * max(abs(self.low), abs(self.high))

    def nodes(self, count: int) -> Array:
        return self.low + (self.high - self.low) * (chebyshev_nodes(count) + 1) / 2

    def basis(self, count: int, x: Array) -> Array:
        if count == 1:  # the axis may be a point
            return np.ones((1, len(x)))
        return chebyshev_basis(count, 2 * (x - self.low) / (self.high - self.low) - 1).T


def _expand_polynomial(activation: Activation, s: Array, b: Array, order: int) -> Expansion:
    """Exact: Gauss–Hermite with one node more than the degree."""
    assert isinstance(activation.function, HermitePolynomial)
    degree = activation.function.degree
    z, w = gauss_hermite(degree + 1)
    values = activation(s[:, None] + b[:, None] * z) * w
    exact = (values @ orthonormal_hermite(degree, z).T).T
    rows = np.zeros((order + 1, len(s)))
    rows[: degree + 1] = exact[: order + 1]
    return Expansion(rows, np.sum(exact**2, axis=0))


def _expand_relu(s: Array, b: Array, order: int) -> Array:
    """E relu(s+bZ)H_r(Z) = b(−1)^r H_{r−2}(t)φ(t), t = s/b, r ≥ 2; b·Φ(t) at r = 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.clip(np.where(b > 0, s / b, np.sign(s) * _FAR), -_FAR, _FAR)
    rows = np.empty((order + 1, len(s)))
    if order:
        rows[1] = b * RELU.smoothed(s, b).slope
    if order > 1:
        r = np.arange(2, order + 1)[:, None]
        density = b * np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi)
        rows[2:] = (-1.0) ** r / np.sqrt(r * (r - 1)) * orthonormal_hermite(order - 2, t) * density
    return rows


def _expand_erf(s: Array, b: Array, order: int) -> Array:
    """E erf(s+bZ)H_r(Z) = 2(−1)^{r−1}x^r H_{r−1}(y)φ(y), w² = 1+2b², x = √2·b/w, y = √2·s/w."""
    width = np.sqrt(1 + 2 * b**2)
    x, y = math.sqrt(2) * b / width, np.clip(math.sqrt(2) * s / width, -_FAR, _FAR)
    rows = np.empty((order + 1, len(s)))
    if order:
        r = np.arange(1, order + 1)[:, None]
        density = 2 * np.exp(-0.5 * y**2) / math.sqrt(2 * math.pi)
        rows[1:] = (-1.0) ** (r - 1) * x**r / np.sqrt(r) * orthonormal_hermite(order - 1, y)
        rows[1:] *= density
    return rows


def _expand_sign(s: Array, b: Array, order: int) -> Array:
    """E sign(s+bZ)H_r(Z) = 2(−1)^{r−1}H_{r−1}(t)φ(t), t = s/b."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.clip(np.where(b > 0, s / b, np.sign(s) * _FAR), -_FAR, _FAR)
    rows = np.zeros((order + 1, len(s)))
    if order:
        r = np.arange(1, order + 1)[:, None]
        density = np.where(b > 0, 2 * np.exp(-0.5 * t**2) / math.sqrt(2 * math.pi), 0.0)
        rows[1:] = (-1.0) ** (r - 1) / np.sqrt(r) * orthonormal_hermite(order - 1, t) * density
    return rows


def _expand_sin(s: Array, b: Array, order: int) -> Array:
    """E sin(s+bZ)H_r(Z) = b^r e^{−b²/2} sin(s + rπ/2)."""
    r = np.arange(order + 1)[:, None]
    logarithm = r * np.log(np.maximum(b, 1e-300)) - 0.5 * b**2 - 0.5 * gammaln(r + 1.0)
    return np.asarray(np.exp(logarithm) * np.sin(s + r * (math.pi / 2)))


def _expand_identity(s: Array, b: Array, order: int) -> Array:
    rows = np.zeros((order + 1, len(s)))
    if order:
        rows[1] = b
    return rows


_CLOSED = (
    (RELU.function, _expand_relu),
    (ERF.function, _expand_erf),
    (SIN.function, _expand_sin),
    (SIGN.function, _expand_sign),
    (IDENTITY.function, _expand_identity),
)


def pair_moments(activation: Activation, q: Array, p: Array, covariance: Array) -> Array:
    """M_ij = E σ(u_i)σ(v_j), Var u_i = q_i, Var v_j = p_j, Cov(u_i, v_j) = covariance_ij, centred.

    Closed forms for relu [cho2009] and erf [williams1998]; otherwise Mehler's series
    Σ_r ĉ_r(q_i)ĉ_r(p_j)ρ^r with ĉ_r(q) = E σ(√q Z)H_r(Z)/√r!, whose tail is at most
    |ρ|^{R+1} times the remainders. Pairs with |ρ| = 1 are exact. Cost: O(size · orders)
    elementwise; memory two arrays of the size of the result.
    """
    if activation.function is RELU.function:
        raw = _relu(q, p, covariance)
    elif activation.function is ERF.function:
        raw = (
            2
            / math.pi
            * np.arcsin(np.clip(2 * covariance / np.sqrt(np.outer(1 + 2 * q, 1 + 2 * p)), -1, 1))
        )
    elif activation.function is IDENTITY.function:
        raw = covariance.copy()
    else:
        return _mehler(activation, q, p, covariance)
    if activation.offset:  # E(σ−o)(σ−o) from the moments of σ itself
        o = activation.offset
        left = activation.smoothed(0.0, np.sqrt(q)).value + o
        right = activation.smoothed(0.0, np.sqrt(p)).value + o
        raw -= o * (left[:, None] + right[None, :])
        raw += o**2
    return raw


def _correlation(q: Array, p: Array, covariance: Array) -> Array:
    rho = covariance / np.sqrt(np.maximum(np.outer(q, p), np.finfo(float).tiny))
    return np.clip(rho, -1.0, 1.0, out=rho)


def _relu(q: Array, p: Array, covariance: Array) -> Array:
    rho = _correlation(q, p, covariance)
    moments = np.sqrt(1 - rho**2) + rho * (math.pi / 2 + np.arcsin(rho))
    moments *= np.sqrt(np.outer(q, p)) / (2 * math.pi)
    return np.asarray(moments)


def _mehler(activation: Activation, q: Array, p: Array, covariance: Array) -> Array:
    rho = _correlation(q, p, covariance)
    same = np.abs(rho) > 1 - 1e-12
    top = float(np.max(np.abs(rho), initial=0.0, where=~same))
    left = expand(activation, 0.0, np.sqrt(q), _MOST_ORDERS)
    right = left if p is q else expand(activation, 0.0, np.sqrt(p), _MOST_ORDERS)
    size = math.sqrt(float(left.energy.max() * right.energy.max())) or 1.0
    total = np.outer(left.coefficients[0], right.coefficients[0])
    power = np.ones_like(rho)
    bound = math.inf
    for r in range(1, _MOST_ORDERS + 1):
        power *= rho
        total += power * left.coefficients[r][:, None] * right.coefficients[r][None, :]
        bound = top ** (r + 1) * math.sqrt(float(left.tail(r).max() * right.tail(r).max()))
        if bound <= _WANTED * size:
            break
    if bound > _WORST * size:
        raise ConvergenceError(
            f"the kernel series of {activation.name} is only accurate to {bound / size:.1e}: two "
            f"samples or neurons are correlated by {top:.4f}. Lower the spread or the rate, or use "
            "relu or erf, which have closed forms"
        )
    if np.any(same):
        i, j = np.nonzero(same)
        total[i, j] = _collinear(activation, np.sqrt(q[i]), np.sqrt(p[j]) * np.sign(rho[i, j]))
    return total


def _collinear(activation: Activation, left: Array, right: Array) -> Array:
    """E σ(left·Z)σ(right·Z)."""
    if np.array_equal(left, right):
        value, _, variance = activation.smoothed(0.0, left)
        return np.asarray(variance + value**2)
    z, step = np.linspace(-9, 9, 721, retstep=True)
    density = np.exp(-0.5 * z**2) * step / math.sqrt(2 * math.pi)
    return np.asarray((activation(np.outer(left, z)) * activation(np.outer(right, z))) @ density)
