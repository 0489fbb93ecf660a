"""Activations: value, derivative, Hermite coefficients and Gaussian smoothing.

Two Hermite normalisations live side by side (docs/notation.md):

* c_j = E[σ(Z)H_j(Z)]/j!, so that σ = Σ c_j H_j  [moniri2024, slide 27]: `coefficients`;
* h_j = E[σ(bZ)H_j(Z)] at the scale b of the bulk  [demir2025, Thm. 2]: `projections`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from onegrad.backend import host, like, namespace, pieces, special
from onegrad.errors import SpecError, did_you_mean
from onegrad.hermite import (
    Array,
    gaussian_mean,
    hermite_series,
    orthonormal_hermite,
    sqrt_factorial,
)

Function = Callable[[Array], Array]


class Smoothed(NamedTuple):
    """E σ(s+bZ), E σ'(s+bZ) and Var σ(s+bZ)."""

    value: Array
    slope: Array
    variance: Array


@dataclass(frozen=True)
class Activation:
    """A scalar non-linearity with what the theory needs to know about it.

    Parameters
    ----------
    name : how it is called in specs, tables and legends
    function, derivative : vectorised callables; the derivative may jump at kinks
    kinks : where value or slope is not smooth; integrals are split there
    offset : a constant taken off the value, E σ(Z) for a centred activation
    moments : optional closed form (s, b) -> E σ, E σ', E σ² of `function` itself
    slope_of_value : optional σ' as a function of σ (without offset), almost everywhere; it saves
        an evaluation where both are needed
    portable : the functions take arrays of any library (`backend.namespace`); those of others
        are moved to NumPy and back

    >>> cubic = Activation("cubic", lambda x: x**3, lambda x: 3 * x**2)
    >>> (cubic.coefficients(3).round(12) + 0.0).tolist()
    [0.0, 3.0, 0.0, 1.0]
    """

    name: str
    function: Function
    derivative: Function
    kinks: tuple[float, ...] = ()
    offset: float = 0.0
    moments: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None
    slope_of_value: Function | None = None
    portable: bool = False

    def _of(self, function: Function, x: Any) -> Any:
        if self.portable or namespace(x) is np:
            return function(x)
        return like(function(host(x)), x)

    def __call__(self, x: Any) -> Any:
        values = self._of(self.function, x)
        return values - self.offset if self.offset else values

    def slope(self, x: Any) -> Any:
        """σ'(x)."""
        return self._of(self.derivative, x)

    def into(self, x: Any, out: Any) -> Any:
        """σ(x) of a matrix, written to `out`, which may be x: no large temporary array."""
        for rows in pieces(x):
            out[rows] = self(x[rows])
        return out

    def value_and_slope(self, x: Any) -> tuple[Any, Any]:
        """σ(x) and σ'(x), from one evaluation where that is enough."""
        values = self._of(self.function, x)
        if self.slope_of_value is None:
            slopes = self.slope(x)
        else:
            slopes = self._of(self.slope_of_value, values)
        return values - self.offset if self.offset else values, slopes

    def centred(self) -> Activation:
        """σ − E σ(Z): the isotropic convention asks for c₀ = 0."""
        return replace(self, offset=self.offset + float(self.coefficients(0)[0]))

    def projections(self, order: int, scale: float = 1.0) -> Array:
        """h_j = E[σ(scale·Z)H_j(Z)] for j = 0…order."""

        def polynomials(z: Array) -> Array:
            return orthonormal_hermite(order, z)

        reach = 9.0 + math.sqrt(2.0 * order)
        unit = gaussian_mean(self.__call__, 0.0, scale, self.kinks, polynomials, reach)
        return unit * sqrt_factorial(order)

    def coefficients(self, order: int) -> Array:
        """c_j = E[σ(Z)H_j(Z)]/j! for j = 0…order, so that σ = Σ c_j H_j."""
        return self.projections(order) / sqrt_factorial(order) ** 2

    def second_moment(self, scale: float = 1.0) -> float:
        """E σ(scale·Z)²."""
        value, _, variance = self.smoothed(0.0, scale)
        return float(variance + value**2)

    def remainder(self, degree: int, scale: float = 1.0) -> float:
        """h* ≥ 0 with h*² = E σ(scale·Z)² − Σ_{j≤degree} h_j²/j!: what a polynomial leaves."""
        kept = (self.projections(degree, scale) / sqrt_factorial(degree)) ** 2
        return math.sqrt(max(self.second_moment(scale) - float(kept.sum()), 0.0))

    def smoothed(self, shift: Any, scale: Any) -> Smoothed:
        """E σ(s+bZ), E σ'(s+bZ), Var σ(s+bZ) for s = shift, b = scale ≥ 0, broadcast; to 1e-10.

        Cost: a closed form for relu, erf, sin and identity; about a hundred evaluations of the
        function per element otherwise (growing with the scale).
        """
        xp = namespace(shift)
        if xp is not np and not (self.portable and self.moments is not None):
            parts = self.smoothed(host(shift), host(scale))
            return Smoothed(*(like(part, shift) for part in parts))
        if xp is np:
            shift, scale = np.asarray(shift, float), np.asarray(scale, float)
        s, b = xp.broadcast_arrays(shift, scale)
        if self.moments is not None:
            value, slope, square = self.moments(s, b)
        else:
            value = gaussian_mean(self.function, s, b, self.kinks)
            slope = gaussian_mean(self.derivative, s, b, self.kinks)
            square = gaussian_mean(lambda x: self.function(x) ** 2, s, b, self.kinks)
        return Smoothed(value - self.offset, slope, xp.maximum(square - value**2, 0.0))


# --- the built-in ones: for arrays of any library ------------------------------------------

_ROOT_2PI = math.sqrt(2 * math.pi)


def _density(x: Any) -> Any:
    return namespace(x).exp(-0.5 * x**2) / _ROOT_2PI


def _ndtr(x: Any) -> Any:
    return special("ndtr", x)


def _relu_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    # At b = 0 the ratio is ±∞ (0 at the kink itself) and the formulas take their limits.
    xp = namespace(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = xp.where(b > 0, s / b, xp.where(s == 0, 0.0, xp.sign(s) * math.inf))
    below, density = _ndtr(t), _density(t)
    return s * below + b * density, below, (s**2 + b**2) * below + s * b * density


def _erf_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    # erf(u) = 2Φ(√2u) − 1, and E Φ(√2(s+bZ))² = Φ(h) − 2T(h, 1/√(1+4b²)) with Owen's T.
    xp = namespace(s)
    width = xp.sqrt(1 + 2 * b**2)
    value = _erf(s / width)
    slope = 2 / math.sqrt(math.pi) / width * xp.exp(-((s / width) ** 2))
    h = math.sqrt(2.0) * s / width
    square = 1.0 - 8.0 * special("owens_t", h, 1 / xp.sqrt(1 + 4 * b**2))
    return value, slope, square


def _sin_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    xp = namespace(s)
    damp = xp.exp(-0.5 * b**2)
    return damp * xp.sin(s), damp * xp.cos(s), (1 - xp.exp(-2 * b**2) * xp.cos(2 * s)) / 2


def _identity_moments(s: Any, b: Any) -> tuple[Any, Any, Any]:
    return s + 0.0 * b, namespace(s).ones_like(s), s**2 + b**2


def _relu(x: Any) -> Any:
    return namespace(x).maximum(x, 0.0)


def _step(x: Any) -> Any:
    """1 for x > 0, 0 for x < 0, and 1/2 between."""
    return 0.5 * (namespace(x).sign(x) + 1.0)


def _step_of_relu(value: Any) -> Any:
    return namespace(value).astype(value > 0, value.dtype)


def _slope_of_tanh(value: Any) -> Any:
    slopes = value * value
    slopes *= -1.0
    slopes += 1.0
    return slopes


def _slope_of_sigmoid(value: Any) -> Any:
    slopes = 1.0 - value
    slopes *= value
    return slopes


def _tanh(x: Any) -> Any:
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


def _tanh_slope(x: Any) -> Any:
    return _slope_of_tanh(_tanh(x))


def _sigmoid(x: Any) -> Any:
    return special("expit", x)


def _sigmoid_slope(x: Any) -> Any:
    return _slope_of_sigmoid(_sigmoid(x))


def _erf(x: Any) -> Any:
    return special("erf", x)


def _erf_slope(x: Any) -> Any:
    return 2 / math.sqrt(math.pi) * namespace(x).exp(-(x**2))


def _gelu(x: Any) -> Any:
    return x * _ndtr(x)


def _gelu_slope(x: Any) -> Any:
    return _ndtr(x) + x * _density(x)


def _elu(x: Any) -> Any:
    xp = namespace(x)
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0.0)))


def _elu_slope(x: Any) -> Any:
    xp = namespace(x)
    return xp.exp(xp.minimum(x, 0.0))


def _softplus(x: Any) -> Any:
    return namespace(x).logaddexp(x, 0.0)


def _sin(x: Any) -> Any:
    return namespace(x).sin(x)


def _cos(x: Any) -> Any:
    return namespace(x).cos(x)


def _one(x: Any) -> Any:
    return namespace(x).ones_like(x)


def _same(x: Any) -> Any:
    return x + 0.0


_BUILT_IN = {
    a.name: replace(a, portable=True)
    for a in (
        Activation(
            "relu", _relu, _step, kinks=(0.0,), moments=_relu_moments, slope_of_value=_step_of_relu
        ),
        Activation("tanh", _tanh, _tanh_slope, slope_of_value=_slope_of_tanh),
        Activation("sigmoid", _sigmoid, _sigmoid_slope, slope_of_value=_slope_of_sigmoid),
        Activation("erf", _erf, _erf_slope, moments=_erf_moments),
        Activation("gelu", _gelu, _gelu_slope),
        Activation("softplus", _softplus, _sigmoid),
        Activation("sin", _sin, _cos, moments=_sin_moments),
        Activation("elu", _elu, _elu_slope, kinks=(0.0,)),
        Activation("identity", _same, _one, moments=_identity_moments),
    )
}

_registry: dict[str, Activation] = dict(_BUILT_IN)
_HERMITE = re.compile(r"\s*hermite\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class _Polynomial:
    coefficients: tuple[float, ...]

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    def __call__(self, x: Array) -> Array:
        return hermite_series(self.coefficients, x)


def hermite_activation(*coefficients: float) -> Activation:
    """Σ_j coefficients[j]·H_j as an activation or link; named `hermite(c0, c1, …)` in specs."""
    slopes = tuple(j * c for j, c in enumerate(coefficients))[1:] or (0.0,)
    name = "hermite(" + ", ".join(f"{c:.12g}" for c in coefficients) + ")"
    return Activation(name, _Polynomial(tuple(coefficients)), _Polynomial(slopes), portable=True)


def register(activation: Activation) -> Activation:
    """Make an activation known by its name, so that specs may use it in this process."""
    if activation.name in _BUILT_IN:
        raise SpecError.of(
            "activation.name", activation.name, "is built in and cannot be replaced",
            "Choose another name",
        )  # fmt: skip
    _registry[activation.name] = activation
    return activation


def names() -> list[str]:
    return sorted(_registry)


def get_activation(which: str | Activation, key: str = "activation") -> Activation:
    """The activation of that name; `hermite(0, 1, 0.5)` is H₁ + H₂/2. `key` is for the error."""
    if isinstance(which, Activation):
        return which
    if isinstance(which, str):
        if which in _registry:
            return _registry[which]
        if match := _HERMITE.fullmatch(which):
            return hermite_activation(*_numbers(match[1], key, which))
    raise SpecError.of(
        key, which, f"must be one of {', '.join(names())}, or hermite(c0, c1, …)",
        did_you_mean(which, names()),
    )  # fmt: skip


def _numbers(text: str, key: str, which: Any) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(math.isfinite(v) for v in values) or len(values) > 31:
        raise SpecError.of(
            key, which, "hermite(c0, c1, …) takes 1 to 31 finite numbers",
            'For H1 + H2/2 write "hermite(0, 1, 0.5)"',
        )  # fmt: skip
    return values
