"""Any Python function: its derivative by differences, checked, and what tells it from others."""

from __future__ import annotations

import hashlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import SpecError

Function = Callable[[Array], Array]

_REACH = 12.0  # largest |preactivation| at which slopes are checked
_STEP = 1e-3  # error of the formula: step⁴·σ⁽⁵⁾/30; of rounding: 1e-16/step
_TRUSTED = 1e-6  # the largest difference between two step sizes, relative to the largest slope
# Shifted, because bends usually lie at round numbers
_GRID = np.linspace(-_REACH, _REACH, 2401) + 1.7e-4
# Where digests look: |preactivations| beyond 8 have probability 1e-15
_CONTENT_GRID = np.concatenate([np.linspace(-8.0, 8.0, 513), [-1e3, -30.0, 30.0, 1e3]])
_SCALES = np.array([0.0, 0.3, 1.0, 3.0])


@dataclass(frozen=True)
class Differences:
    """σ'(x) ≈ (8(σ(x+h) − σ(x−h)) − (σ(x+2h) − σ(x−2h)))/(12h), of fourth order in h."""

    function: Function
    step: float = _STEP

    def __call__(self, x: Array) -> Array:
        f, h = self.function, self.step
        return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def function_parts(function: Any, key: str) -> tuple[str, Function, Differences, str]:
    """Name, function, derivative and a note on how good that is; a SpecError where it is not.

    The name ends in a hash of the function's values, so that a store never takes two functions of
    one name for each other.

    >>> name, _, slope, note = function_parts(lambda x: x / (1 + x**2), "activation")
    >>> bool(abs(slope(np.array([0.0]))[0] - 1) < 1e-9), note[:35]
    (True, 'derivative by numeric differentiati')
    """
    given = str(getattr(function, "__name__", type(function).__name__))
    word = re.sub(r"\W", "", given) or "function"
    values = _values(function, given, word, key)
    slopes, finer = (Differences(function, h)(_GRID) for h in (_STEP, _STEP / 2))
    gap = np.abs(slopes - finer) / max(float(np.abs(finer).max()), 1e-300)
    if not gap.max() < _TRUSTED:
        where = float(np.round(_GRID[int(gap.argmax())], 2)) + 0.0
        raise SpecError.of(
            key, given,
            f"bends or jumps near x = {where:g}, where no derivative can be measured",
            "State the derivative and the place in two lines:\n"
            f'  {word} = og.Activation("{word}", {word}, derivative, breakpoints=({where:g},))\n'
            f"  … {key.rpartition('.')[2]}={word}",
        )  # fmt: skip
    digest = hashlib.sha256(np.round(values, 10).tobytes()).hexdigest()[:8]
    note = f"derivative by numeric differentiation, two step sizes agree to {gap.max():.0e}"
    return f"{word}-{digest}", function, Differences(function), note


def _values(function: Any, given: str, word: str, key: str) -> Array:
    """On the grid, as floats; a function that does not take arrays is refused with advice."""
    try:
        values = np.asarray(function(_GRID), dtype=float)
    except Exception as error:  # whatever somebody's function raises
        raise SpecError.of(
            key, given, f"must take a NumPy array and return one ({type(error).__name__}: {error})",
            f"For example np.vectorize({word})",
        ) from None  # fmt: skip
    if values.shape != _GRID.shape or not np.isfinite(values).all():
        raise SpecError.of(
            key, given,
            f"must return a finite number for each entry of an array, here for −{_REACH:g} to "
            f"{_REACH:g}; it returned shape {values.shape}"
            + " with infinite or undefined values" * (not np.isfinite(values).all()),
            f"For example np.vectorize({word})" if values.shape != _GRID.shape else "",
        )  # fmt: skip
    return values


def content_digest(functions: Iterable[Callable[..., Any] | None], settings: object) -> str:
    """SHA-256 (first 16 digits) of functions and of settings beside them.

    Of every function of x: its values on a fixed grid, bit by bit, and its source where Python has
    it. One of a shift and a scale is taken on a grid of both. Equal digests mean equal values on
    the grid and equal sources; last bits that differ between two machines make different digests.
    """
    found = hashlib.sha256(repr(settings).encode())
    for function in functions:
        found.update(b"|")
        if function is not None:
            found.update(_digits(function))
            found.update(_source(function).encode())
    return found.hexdigest()[:16]


def _digits(function: Callable[..., Any]) -> bytes:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if (required_arguments(function) or 1) < 2:  # ufuncs and functions of C: one of x
                values = function(_CONTENT_GRID.copy())
            else:
                shift, scale = np.broadcast_arrays(_CONTENT_GRID[::16, None], _SCALES)
                values = function(shift.copy(), scale.copy())
            return np.ascontiguousarray(np.asarray(values, dtype=float)).tobytes()
        except Exception as error:  # no values on the grid: identify the function by its source
            return type(error).__name__.encode()


def required_arguments(function: Callable[..., Any]) -> int | None:
    """How many positional arguments it must have; None where it does not say."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in known)


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        if code is None:
            return f"{type(function).__name__} {getattr(function, '__name__', '')}"
        return f"{code.co_code!r} {code.co_consts!r} {code.co_names!r}"
