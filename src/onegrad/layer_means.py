"""Means of errors over first layers that were drawn, and how well they are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.layer_study import LayerErrors
from onegrad.theory.layers.matrix_errors import MatrixErrors

_SMALL_LOSS = 0.1  # of the test loss: below, a training loss is compared with that
_OTHER_LAYERS = 0.2  # of what rough errors of a layer are off by: how much that may scatter
_LITTLE = 0.5  # of another error, or of the accuracy, that which may be left open
_BESIDE = 0.1  # of what rules and sizes leave open: scatter, and ratios, beside it


def over_layers(
    found: Sequence[LayerErrors], rough: Sequence[MatrixErrors] = ()
) -> tuple[Array, Array]:
    """Means of the three errors and of test and training loss, and their standard errors, 0 for a
    single layer.

    Where more layers are known roughly, by errors c instead of f,

        E f ≈ (Σ f/Σ c over those known both ways) · mean of all c

    with the relative variances of the mean of c and of the ratio (`_ratio_errors`).
    """
    values = _numbers(found)
    mean, spread = values.mean(axis=0), _relative_error(values)
    if len(rough) > len(found):
        c = _rough_numbers(rough)
        spread = np.hypot(_relative_error(c), _ratio_errors(values, c))
        mean = mean * c.mean(axis=0) / c[: len(found)].mean(axis=0)
    return mean, np.abs(mean) * spread


def scatter_of(found: Sequence[LayerErrors], rough: Sequence[MatrixErrors] = ()) -> float:
    """Standard error of the mean over first layers, relative, the largest of test and train and of
    the readout's own loss there; a training loss of next to nothing in units of the test loss."""
    mean, se = over_layers(found, rough)
    least = np.full(len(mean), 1e-300)
    least[4] = _SMALL_LOSS * mean[3]
    kept = [0, 1, 3, 4]
    return float(np.max(se[kept] / np.maximum(mean, least)[kept]))


def settled(found: Sequence[LayerErrors], rough: Sequence[MatrixErrors], accuracy: float) -> bool:
    """Whether more layers would tell nothing: their mean is known to half of the accuracy, or to
    the accuracy where rules and sizes leave far more open; or more rough ones are drawn, and their
    own mean is known better than the ratio of errors to them."""
    if len(rough) > len(found):
        c = _rough_numbers(rough)
        ratio = _ratio_errors(_numbers(found), c)
        if np.all((_relative_error(c) <= _LITTLE * ratio)[:2]):
            return True
    beside = min(accuracy, _BESIDE * _open(found))
    return scatter_of(found, rough) <= max(_LITTLE * accuracy, beside)


def _open(found: Sequence[LayerErrors]) -> float:
    """What rules and sizes leave open, relative."""
    return math.hypot(found[0].by_nodes, found[0].by_size)


def tells(found: Sequence[LayerErrors], rough: Sequence[MatrixErrors], accuracy: float) -> bool:
    """Whether rough errors may stand for the layers that follow: their ratio to errors is known
    better than the accuracy asked for, than their own mean, or than what is open anyway."""
    if not (found and rough):
        return False
    c = _rough_numbers(rough)
    least = max(accuracy, _BESIDE * _open(found))
    enough = np.maximum(least, _LITTLE * _relative_error(c))
    return bool(np.all((_ratio_errors(_numbers(found), c) <= enough)[:2]))


def _ratio_errors(values: Array, c: Array) -> Array:
    """Of the ratio of errors to rough ones: its scatter, and from so few no less than a part of
    its distance from one."""
    ratios = values / c[: len(values)]
    least = _OTHER_LAYERS * np.abs(ratios.mean(axis=0) - 1) / len(values)
    return np.maximum(_relative_error(ratios), least)


def _numbers(found: Sequence[LayerErrors]) -> Array:
    return np.array([(*one.errors, one.test_loss, one.train_loss) for one in found])


def _rough_numbers(rough: Sequence[MatrixErrors]) -> Array:
    return np.array([(*one, one.test_error, one.train_error) for one in rough])


def _relative_error(values: Array) -> Array:
    """Standard error of the mean of rows, in units of it; 0 for one row."""
    draws = len(values)
    if draws == 1:
        return np.zeros(values.shape[1])
    size = np.maximum(np.abs(values.mean(axis=0)), 1e-300)
    return np.asarray(values.std(axis=0, ddof=1) / size / math.sqrt(draws))
