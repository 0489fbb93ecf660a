"""A mean and its standard error, plain or corrected by control variates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

FEWEST_LEFT = 5  # degrees of freedom that fitting the factors of control variates has to leave


class Estimate(NamedTuple):
    """A mean and its standard error; `float()` of it is the mean."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, values: Iterable[float], controls: Sequence[Sequence[float]] = ()) -> Estimate:
        """Of independent values; with control variates, sequences of mean zero beside the values,
        the intercept of the regression of the values on those that are `usable`; but the plain mean
        where that is negative and no value is."""
        array = np.array(list(values), dtype=float)
        columns = usable(controls)
        if columns:
            mean, error = _intercept(array, np.column_stack(columns))
            if mean >= 0 or array.min() < 0:  # a regression may leave the range of heavy tails
                return cls(mean, error)
        if array.size < 2:
            return cls(float(array.mean()) if array.size else math.nan, math.nan)
        return cls(float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size)))

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


def usable(controls: Sequence[Sequence[float]]) -> list[np.ndarray]:
    """The controls that vary, if fitting their factors leaves enough degrees of freedom."""
    columns = [np.array(control, dtype=float) for control in controls if len(control)]
    varying = [c for c in columns if np.ptp(c) > 1e-9 * np.abs(c).max()]
    enough = varying and len(varying[0]) - 1 - len(varying) >= FEWEST_LEFT
    return varying if enough else []


def _intercept(values: np.ndarray, controls: np.ndarray) -> tuple[float, float]:
    """Of the regression of `values` on the columns of `controls`, with its standard error."""
    design = np.column_stack([np.ones(len(values)), controls / np.std(controls, axis=0)])
    inverse = np.linalg.pinv(design)
    factors = inverse @ values
    rest = values - design @ factors
    variance = float(rest @ rest) / (len(values) - design.shape[1])
    return float(factors[0]), math.sqrt(variance * float(inverse[0] @ inverse[0]))
