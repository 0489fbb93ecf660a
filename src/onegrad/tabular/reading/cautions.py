"""What a careful colleague would ask before believing any score on a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from onegrad.compute.backend import Array
from onegrad.tabular.estimators.clipping import bounds_of

_LEAK = 0.9995  # R² of a linear fit from which on the label follows from the columns
_MOST_LEAK = 5000, 200  # rows and columns examined for a leak
_NEARLY_ALL = 0.9  # share of the rows in one class
_COPIES = 0.02  # share of the rows that are copies
_FAR, _LEAST_FAR = 10.0, 3  # robust standard deviations that make a tail, rows out there
_DIGITS = 0.8  # share of numbers in a text column from which it is warned of


def cautions(
    x: Array, y: np.ndarray, names: Sequence[str], label: str, guessed: bool
) -> tuple[str, ...]:
    """guessed : whether the task was seen by itself"""
    found = [_leak(x, y, names, label), _count(y, label, guessed), _one_class(y), _copies(x, y)]
    return tuple(text for text in found if text)


def time_caution(dates: Sequence[str]) -> str:
    if not dates:
        return ""
    return (
        f"Rows have dates ({', '.join(dates[:3])}), and splits at random judge earlier rows by "
        f"fits to later ones. If the model is to predict later rows, use --time {dates[0]}."
    )


def text_caution(name: str, cells: np.ndarray) -> str:
    """Of a column that is left out as text although its cells have numbers."""
    with_digits = [cell for cell in cells.tolist() if re.search(r"\d", cell)]
    if len(with_digits) < _DIGITS * max(len(cells), 1):
        return ""
    if not all(re.fullmatch(r"\D{0,8}[\d.,' ]+\D{0,12}\d?", cell) for cell in with_digits[:200]):
        return ""
    return (
        f"“{name}” was left out as text, but its cells have numbers (“{with_digits[0]}”): write "
        "them as plain numbers if they matter."
    )


def _numbers(y: np.ndarray) -> Array | None:
    """Labels as numbers; two classes as 0 and 1; None for other texts."""
    if y.dtype.kind == "f":
        return y
    values, codes = np.unique(y, return_inverse=True)
    if len(values) == 2:
        return codes.astype(float)
    try:
        return y.astype(float)
    except ValueError:
        return None


def _leak(x: Array, y: np.ndarray, names: Sequence[str], label: str) -> str:
    """The label as a sum of columns, by least squares."""
    target = _numbers(y)
    if target is None or len(y) < 3 * x.shape[1] or x.shape[1] > _MOST_LEAK[1]:
        return ""
    x, target = x[: _MOST_LEAK[0]], target[: _MOST_LEAK[0]]
    spread = x.std(axis=0)
    standard = (x - x.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    left = target - target.mean()
    if not left.any():
        return ""
    slopes = np.linalg.lstsq(standard, left, rcond=1e-10)[0]
    rest = left - standard @ slopes
    if rest @ rest > (1 - _LEAK) * (left @ left):
        return ""
    order = np.argsort(-np.abs(slopes))
    used = order[np.abs(slopes[order]) > 0.05 * np.abs(slopes).max()]
    shown = ", ".join(names[i] for i in used[:5]) + (" and others" if len(used) > 5 else "")
    what = "a copy of" if len(used) == 1 else "a sum of"
    return (
        f"“{label}” is {what} {shown}, up to factors: leave out what is not known beforehand, or "
        "every score is too good."
    )


def _count(y: np.ndarray, label: str, guessed: bool) -> str:
    if not guessed or y.dtype.kind == "f":
        return ""
    try:
        values = np.unique(y.astype(float))
    except ValueError:
        return ""
    if len(values) < 4 or values.min() < 0 or np.any(np.diff(values) > 2):
        return ""
    return (
        f"“{label}” has whole numbers from {values.min():g} to {values.max():g}, taken for "
        f"{len(values)} classes. If they are counts or grades, use --task regression."
    )


def _one_class(y: np.ndarray) -> str:
    if y.dtype.kind == "f":
        return ""
    values, counts = np.unique(y, return_counts=True)
    share = counts.max() / counts.sum()
    if share < _NEARLY_ALL:
        return ""
    return (
        f"{share:.1%} of the rows are of class “{values[counts.argmax()]}”: always saying so is "
        f"right that often, and {counts.sum() - counts.max():,} rows are all there is to learn the "
        "rest from."
    )


def _copies(x: Array, y: np.ndarray) -> str:
    """Rows with equal inputs, where their labels agree more than half of the way from chance to
    always. Coarse columns have equal inputs by chance, and then labels differ."""
    groups = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(groups, kind="stable")
    equal = groups[order][1:] == groups[order][:-1]
    agree = equal & (y[order][1:] == y[order][:-1])
    chance = np.sum((np.unique(y, return_counts=True)[1] / len(y)) ** 2)
    copies = int(agree.sum())
    if copies < _COPIES * len(x) or copies / equal.sum() - chance < (1 - chance) / 2:
        return ""
    return (
        f"{copies:,} rows ({copies / len(x):.0%}) are copies of others, label included. Copies on "
        "both sides of a split flatter every score: drop them unless they are separate "
        "observations."
    )


def heavy_tails(x: Array) -> np.ndarray:
    """Columns in which several rows are ten robust standard deviations from the median."""
    low, high = bounds_of(x, np.ones(len(x)), _FAR)
    far = ((x < low) | (x > high)).sum(axis=0)
    number = [len(np.unique(column)) > 2 for column in x.T]  # two values have no tail
    return np.flatnonzero((far >= _LEAST_FAR) & number)


def label_tail(y: Array) -> tuple[int, float]:
    """Numbers ten robust standard deviations from their median: how many, and their share of the
    variance; (0, 0) if they are too few to make a tail."""
    low, high = bounds_of(y[:, None], np.ones(len(y)), _FAR)
    far = (y < low) | (y > high)
    if far.sum() < _LEAST_FAR:
        return 0, 0.0
    squares = (y - y.mean()) ** 2
    return int(far.sum()), float(squares[far].sum() / squares.sum())
