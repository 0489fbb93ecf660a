"""Columns as they were found in a file, made into finite inputs and labels, and what was done."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import SpecError
from onegrad.tabular.reading.cautions import cautions, text_caution, time_caution
from onegrad.tabular.reading.texts import numbers_in_texts

Task = Literal["regression", "classification"]

FEWEST_ROWS = 60
_MOST_CATEGORIES = 20  # values of a category that have a column of their own
_MOST_SHARE = 0.3  # distinct values per row from which on texts are free
_OTHER = "(others)"
_RARE = f"more than {_MOST_CATEGORIES} categories, the rarer ones taken together"
LARGEST = 1e100  # beyond, squares overflow
_EXTREME = "very large or small numbers, taken in units of the largest"
_CATEGORIES = "categories, made into columns of 0 and 1"
_NONE = "texts with “None” as a value of its own"
_MOST_CLASSES = 50
_FEWEST_OTHERS = 5  # rows outside the largest class
_FREE = "free text, most values of which occur once or twice"
_COUNTS = "it only counts the rows"
_INDEX_NAMES = frozenset({"", "id", "index", "row", "unnamed: 0"})
_GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


@dataclass(frozen=True)
class Table:
    """Finite inputs (N × n), labels (numbers, or the classes' names as text), and what was done.

    total : rows of the file, of which these may be a random part
    cautions : what to check before believing a score
    """

    x: Array
    y: np.ndarray
    names: tuple[str, ...]
    label: str
    task: Task
    notes: tuple[str, ...]
    total: int = 0
    cautions: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, largest first; empty for regression."""
        if self.task == "regression":
            return ()
        values, counts = np.unique(self.y, return_counts=True)
        return tuple(str(values[i]) for i in np.argsort(-counts, kind="stable"))


@dataclass(frozen=True)
class Raw:
    """Columns as they were found, each an array of numbers (NaN: a gap) or of texts ('': a gap);
    total: rows of the file, of which these may be a part (0: these are all)."""

    columns: dict[str, np.ndarray]
    label: str
    notes: tuple[str, ...] = ()
    total: int = 0


def number_in(cell: object) -> float | None:
    """The number that a cell holds; NaN for a gap; None if it is a text."""
    if cell is None:
        return math.nan
    if isinstance(cell, int | float):
        try:
            return float(cell) if math.isfinite(cell) else math.nan
        except OverflowError:  # a whole number of more than 308 digits
            return math.nan
    text = str(cell).strip().replace("−", "-")
    if text.lower() in _GAPS:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else math.nan


def column_of(cells: list[object] | list[str]) -> np.ndarray:
    """Numbers if every cell is one or a gap, otherwise texts."""
    values = [number_in(cell) for cell in cells]
    if all(value is not None for value in values):
        return np.array(values, dtype=float)
    # in columns of texts "None" is a value (no pool, no garage), not a gap
    gaps = [
        value is not None and math.isnan(value) and str(cell).strip() != "None"
        for cell, value in zip(cells, values, strict=True)
    ]
    texts = [
        "" if gap or cell is None else str(cell).strip()
        for cell, gap in zip(cells, gaps, strict=True)
    ]
    return np.array(texts)


def _is_gap(column: np.ndarray) -> np.ndarray:
    return np.isnan(column) if column.dtype.kind == "f" else column == ""


def cleaned(raw: Raw, task: str | None, time: str | None = None) -> Table:
    """Inputs without gaps, texts and useless columns; rows without a label are left out.

    time : the column of the order of time, which stays even if it only counts the rows
    """
    notes = list(raw.notes)
    labels = raw.columns[raw.label]
    amounts = numbers_in_texts(labels) if labels.dtype.kind != "f" else None
    if amounts is not None:
        labels = amounts[0]
        notes.append(f"The labels are {amounts[1]}.")
    known = ~_is_gap(labels)
    if known.sum() < FEWEST_ROWS:
        raise SpecError.of(
            "data", f"{known.sum()} rows", f"must have at least {FEWEST_ROWS} rows with a label: "
            "a fifth is held out, and parts of the others are fitted", "Collect more samples",
        )  # fmt: skip
    if not known.all():
        notes.append(f"{_plural(int((~known).sum()), 'row')} without a label left out.")
    y, kind = labels_of(labels[known], raw.label, task)
    names: list[str] = []
    columns: list[np.ndarray] = []
    dropped: dict[str, list[str]] = {}
    done: dict[str, list[str]] = {}
    told: list[str] = []
    filled = unknown = 0
    for name, column in raw.columns.items():
        if name == raw.label:
            continue
        column = column[known]
        read = numbers_in_texts(column) if column.dtype.kind != "f" else None
        if read is not None:
            strange = column[np.isnan(read[0]) & ~_is_gap(column)]
            if len(strange):
                some = f"“{strange[0]}” in {name} is no number"
                notes.append(f"{some}; {_plural(len(strange), 'such cell')} left empty.")
            column = read[0]
            done.setdefault(read[1], []).append(name)
        reason = _useless(name, column)
        dates = read is not None and read[1].startswith("dates")
        if reason and not (reason == _COUNTS and (dates or name == time)):
            dropped.setdefault(reason, []).append(name)
            if reason == _FREE:
                told.append(text_caution(name, column[~_is_gap(column)]))
            continue
        gaps = _is_gap(column)
        if column.dtype.kind == "f":
            filled += int(gaps.sum())
            largest = np.abs(column[~gaps]).max()
            if not 1 / LARGEST < largest < LARGEST:
                column = column / largest
                done.setdefault(_EXTREME, []).append(name)
        else:
            unknown += int(gaps.sum())
        if column.dtype.kind != "f" and len(np.unique(column[~gaps])) > _MOST_CATEGORIES:
            column = _common_values(column, gaps)
            done.setdefault(_RARE, []).append(name)
        elif column.dtype.kind != "f":
            done.setdefault(_CATEGORIES, []).append(name)
        if column.dtype.kind != "f" and "None" in column:
            done.setdefault(_NONE, []).append(name)
        for new_name, values in _numeric(name, column, gaps):
            names.append(new_name)
            columns.append(values)
    for what, which in done.items():
        notes.append(f"{_plural(len(which), 'column')} of {what}: {_some(which)}.")
    for reason, which in dropped.items():
        notes.append(f"{_plural(len(which), 'column')} left out, {reason}: {_some(which)}.")
    if filled:
        notes.append(f"{_plural(filled, 'gap')} filled with the column's median.")
    if unknown:
        notes.append(f"{_plural(unknown, 'gap')} in columns of texts: none of their values.")
    if not columns:
        why = "; ".join(f"{_some(which)}: {reason}" for reason, which in dropped.items())
        raise SpecError.of(
            "data", raw.label, f"no input column is left beside the labels ({why})",
            "Name the label column with --label",
        )  # fmt: skip
    x = np.column_stack(columns)
    days = [n for what, which in done.items() if what.startswith("dates") for n in which]
    told += [time_caution(days), *cautions(x, y, names, raw.label, task is None)]
    total = max(raw.total, len(y))
    said = tuple(text for text in told if text)
    return Table(x, y, tuple(names), raw.label, kind, tuple(notes), total, said)


def _useless(name: str, column: np.ndarray) -> str:
    gaps = _is_gap(column)
    if gaps.mean() > 0.5:
        return "more than half empty"
    values = column[~gaps]
    distinct = len(np.unique(values))
    if distinct < 2:
        return "constant"
    if column.dtype.kind != "f":
        free = distinct > _MOST_CATEGORIES and distinct > _MOST_SHARE * len(values)
        return _FREE * free
    return _COUNTS * _counts_rows(name, column)


def _common_values(column: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """The most frequent categories, and one for all others."""
    values, counts = np.unique(column[~gaps], return_counts=True)
    common = values[np.argsort(-counts, kind="stable")[: _MOST_CATEGORIES - 1]]
    return np.where(gaps | np.isin(column, common), column, _OTHER)


def _counts_rows(name: str, column: np.ndarray) -> bool:
    """Whole numbers, each once, that grow line by line or are called an index."""
    if len(np.unique(column)) < len(column) or np.any(column != np.round(column)):
        return False
    return name.lower() in _INDEX_NAMES or bool(np.all(np.diff(column) > 0))


def _numeric(name: str, column: np.ndarray, gaps: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The column with its gaps filled; a category becomes one 0/1 column for each value."""
    if column.dtype.kind == "f":
        yield name, np.where(gaps, np.median(column[~gaps]), column)
        return
    values = np.unique(column[~gaps])
    for value in values if gaps.any() else values[1:]:  # else the first follows from the others
        yield f"{name} = {value}", (column == value).astype(float)


def labels_of(labels: np.ndarray, name: str, task: str | None) -> tuple[np.ndarray, Task]:
    values = np.unique(labels)
    if len(values) < 2:
        raise SpecError.of(
            "label", name, f"has a single value ({values[0]}): there is nothing to learn",
            "Name the label column with --label",
        )  # fmt: skip
    text = labels.dtype.kind != "f"
    few = len(values) <= 2 or (
        len(values) <= 20 and not text and np.all(values == np.round(values))
    )
    guess: Task = "classification" if text or few else "regression"
    kind = cast(Task, task) if task else guess
    if kind == "regression" and text:
        raise SpecError.of(
            "task", "regression", f"needs numbers, and {name} holds texts such as {values[0]!r}",
            "Leave out --task, or name another label column",
        )  # fmt: skip
    if kind == "regression":
        largest = np.abs(labels).max()
        if not 1 / LARGEST < largest < LARGEST:
            raise SpecError.of(
                "label", f"{largest:g}", f"the largest must be from {1 / LARGEST:g} to "
                f"{LARGEST:g}", f"Give {name} in another unit",
            )  # fmt: skip
        return labels, kind
    if len(values) > _MOST_CLASSES:
        raise SpecError.of(
            "label", name, f"has {len(values)} classes; at most {_MOST_CLASSES} are handled",
            "Name another column with --label" if text else "Try --task regression",
        )  # fmt: skip
    counts = np.unique(labels, return_counts=True)[1]
    if (others := len(labels) - counts.max()) < _FEWEST_OTHERS:
        raise SpecError.of(
            "label", name, f"has {_plural(others, 'row')} outside its largest class; at least "
            f"{_FEWEST_OTHERS} are needed", "Collect more rows of the rare classes",
        )  # fmt: skip
    return (labels if text else np.array([f"{v:g}" for v in labels])), kind


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _some(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
