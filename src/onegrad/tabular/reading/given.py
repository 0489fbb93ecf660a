"""Arrays and data frames that are given in Python instead of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from onegrad.errors import SpecError
from onegrad.tabular.reading.table import FEWEST_ROWS, Raw, cleaned, column_of, labels_of


def cleaned_inputs(x: Any, y: Any) -> tuple[Any, np.ndarray, str]:
    """Inputs, labels and task; categories and gaps of a data frame are dealt with as in a file."""
    if not hasattr(x, "columns"):
        inputs, labels = plain_inputs(x, y)
        number = labels.dtype.kind in "fiub"
        return inputs, *labels_of(labels.astype(float if number else str), "y", None)
    columns = {str(name): column_of(list(x[name])) for name in x.columns}
    label = "y" if "y" not in columns else "the labels"
    table = cleaned(Raw(columns | {label: column_of(list(np.asarray(y)))}, label), None)
    return table.x, table.y, table.task


def plain_inputs(x: Any, y: Any) -> tuple[Any, np.ndarray]:
    """As they are, but lists as arrays and sparse inputs by rows; one finite label for each."""
    x = x if hasattr(x, "iloc") or not hasattr(x, "tocsr") else x.tocsr()
    x = x if hasattr(x, "shape") else np.asarray(x)
    count, labels = x.shape[0], np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != count:
        raise SpecError.of(
            "y", f"shape {labels.shape}", f"must be one label for each of {count} rows"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise SpecError.of("y", "NaN or inf", "must be finite", "Drop the rows without one")
    if count < FEWEST_ROWS:
        raise SpecError.of("X", f"{count} rows", f"must have at least {FEWEST_ROWS}")
    return x, labels
