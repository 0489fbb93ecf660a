"""The functions of the built-in activations, for arrays of any library.

`…_slope` is σ', `slope_of_…` σ' as a function of σ, and `…_moments` the closed form
(s, b) → E σ(s+bZ), E σ'(s+bZ), E σ(s+bZ)².
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onegrad.compute.backend import namespace, special

_ROOT_2PI = math.sqrt(2 * math.pi)


def density(x: Any) -> Any:
    return namespace(x).exp(-0.5 * x**2) / _ROOT_2PI


def ndtr(x: Any) -> Any:
    return special("ndtr", x)


def _ratio(s: Any, b: Any) -> Any:
    """s/b; at b = 0 it is ±∞ (0 at s = 0), and formulas take their limits."""
    xp = namespace(s)
    if bool(xp.all(xp.asarray(b > 0))):
        return s / b
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.where(b > 0, s / b, xp.where(s == 0, 0.0, xp.sign(s) * math.inf))


def relu_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    t = _ratio(s, b)
    below, at = ndtr(t), density(t)
    return s * below + b * at, below, (s**2 + b**2) * below + s * b * at


def exponential_tails(s: Any, b: Any) -> tuple[Any, Any]:
    """E[e^{jx}; x < 0] = exp(js + (jb)²/2) Φ(−s/b − jb) for j = 1, 2, x = s + bZ; by its logarithm,
    as both factors overflow."""
    xp, t = namespace(s), _ratio(s, b)
    once, twice = (
        xp.exp(j * s + 0.5 * (j * b) ** 2 + special("log_ndtr", -t - j * b)) for j in (1, 2)
    )
    return once, twice


def elu_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    value, above, square = relu_moments(s, b)
    once, twice = exponential_tails(s, b)
    rest = 1.0 - above
    return value + once - rest, above + once, square + twice - 2 * once + rest


def erf_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    # erf(u) = 2Φ(√2u) − 1, and E Φ(√2(s+bZ))² = Φ(h) − 2T(h, 1/√(1+4b²)) with Owen's T.
    xp = namespace(s)
    width = xp.sqrt(1 + 2 * b**2)
    value = erf(s / width)
    slope = 2 / math.sqrt(math.pi) / width * xp.exp(-((s / width) ** 2))
    h = math.sqrt(2.0) * s / width
    square = 1.0 - 8.0 * special("owens_t", h, 1 / xp.sqrt(1 + 4 * b**2))
    return value, slope, square


def sin_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    xp = namespace(s)
    damp = xp.exp(-0.5 * b**2)
    return damp * xp.sin(s), damp * xp.cos(s), (1 - xp.exp(-2 * b**2) * xp.cos(2 * s)) / 2


def identity_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    return s + 0.0 * b, namespace(s).ones_like(s), s**2 + b**2


def relu(x: Any) -> Any:
    return namespace(x).maximum(x, 0.0)


def zero(x: Any) -> Any:
    return namespace(x).zeros_like(x)


def sign(x: Any) -> Any:
    """1 for x ≥ 0, else −1: never 0, so that labels are ±1."""
    xp = namespace(x)
    return xp.where(x < 0, -xp.ones_like(x), xp.ones_like(x))


def sign_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    """With the slope 2δ(x): E 2δ(s+bZ) = 2φ(s/b)/b."""
    xp = namespace(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = xp.where(b > 0, s / b, sign(s) * math.inf)
        slope = xp.where(b > 0, 2 * density(t) / b, 0.0)
    return 2 * ndtr(t) - 1, slope, xp.ones_like(t)


def step(x: Any) -> Any:
    """1 for x > 0, 0 for x < 0, and 1/2 between."""
    return 0.5 * (namespace(x).sign(x) + 1.0)


def step_of_relu(value: Any) -> Any:
    return namespace(value).astype(value > 0, value.dtype)


def slope_of_tanh(value: Any) -> Any:
    slopes = value * value
    slopes *= -1.0
    slopes += 1.0
    return slopes


def slope_of_sigmoid(value: Any) -> Any:
    slopes = 1.0 - value
    slopes *= value
    return slopes


def tanh(x: Any) -> Any:
    """tanh to 2e-16 (absolute), on NumPy in half the time of `np.tanh`."""
    if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype != np.float64:
        return namespace(x).tanh(x)
    t = np.abs(x)
    t *= -2.0
    np.exp(t, out=t)
    t += 1.0
    np.divide(2.0, t, out=t)
    t -= 1.0
    return np.copysign(t, x, out=t)


def tanh_slope(x: Any) -> Any:
    return slope_of_tanh(tanh(x))


def sigmoid(x: Any) -> Any:
    """1/(1 + e^{−x}), on NumPy in a third of the time of `expit`."""
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return special("expit", x)
    t = np.maximum(x, -80.0 if x.dtype == np.float32 else -700.0)  # 1e-35, 1e-304: no overflow
    np.negative(t, out=t)
    np.exp(t, out=t)
    t += 1.0
    return np.divide(1.0, t, out=t)


def sigmoid_slope(x: Any) -> Any:
    return slope_of_sigmoid(sigmoid(x))


def erf(x: Any) -> Any:
    return special("erf", x)


def erf_slope(x: Any) -> Any:
    return 2 / math.sqrt(math.pi) * namespace(x).exp(-(x**2))


def gelu(x: Any) -> Any:
    return x * ndtr(x)


def gelu_slope(x: Any) -> Any:
    return ndtr(x) + x * density(x)


def elu(x: Any) -> Any:
    xp = namespace(x)
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0.0)))


def elu_slope(x: Any) -> Any:
    xp = namespace(x)
    return xp.exp(xp.minimum(x, 0.0))


def softplus(x: Any) -> Any:
    return namespace(x).logaddexp(x, 0.0)


def sin(x: Any) -> Any:
    return namespace(x).sin(x)


def cos(x: Any) -> Any:
    return namespace(x).cos(x)


def one(x: Any) -> Any:
    return namespace(x).ones_like(x)


def same(x: Any) -> Any:
    return x + 0.0
