"""Links of several projections: y = g(t₁, …, t_p), by name, by Hermite tensor, or a function."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import SpecError, did_you_mean
from onegrad.gaussian.elementwise import sign
from onegrad.gaussian.functions import content_digest, required_arguments
from onegrad.gaussian.polynomials import hermite_series

MOST_INDICES = 4
_TENSOR = re.compile(r"\s*hermite\s*\((\[.*\])\)\s*", re.DOTALL)
_LARGEST = 13  # coefficients along an axis of a tensor
_LOW = 5  # largest degree of polynomials whose squares the rules integrate exactly
_GRID = np.array([-3.1, -1.7, -0.9, -0.3, 0.2, 0.6, 1.4, 2.6])  # test points for functions


@dataclass(frozen=True)
class JointLink:
    """g of p projections, with where it bends or jumps.

    function : takes p arrays of one shape
    bends : "none" where it is smooth, "axes": where a projection is 0, "ties": where two are equal
    factor : multiplies the function, for labels that are flipped
    """

    name: str
    indices: int
    function: Callable[..., Array]
    bends: Literal["none", "axes", "ties"] = "none"
    factor: float = 1.0

    def __call__(self, projections: Array) -> Array:
        """At projections (…, p)."""
        values = np.asarray(self.function(*np.moveaxis(projections, -1, 0)), float)
        return self.factor * values if self.factor != 1.0 else values

    def breaks(self, earlier: tuple[float, ...]) -> tuple[float, ...]:
        """Where it bends along the next projection, given the earlier ones: averages over all
        later ones are smooth between them."""
        if self.bends == "axes":
            return (0.0,)
        return (max(earlier),) if self.bends == "ties" and earlier else ()

    @property
    def binary(self) -> bool:
        """Whether its values are ±1."""
        return self.name == "xor"

    @property
    def polynomial(self) -> bool:
        """Whether it is one of so low a degree that rules without a break are exact."""
        if isinstance(self.function, HermiteTensor):
            return max(np.array(self.function.coefficients).shape) <= _LOW
        return self.name in ("product", "sum")

    def scaled(self, factor: float) -> JointLink:
        return replace(self, factor=factor * self.factor)

    @cached_property
    def identity(self) -> str:
        """A text that differs between links of different values: the name, or name and digest."""
        if self.name in NAMED or self.name.startswith("hermite("):
            return self.name
        grid = list(itertools.product(_GRID, repeat=self.indices))
        values = self(np.array(grid))

        def of_projections(x: Array) -> Array:
            return values

        return f"{self.name} #{content_digest([of_projections, self.function], self.indices)}"


def _product(*t: Array) -> Array:
    return np.asarray(math.prod(t[1:], start=t[0]))


def _sum(*t: Array) -> Array:
    return np.asarray(sum(t[1:], start=t[0]))


def _xor(*t: Array) -> Array:
    return np.asarray(sign(_product(*t)))


def _max(*t: Array) -> Array:
    return np.max(np.stack(t), axis=0)


_NAMED: dict[str, tuple[Callable[..., Array], Literal["none", "axes", "ties"]]] = {
    "product": (_product, "none"),
    "sum": (_sum, "none"),
    "xor": (_xor, "axes"),
    "max": (_max, "ties"),
}
NAMED = tuple(_NAMED)


@dataclass(frozen=True)
class HermiteTensor:
    """Σ coefficients[i, j, …]·H_i(t₁)H_j(t₂)…, the coefficients as nested tuples."""

    coefficients: Any

    def __call__(self, *t: Array) -> Array:
        tensor = np.array(self.coefficients, float)
        total: Any = 0.0
        for position in zip(*np.nonzero(tensor), strict=True):
            parts = [
                hermite_series((0.0,) * d + (1.0,), x) for d, x in zip(position, t, strict=True)
            ]
            total = total + tensor[position] * math.prod(parts)
        return np.asarray(total + np.zeros_like(t[0]))


@dataclass(frozen=True)
class _OfMatrix:
    """A function of an m × p array of projections."""

    function: Callable[[Array], Array]

    def __call__(self, *t: Array) -> Array:
        shape = t[0].shape
        rows = np.stack([np.ravel(x) for x in t], axis=1)
        return np.asarray(self.function(rows)).reshape(shape)


def get_joint_link(which: Any, indices: int) -> JointLink:
    """The link of that name, of that tensor (nested lists, or `hermite([[…], …])`), or a Python
    function."""
    key = "labels.link"
    if isinstance(which, JointLink):
        if which.indices != indices:
            raise SpecError.of(
                "labels.indices", indices, f"and the link {which.name} has {which.indices}",
                f"Use indices = {which.indices}",
            )  # fmt: skip
        return which
    if isinstance(which, str) and which in _NAMED:
        function, bends = _NAMED[which]
        return JointLink(which, indices, function, bends)
    if isinstance(which, str) and (match := _TENSOR.fullmatch(which)):
        with contextlib.suppress(ValueError):
            which = json.loads(match[1])
    if isinstance(which, list | tuple):
        return _of_tensor(which, indices, key)
    if callable(which):
        return _of_function(which, indices, key)
    raise SpecError.of(
        key, which,
        f"must be one of {', '.join(_NAMED)}, nested lists with a Hermite tensor, or in Python a "
        "function of the projections",
        did_you_mean(which, list(_NAMED)) if isinstance(which, str) else 'For example "product"',
    )  # fmt: skip


def _of_tensor(value: Any, indices: int, key: str) -> JointLink:
    try:
        tensor = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        tensor = np.zeros(())
    if tensor.ndim != indices or not tensor.size or not np.all(np.isfinite(tensor)):
        raise SpecError.of(
            key, value, f"must be {indices} levels of lists, of equal lengths, of finite numbers: "
            "entry [i][j] is the coefficient of H_i(t1)·H_j(t2)",
            "For t1·t2 write [[0, 0], [0, 1]] with indices = 2",
        )  # fmt: skip
    if max(tensor.shape) > _LARGEST or not tensor.any():
        what = (
            "must not vanish" if not tensor.any() else f"has degrees up to {_LARGEST - 1} at most"
        )
        raise SpecError.of(key, value, what, "For t1·t2 write [[0, 0], [0, 1]]")
    name = f"hermite({json.dumps(tensor.tolist())})"
    return JointLink(name, indices, HermiteTensor(_nested(tensor.tolist())))


def _nested(value: Any) -> Any:
    return tuple(_nested(v) for v in value) if isinstance(value, list) else value


def _of_function(function: Callable[..., Any], indices: int, key: str) -> JointLink:
    """A link from a function of p arrays, or of one m × p array where it takes one argument."""
    given = str(getattr(function, "__name__", type(function).__name__))
    name = re.sub(r"\W", "", given) or "function"
    name = f"{name}-function" if name in _NAMED else name  # avoid the name of a built-in link
    used: Callable[..., Any] = function
    if indices > 1 and required_arguments(function) == 1:
        used = _OfMatrix(function)
    grid = np.array(list(itertools.product(_GRID, repeat=indices))).T
    try:
        values = np.asarray(used(*grid), dtype=float)
    except Exception as error:  # whatever somebody's function raises
        raise SpecError.of(
            key, given, f"must take {indices} arrays, or one m × {indices} array, and return one "
            f"({type(error).__name__}: {error})", "For example lambda s, t: s * t",
        ) from None  # fmt: skip
    if values.shape != grid[0].shape or not np.all(np.isfinite(values)):
        raise SpecError.of(
            key, given, "must return a finite number for each sample",
            f"It gave the shape {values.shape} for {grid.shape[1]} samples",
        )  # fmt: skip
    return JointLink(name, indices, used)
