"""A mean and its standard error, plain or corrected by control variates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

FEWEST_LEFT = 5  # degrees of freedom that must remain after fitting control variates
FITTED_FROM = 16  # values from which factors are fitted although approximate ones are known
_FEWEST_KNOWN = 3  # values that known factors are used from


class Estimate(NamedTuple):
    """A mean and its standard error; `float()` of it is the mean."""

    mean: float
    standard_error: float

    @classmethod
    def of(
        cls,
        values: Iterable[float],
        controls: Sequence[Sequence[float]] = (),
        known: bool = False,
    ) -> Estimate:
        """Of independent values; with control variates, sequences of mean zero beside the values,
        the mean of `corrected_values` where that has few of them, else the intercept of the
        regression of the values on the controls; but the plain mean where the controls are not
        `usable`, or where that is negative and no value is.

        known : the controls are C and the label power of docs/control-variates.md, whose factors
            are about 1 and the mean
        """
        array = np.array(list(values), dtype=float)
        columns = usable(controls, known)
        if columns:
            if known and array.size < FITTED_FROM:
                mean, error = _plain(corrected_values(array, controls))
            else:
                mean, error = _intercept(array, np.column_stack(columns))
            # With heavy tails a regression can give a mean outside of the data
            if mean >= 0 or array.min() < 0:
                return cls(mean, error)
        if array.size < 2:
            return cls(float(array.mean()) if array.size else math.nan, math.nan)
        return cls(*_plain(array))

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        return f"Estimate({self})"

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.mean:.4g}"
        if self.standard_error == 0:
            return f"{self.mean:.5g}"
        if abs(self.mean) < 1e-4:
            return f"{self.mean:.3g} ± {self.standard_error:.1g}"
        digits = max(0, 1 - math.floor(math.log10(self.standard_error)))
        return f"{self.mean:.{digits}f} ± {self.standard_error:.{digits}f}"


def usable(controls: Sequence[Sequence[float]], known: bool = False) -> list[np.ndarray]:
    """The controls that vary, if fitting their factors leaves enough degrees of freedom, or if
    their factors are known."""
    columns = [np.array(control, dtype=float) for control in controls if len(control)]
    varying = [c for c in columns if np.ptp(c) > 1e-9 * np.abs(c).max()]
    if not varying:
        return []
    count = len(varying[0])
    enough = count - 1 - len(varying) >= FEWEST_LEFT or (known and count >= _FEWEST_KNOWN)
    return varying if enough else []


def corrected_values(values: np.ndarray, controls: Sequence[Sequence[float]]) -> np.ndarray:
    """v_i − C_i − r_i·v̄_{−i}: C has the factor 1, the relative label power r the mean of the other
    values as its factor.

    Of mean E v exactly, as the other values are independent of r_i; and no factor is fitted.
    """
    first, *power = (np.array(control, dtype=float) for control in controls)
    rest = values - first
    for relative in power:
        rest = rest - relative * (values.sum() - values) / (len(values) - 1)
    return np.asarray(rest)


def least_squares(
    design: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients, the matrix that makes them of the values, and the residuals."""
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ values
    return coefficients, inverse, values - design @ coefficients


def _plain(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def _intercept(values: np.ndarray, controls: np.ndarray) -> tuple[float, float]:
    """Of the regression of `values` on the columns of `controls`, with its standard error."""
    design = np.column_stack([np.ones(len(values)), controls / np.std(controls, axis=0)])
    factors, inverse, rest = least_squares(design, values)
    variance = float(rest @ rest) / (len(values) - design.shape[1])
    return float(factors[0]), math.sqrt(variance * float(inverse[0] @ inverse[0]))
