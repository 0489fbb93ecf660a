"""What may be given to the estimators, and what is said about anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from onegrad.compute.backend import Array
from onegrad.errors import SpecError, did_you_mean

Choice = float | Sequence[float] | Literal["auto"]
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def row_weights(sample_weight: ArrayLike | None, x: Any) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(
        _check_sample_weight(sample_weight, x, dtype=float, ensure_non_negative=True)
    )
    if not weight.any():
        raise SpecError.of(
            "sample_weight", 0.0, "is zero for every row", "Give some rows a positive weight"
        )
    return weight


def class_weights(
    wanted: ClassWeight, classes: np.ndarray, codes: np.ndarray, weight: Array | None
) -> Array | None:
    """Weights of the rows times weights of their classes; balanced: equal sums per class."""
    if wanted is None:
        return weight
    rows = np.ones(len(codes)) if weight is None else weight
    if isinstance(wanted, str) and wanted == "balanced":
        sums = np.bincount(codes, rows, minlength=len(classes))
        factors = rows.sum() / (np.count_nonzero(sums) * np.where(sums > 0, sums, 1.0))
    elif isinstance(wanted, Mapping):
        known = classes.tolist()
        for name, value in wanted.items():
            if name not in known:
                raise SpecError.of(
                    "class_weight", name, f"must be from {known[:20]}",
                    did_you_mean(str(name), [str(one) for one in known]),
                )  # fmt: skip
            if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
                raise SpecError.of("class_weight", value, "must be numbers ≥ 0")
        factors = np.array([float(wanted.get(name, 1.0)) for name in known])
    else:
        raise SpecError.of(
            "class_weight", wanted, 'must be None, "balanced" or a mapping from class to weight',
            'Try "balanced"',
        )  # fmt: skip
    weighted = rows * factors[codes]
    if not weighted.any():
        raise SpecError.of("class_weight", wanted, "leaves no row with a positive weight")
    return np.asarray(weighted)


def whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SpecError.of(key, value, "must be a whole number ≥ 1")
    return int(value)


def positive(key: str, value: object, default: str = "The default is 1; inf is allowed") -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0:
        raise SpecError.of(key, value, "must be a number > 0", default)
    return float(value)


def candidates(key: str, value: Choice, least: float) -> Array | None:
    """The numbers to choose from, in the order given; None for the automatic ones."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if (
        numbers.ndim != 1
        or not len(numbers)
        or not np.all((numbers >= least) & np.isfinite(numbers))
    ):
        raise SpecError.of(
            key, value, f'must be "auto", a number {">" if least else "≥"} 0, or a list of such',
            'With "auto" it is chosen by leave-one-out',
        )  # fmt: skip
    return numbers
