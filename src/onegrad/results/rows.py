"""One row of results: one model, one repetition, one point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onegrad.simulate.control_variates import Controls
from onegrad.text.display import settings_text


@dataclass(frozen=True)
class Row:
    """The errors of one model on one repetition of one point.

    controls : control variates of the repetition, where they were asked for
    number : number of the point in its experiment
    label_variance : Var y of this repetition's population, the error of the best constant; for a
        theory its mean over repetitions
    misclassification : P(sign f(x) ≠ y) where labels are ±1, else NaN
    test_loss, train_loss : mean of the readout's own loss, without penalty (`training.loss`)
    calibration : expected calibration error of 1/(1 + e^{−f}) in ten bins, for the logistic loss
    error_estimate : relative, of a theory; NaN where there is none
    spectrum : the record of a spectrum (`SpectrumReport.record`), whose rows have no errors
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
    spectrum: Mapping[str, Any] | None = None

    @property
    def relative_error(self) -> float:
        """Test error / Var y: 1 is what the best constant reaches; NaN for constant labels."""
        return self.test_error / self.label_variance if self.label_variance > 0 else math.nan

    def spectrum_columns(self) -> dict[str, float]:
        """SPECTRUM_COLUMNS of a spectrum; NaN for other rows, and where no limit is known."""
        numbers = {} if self.spectrum is None else self.spectrum["numbers"]
        columns = {name: numbers.get(name) for name in SPECTRUM_COLUMNS}
        return {name: math.nan if v is None else float(v) for name, v in columns.items()}

    def __repr__(self) -> str:
        where = f" at {settings_text(self.point)}" if self.point else ""
        if self.spectrum is not None:
            counts = (self.spectrum_columns()[f"{m}_outliers"] for m in ("weight", "feature"))
            weights, features = ("?" if math.isnan(c) else f"{c:.0f}" for c in counts)
            return f"<row {self.model}{where}: outliers {weights} (weights), {features} (features)>"
        text = f"test_error {self.test_error:.6g}, train_error {self.train_error:.6g}"
        outcome = text if self.status == "ok" else f"{self.status}: {self.error}"
        return f"<row {self.model}{where}, seed {self.seed}: {outcome}>"


def possible(row: Row) -> Row:
    """The row, or as failed what cannot be: an error that is not a number, or infinite."""
    numbers = (row.test_error, row.train_error, row.train_objective, row.test_loss, row.train_loss)
    if row.status != "ok" or not (
        any(map(math.isnan, numbers[:2])) or any(map(math.isinf, numbers))
    ):
        return row
    why = "its errors are beyond double precision: take a smaller step or a larger ridge"
    return Row(row.point, row.model, row.seed, math.nan, seconds=row.seconds, status="failed",
               error=why, number=row.number)  # fmt: skip


QUANTITIES = ("test_error", "train_error", "train_objective")
# numbers of a row that not every problem has, with an estimate of their own
EXTRAS = ("misclassification", "test_loss", "train_loss", "calibration")
# numbers of a row that have a column in the store
STORED = (*QUANTITIES, "label_variance", *EXTRAS, "error_estimate")
SPECTRUM = "spectrum"  # stands for the model in the rows of spectra
# of the weights and of the features: where the bulk ends, from where on outliers are counted, how
# many there are and how many in the limit, the largest singular value, that of the limit (an
# outlier), Kolmogorov distance to the limiting bulk
SPECTRUM_NUMBERS = (
    "edge", "threshold", "outliers", "predicted_outliers", "largest", "predicted_largest",
    "distance",
)  # fmt: skip
SPECTRUM_COLUMNS = tuple(f"{m}_{name}" for m in ("weight", "feature") for name in SPECTRUM_NUMBERS)
