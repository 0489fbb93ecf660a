"""The numbers of a solution that are averaged over draws of a problem, or interpolated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.task import Solution

NUMBERS = (
    "test_error", "train_error", "train_objective", "misclassification", "label_variance",
    "test_loss", "train_loss", "calibration",
)  # fmt: skip
ERRORS = [NUMBERS.index(name) for name in ("test_error", "train_error", "test_loss", "train_loss")]
CALIBRATION = NUMBERS.index("calibration")


def outputs_of(solution: Solution) -> Array:
    """The numbers that are averaged: errors, losses and Var y, then each component's errors."""
    found = [getattr(solution, name) for name in NUMBERS]
    return np.concatenate([
        [np.nan if value is None else value for value in found],
        solution.component_test, solution.component_train,
    ])  # fmt: skip


def with_ratios(solution: Solution, ratio: Array) -> Solution:
    """The solution with its outputs times these; those that are not finite count as one."""
    ratio = np.where(np.isfinite(ratio), ratio, 1.0)
    own, parts = ratio[: len(NUMBERS)], ratio[len(NUMBERS) :]
    values = {name: getattr(solution, name) for name in NUMBERS}
    changed = {
        name: value * float(factor)
        for (name, value), factor in zip(values.items(), own, strict=True)
        if value is not None
    }
    count = len(solution.component_test)
    return replace(
        solution, **changed, component_test=solution.component_test * parts[:count],
        component_train=solution.component_train * parts[count:],
    )  # fmt: skip
