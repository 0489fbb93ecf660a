"""E σ(u)σ(v) for jointly Gaussian, centred u and v: the kernel of an activation."""

from __future__ import annotations

import math

import numpy as np

from onegrad.activation import Activation, get_activation
from onegrad.errors import ConvergenceError
from onegrad.hermite import Array, gaussian_mean, orthonormal_hermite

RELU, ERF, IDENTITY = (get_activation(name) for name in ("relu", "erf", "identity"))
_MOST_ORDERS = 60
_WANTED = 1e-9
_WORST = 1e-5


def pair_moments(activation: Activation, q: Array, p: Array, covariance: Array) -> Array:
    """M_ij = E σ(u_i)σ(v_j), Var u_i = q_i, Var v_j = p_j, Cov(u_i, v_j) = covariance_ij.

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


def scaled_projections(activation: Activation, q: Array, order: int) -> Array:
    """ĉ_r(q_i) = E σ(√q_i Z)·H_r(Z)/√r!, r = 0…order, as (order+1) × len(q).

    Computed on Chebyshev nodes in √q and interpolated: the variances of a problem crowd together.
    """
    scales = np.sqrt(q)
    low, high = float(scales.min()), float(scales.max())
    count = 24

    def project(at: Array) -> Array:
        return gaussian_mean(
            activation.__call__,
            np.zeros_like(at),
            at,
            activation.kinks,
            lambda z: orthonormal_hermite(order, z),
            9.0 + math.sqrt(2.0 * order),
        )

    if len(q) <= count or high - low < 1e-12 * high:
        return project(scales)
    angles = math.pi * (np.arange(count) + 0.5) / count
    unit = np.cos(angles)
    values = project(low + (high - low) * (unit + 1) / 2)
    x = 2 * (scales - low) / (high - low) - 1
    basis = np.cos(np.outer(np.arange(count), np.arccos(np.clip(x, -1, 1))))
    transform = 2 / count * np.cos(np.outer(np.arange(count), angles))
    transform[0] /= 2
    return values @ transform.T @ basis


def _mehler(activation: Activation, q: Array, p: Array, covariance: Array) -> Array:
    rho = _correlation(q, p, covariance)
    same = np.abs(rho) > 1 - 1e-12
    top = float(np.max(np.abs(rho), initial=0.0, where=~same))
    left = scaled_projections(activation, q, _MOST_ORDERS)
    right = left if p is q else scaled_projections(activation, p, _MOST_ORDERS)
    energy = _energy(activation, q), _energy(activation, p)
    size = math.sqrt(float(energy[0].max() * energy[1].max())) or 1.0
    total = np.outer(left[0], right[0])
    power = np.ones_like(rho)
    bound = math.inf
    for r in range(1, _MOST_ORDERS + 1):
        power *= rho
        total += power * left[r][:, None] * right[r][None, :]
        tails = [
            np.maximum(e - np.sum(c[: r + 1] ** 2, axis=0), 0.0).max()
            for e, c in zip(energy, (left, right), strict=True)
        ]
        bound = top ** (r + 1) * math.sqrt(float(tails[0] * tails[1]))
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


def _energy(activation: Activation, q: Array) -> Array:
    value, _, variance = activation.smoothed(0.0, np.sqrt(q))
    return np.asarray(variance + value**2)


def _collinear(activation: Activation, left: Array, right: Array) -> Array:
    """E σ(left·Z)σ(right·Z)."""
    if np.array_equal(left, right):
        return _energy(activation, left**2)
    z, step = np.linspace(-9, 9, 721, retstep=True)
    density = np.exp(-0.5 * z**2) * step / math.sqrt(2 * math.pi)
    return np.asarray((activation(np.outer(left, z)) * activation(np.outer(right, z))) @ density)
