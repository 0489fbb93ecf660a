"""One row of results: one model, one repetition, one point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onegrad.control_variates import Controls
from onegrad.shown import settings_text


@dataclass(frozen=True)
class Row:
    """The errors of one model on one repetition of one point.

    controls : control variates of the repetition, where they were asked for
    number : of the point in its experiment
    label_variance : Var y of this repetition's population, what the best constant costs; for a
        theory its mean over repetitions
    misclassification : P(sign f(x) ≠ y) where labels are ±1, else NaN
    test_loss, train_loss : mean of the readout's own loss, without penalty (`training.loss`)
    calibration : expected calibration error of 1/(1 + e^{−f}) in ten bins, for the logistic loss
    error_estimate : of a theory, relative; NaN where nothing was checked
    """

    point: dict[str, Any]
    model: str
    seed: int
    test_error: float = math.nan
    train_error: float = math.nan
    train_objective: float = math.nan
    seconds: float = 0.0
    status: str = "ok"
    error: str = ""
    controls: Controls = ()
    number: int = 0
    label_variance: float = math.nan
    misclassification: float = math.nan
    error_estimate: float = math.nan
    test_loss: float = math.nan
    train_loss: float = math.nan
    calibration: float = math.nan

    @property
    def relative_error(self) -> float:
        """Test error / Var y: 1 is what the best constant reaches; NaN for constant labels."""
        return self.test_error / self.label_variance if self.label_variance > 0 else math.nan

    def __repr__(self) -> str:
        where = f" at {settings_text(self.point)}" if self.point else ""
        found = f"test_error {self.test_error:.6g}, train_error {self.train_error:.6g}"
        outcome = found if self.status == "ok" else f"{self.status}: {self.error}"
        return f"<row {self.model}{where}, seed {self.seed}: {outcome}>"


QUANTITIES = ("test_error", "train_error", "train_objective")
# numbers of a row that not every problem has, with an estimate of their own
EXTRAS = ("misclassification", "test_loss", "train_loss", "calibration")
# numbers of a row that have a column in the store
STORED = (*QUANTITIES, "label_variance", *EXTRAS, "error_estimate")
