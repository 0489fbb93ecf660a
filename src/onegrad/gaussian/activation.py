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
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onegrad.compute.backend import CACHED, Array, host, like, namespace, pieces
from onegrad.errors import SpecError, did_you_mean
from onegrad.gaussian import elementwise
from onegrad.gaussian.functions import Function, content_digest, function_parts
from onegrad.gaussian.polynomials import hermite_series, orthonormal_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gaussian_mean

if TYPE_CHECKING:
    from pydantic import SerializationInfo


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
    function, derivative : vectorised callables; the derivative may jump at breakpoints
    breakpoints : where value or slope is not smooth; integrals are split there
    offset : a constant taken off the value, E σ(Z) for a centred activation
    moments : optional closed form (s, b) -> E σ, E σ', E σ² of `function` itself
    slope_of_value : optional σ' as a function of σ (without offset), almost everywhere; it saves
        an evaluation where both are needed
    portable : the functions take arrays of any library (`backend.namespace`); those of others
        are moved to NumPy and back
    note : how the derivative was obtained, if not by a formula

    >>> cubic = Activation("cubic", lambda x: x**3, lambda x: 3 * x**2)
    >>> (cubic.coefficients(3).round(12) + 0.0).tolist()
    [0.0, 3.0, 0.0, 1.0]
    """

    name: str
    function: Function
    derivative: Function
    breakpoints: tuple[float, ...] = ()
    offset: float = 0.0
    moments: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None
    slope_of_value: Function | None = None
    portable: bool = False
    note: str = ""

    def __repr__(self) -> str:
        centred = f", minus {self.offset:.4g}" if self.offset else ""
        return f"<activation {self.name}{centred}{'; ' * bool(self.note)}{self.note}>"

    @cached_property
    def identity(self) -> str:
        """What tells its numbers from those of any other activation, whatever their names: the name
        where that says all (built in, or Hermite coefficients), else with a digest of the content.
        """
        if self in (_BUILT_IN.get(self.name), _LINKS.get(self.name)):
            return self.name
        if isinstance(self.function, HermitePolynomial):
            series = hermite_activation(*self.function.coefficients)
            if series == self:
                return self.name
        functions = (self.function, self.derivative, self.moments, self.slope_of_value)
        settings = (self.breakpoints, self.offset)
        return f"{self.name} #{content_digest(functions, settings)}"

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

    def scaled(self, factor: float) -> Activation:
        """factor·σ; of closed forms it keeps the moments only. For factor 1 the same object."""
        if factor == 1.0:
            return self
        moments = None if self.moments is None else _ScaledMoments(self.moments, factor)
        return replace(
            self, name=f"{_shown(factor)}·{self.name}", offset=factor * self.offset,
            function=_Scaled(self.function, factor), derivative=_Scaled(self.derivative, factor),
            moments=moments, slope_of_value=None,
        )  # fmt: skip

    def centred(self) -> Activation:
        """σ − E σ(Z): the isotropic convention asks for c₀ = 0."""
        return replace(self, offset=self.offset + float(self.coefficients(0)[0]))

    def projections(self, order: int, scale: float = 1.0) -> Array:
        """h_j = E[σ(scale·Z)H_j(Z)] for j = 0…order."""

        def polynomials(z: Array) -> Array:
            return orthonormal_hermite(order, z)

        reach = 9.0 + math.sqrt(2.0 * order)
        unit = gaussian_mean(self.__call__, 0.0, scale, self.breakpoints, polynomials, reach)
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

        Cost: a closed form for relu, elu, erf, sin and identity; about a hundred evaluations
        of the function per element otherwise (growing with the scale).
        """
        xp = namespace(shift)
        if xp is not np and not (self.portable and self.moments is not None):
            parts = self.smoothed(host(shift), host(scale))
            return Smoothed(*(like(part, shift) for part in parts))
        if xp is np:
            shift, scale = np.asarray(shift, float), np.asarray(scale, float)
        s, b = xp.broadcast_arrays(shift, scale)
        if self.moments is None or xp is not np or s.nbytes <= CACHED:
            return self._smoothed(s, b)
        found = np.empty((3, *s.shape))
        for rows in pieces(s):  # blocks: large temporary arrays make relu seven times slower
            for whole, part in zip(found, self._smoothed(s[rows], b[rows]), strict=True):
                whole[rows] = part
        return Smoothed(*found)

    def _smoothed(self, s: Any, b: Any) -> Smoothed:
        if self.moments is not None:
            value, slope, square = self.moments(s, b)
        else:
            value = gaussian_mean(self.function, s, b, self.breakpoints)
            slope = gaussian_mean(self.derivative, s, b, self.breakpoints)
            square = gaussian_mean(lambda x: self.function(x) ** 2, s, b, self.breakpoints)
        return Smoothed(value - self.offset, slope, namespace(s).maximum(square - value**2, 0.0))


_BUILT_IN = {
    a.name: replace(a, portable=True)
    for a in (
        Activation("relu", elementwise.relu, elementwise.step, (0.0,),
                   moments=elementwise.relu_moments, slope_of_value=elementwise.step_of_relu),
        Activation("tanh", elementwise.tanh, elementwise.tanh_slope,
                   slope_of_value=elementwise.slope_of_tanh),
        Activation("sigmoid", elementwise.sigmoid, elementwise.sigmoid_slope,
                   slope_of_value=elementwise.slope_of_sigmoid),
        Activation("erf", elementwise.erf, elementwise.erf_slope, moments=elementwise.erf_moments),
        Activation("gelu", elementwise.gelu, elementwise.gelu_slope),
        Activation("softplus", elementwise.softplus, elementwise.sigmoid),
        Activation("sin", elementwise.sin, elementwise.cos, moments=elementwise.sin_moments),
        Activation("elu", elementwise.elu, elementwise.elu_slope, (0.0,),
                   moments=elementwise.elu_moments),
        Activation("identity", elementwise.same, elementwise.one,
                   moments=elementwise.identity_moments),
    )
}  # fmt: skip

SIGN = Activation(
    "sign", elementwise.sign, elementwise.zero, breakpoints=(0.0,),
    moments=elementwise.sign_moments, portable=True,
)  # fmt: skip
_LINKS = {"sign": SIGN}  # links only: a network of signs has no gradient
_registry: dict[str, Activation] = dict(_BUILT_IN)
_HERMITE = re.compile(r"\s*hermite\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class _Scaled:
    """factor·function."""

    function: Function
    factor: float

    def __call__(self, x: Any) -> Any:
        return self.factor * self.function(x)


@dataclass(frozen=True)
class _ScaledMoments:
    """E f, E f', E f² of factor·function."""

    moments: Callable[[Array, Array], tuple[Array, Array, Array]]
    factor: float

    def __call__(self, s: Array, b: Array) -> tuple[Array, Array, Array]:
        value, slope, square = self.moments(s, b)
        return self.factor * value, self.factor * slope, self.factor**2 * square


@dataclass(frozen=True)
class HermitePolynomial:
    """Σ_j coefficients[j]·H_j."""

    coefficients: tuple[float, ...]

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    def __call__(self, x: Array) -> Array:
        return hermite_series(self.coefficients, x)


def hermite_activation(*coefficients: float) -> Activation:
    """Σ_j coefficients[j]·H_j as an activation or link; named `hermite(c0, c1, …)` in specs."""
    if not all(isinstance(c, int | float | np.number) for c in coefficients):
        raise SpecError.of(
            "coefficients", coefficients, "must be numbers, one for each degree from 0 on",
            "For example hermite_activation(0, 1, 0.5)",
        )  # fmt: skip
    slopes = tuple(j * c for j, c in enumerate(coefficients))[1:] or (0.0,)
    name = "hermite(" + ", ".join(_shown(c) for c in coefficients) + ")"
    value, slope = HermitePolynomial(tuple(coefficients)), HermitePolynomial(slopes)
    return Activation(name, value, slope, portable=True)


def _shown(value: float) -> str:
    """The shortest text that reads back as the same number."""
    text = f"{value:.12g}"
    return text if float(text) == value else repr(float(value))


def register_activation(activation: Activation) -> Activation:
    """Register an activation under its name: specs may then use it in this process."""
    if activation.name in _BUILT_IN:
        raise SpecError.of(
            "activation.name", activation.name, "is built in and cannot be replaced",
            "Choose another name",
        )  # fmt: skip
    _registry[activation.name] = activation
    return activation


def written(activation: Activation, info: SerializationInfo) -> str:
    """In a dump of settings: its name, or its `identity` where the dump is to be a key."""
    return activation.identity if (info.context or {}).get("identity") else activation.name


def names() -> list[str]:
    return sorted(_registry)


_UFUNCS = {np.tanh: "tanh", np.sin: "sin"}


def get_activation(which: str | Activation | Function, key: str = "activation") -> Activation:
    """The activation of this name; `hermite(0, 1, 0.5)` is H₁ + H₂/2. Errors name the `key`.

    A smooth Python function of arrays is one too, with its derivative by numeric differentiation.
    """
    if isinstance(which, Activation):
        return which
    if isinstance(which, str):
        known = _registry | (_LINKS if key.endswith("link") else {})
        if which in known:
            return known[which]
        if match := _HERMITE.fullmatch(which):
            return hermite_activation(*_numbers(match[1], key, which))
    elif callable(which):
        if name := next((name for ufunc, name in _UFUNCS.items() if which is ufunc), ""):
            return _registry[name]
        name, function, derivative, note = function_parts(which, key)
        return Activation(name, function, derivative, note=note)
    listed = sorted({*names(), *(_LINKS if key.endswith("link") else ())})
    advice = did_you_mean(which, listed)
    if isinstance(which, str) and which in _LINKS:
        advice = (
            f'"{which}" is a link of labels: its slope is zero, and no step would move a neuron'
        )
    raise SpecError.of(
        key, which,
        f"must be one of {', '.join(listed)}, hermite(c0, c1, …), or in Python a function", advice,
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
