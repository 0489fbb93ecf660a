"""One forecast."""

from __future__ import annotations

import math
from dataclasses import dataclass

FARTHEST = 16  # times the rows that were fitted to; beyond, the error bar is not checked


@dataclass(frozen=True)
class CurvePoint:
    """The error at a number of rows: relative, that is over the error of the best constant.

    low, high : two standard deviations to either side
    theory, power_law : the theory without an anchor, and a power law through the measured errors
    accuracy, accuracy_low, accuracy_high : the share of right classes with it; NaN for numbers
    checked : whether the error bar was checked so far from the rows at hand (up to 16 times)
    """

    rows: int
    error: float
    low: float
    high: float
    theory: float
    power_law: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    checked: bool

    @property
    def r2(self) -> float:
        """Share of the variance that is explained, 1 − error."""
        return 1 - self.error

    def __repr__(self) -> str:
        text = f"{self.rows:,} rows: relative error {self.error:.3g}"
        text += f" ({self.low:.3g} to {self.high:.3g})"
        if math.isfinite(self.accuracy):
            text += f", accuracy {self.accuracy:.1%}"
            text += f" ({self.accuracy_low:.1%} to {self.accuracy_high:.1%})"
        return text + ("" if self.checked else f"; beyond {FARTHEST} × the rows at hand, unchecked")
