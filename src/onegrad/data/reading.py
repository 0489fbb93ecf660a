"""Somebody's table, read with patience: gaps, texts and constant columns are dealt with and told.

`data.model = "file"` is strict, because an experiment must not guess. This reader is for a first
look at data (`onegrad analyze`): it does what a careful person would do, and says so.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, cast

import numpy as np

from onegrad.data.arrays import read_npz
from onegrad.errors import SpecError, did_you_mean
from onegrad.hermite import Array

Task = Literal["regression", "classification"]

FEWEST_ROWS = 60
_MOST_ROWS = 20_000  # rows kept for the analysis, drawn at random from a longer file
_MOST_CELLS = 40_000_000  # numbers kept: 320 MB
_MOST_COLUMNS = 20_000
_MOST_CATEGORIES = 20  # a text column with more values than this is not a category
_MOST_CLASSES = 50
_INDEX_NAMES = frozenset({"", "id", "index", "row", "unnamed: 0"})
_GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


@dataclass(frozen=True)
class Table:
    """Finite inputs (N × n), labels (numbers, or the classes' names as text), and what was done."""

    x: Array
    y: np.ndarray
    names: tuple[str, ...]
    label: str
    task: Task
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, largest first; empty for regression."""
        if self.task == "regression":
            return ()
        values, counts = np.unique(self.y, return_counts=True)
        return tuple(str(values[i]) for i in np.argsort(-counts, kind="stable"))


@dataclass(frozen=True)
class _Raw:
    """Columns as they were found, each an array of numbers (NaN: a gap) or of texts ('': a gap)."""

    columns: dict[str, np.ndarray]
    label: str
    notes: tuple[str, ...] = ()


def read_table(path: str | Path, label: str | None = None, task: str | None = None) -> Table:
    """A CSV, Parquet, NPZ (arrays x and y) or IDX file as inputs and labels.

    Of a long file a random part is kept (the same one each time), so that memory stays bounded:
    one pass over the file, O(rows kept × columns) numbers.
    """
    path = Path(path)
    if task not in (None, "regression", "classification"):
        raise SpecError.of(
            "task", task, "must be regression or classification",
            did_you_mean(task, ["regression", "classification"]) or "Leave out --task",
        )  # fmt: skip
    if not path.is_file():
        found = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise SpecError.of(
            "data", str(path), "no such file",
            did_you_mean(path.name, found) or "Give a CSV, Parquet, NPZ or IDX file",
        )  # fmt: skip
    name = path.name.lower()
    if name.endswith(".npz"):
        raw = _from_npz(path)
    elif name.endswith((".parquet", ".pq")):
        raw = _from_parquet(path, label)
    elif "-idx" in name or name.endswith((".idx", ".idx.gz")):
        raw = _from_idx(path)
    elif name.endswith((".csv", ".tsv", ".txt")):
        raw = _from_csv(path, label)
    else:
        raise SpecError.of(
            "data", str(path), "must be .csv, .tsv, .parquet, .npz or an IDX file",
            "Save the table as CSV with a header line",
        )  # fmt: skip
    return _cleaned(raw, task)


# --- the formats ------------------------------------------------------------------------


def _from_npz(path: Path) -> _Raw:
    x, y = read_npz(path)
    if x.ndim > 2 and len(x):
        x = x.reshape(len(x), -1)
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y):
        raise SpecError.of(
            "data", f"x {x.shape}, y {y.shape}", "x must have one row for each entry of y",
            "Write it with numpy.savez(path, x=x, y=y)",
        )  # fmt: skip
    keep, notes = _part(len(x), x.shape[1])
    return _Raw(_split(x[keep]) | {"y": _column(y[keep].tolist())}, "y", notes)


def _from_idx(path: Path) -> _Raw:
    from onegrad.data.idx import read_idx

    if "images" not in path.name:
        raise SpecError.of(
            "data", str(path), 'the name of an IDX file of inputs must contain "images"',
            "For example train-images-idx3-ubyte.gz, with train-labels-idx1-ubyte.gz beside it",
        )  # fmt: skip
    other = path.name.replace("images", "labels").replace("idx3", "idx1")
    if not (path.parent / other).is_file():
        raise SpecError.of(
            "data", str(path), f"needs its labels in {other} beside it", "Copy that file there"
        )
    images, labels = read_idx(path, "data"), read_idx(path.parent / other, "data")
    if labels.ndim != 1 or len(images) != len(labels):
        raise SpecError.of(
            "data", str(path), f"{len(images)} images but labels of shape {labels.shape}",
            "Take both files from the same data set",
        )  # fmt: skip
    flat = images.reshape(len(images), -1)
    keep, notes = _part(len(flat), flat.shape[1])
    columns = _split(flat[keep].astype(float))
    return _Raw(columns | {"class": labels[keep].astype(str)}, "class", notes)


def _from_parquet(path: Path, label: str | None) -> _Raw:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise SpecError.of(
            "data", str(path), "reading Parquet needs pyarrow",
            'Install it with pip install "onegrad[frames]", or save the table as CSV',
        ) from None  # fmt: skip
    try:
        file = parquet.ParquetFile(path)
        names = [str(name) for name in file.schema_arrow.names]
        chosen = _label_column(names, label, path)
        rows = file.metadata.num_rows
        keep, notes = _part(rows, len(names))
        parts: dict[str, list[object]] = {name: [] for name in names}
        start = 0
        for batch in file.iter_batches(batch_size=65_536):
            inside = keep[(keep >= start) & (keep < start + batch.num_rows)] - start
            kept = batch.take(inside)
            for name, column in zip(names, kept.columns, strict=True):
                parts[name] += column.to_pylist()
            start += batch.num_rows
    except SpecError:
        raise
    except Exception as error:  # pyarrow has many kinds of its own
        raise SpecError.of(
            "data", str(path), f"cannot be read as Parquet ({str(error)[:80]})",
            "Check the file, or save the table as CSV",
        ) from None  # fmt: skip
    return _Raw({name: _column(values) for name, values in parts.items()}, chosen, notes)


def _from_csv(path: Path, label: str | None) -> _Raw:
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as handle:
            lines = _rows(handle)
            header = [name.strip().lstrip("\ufeff") for name in next(lines, [])]
            notes: tuple[str, ...] = ()
            if header and all(_number(name) is not None for name in header):
                lines = chain([header], lines)
                header = [f"column {i + 1}" for i in range(len(header))]
                notes = ("The file has no header line; columns were numbered.",)
            if len(header) < 2:
                raise SpecError.of(
                    "data", str(path), "must have at least one input column and the labels",
                    "Separate the columns by commas, semicolons or tabs",
                )  # fmt: skip
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise SpecError.of(
                    "data", twice, "names two columns", "Give every column its own name"
                )
            chosen = _label_column(header, label, path)
            kept, total = _reservoir(lines, len(header), path)
    except (OSError, csv.Error) as error:
        raise SpecError.of(
            "data", str(path), f"cannot be read as CSV ({error})", "Check the file's contents"
        ) from None
    if total > len(kept):
        notes += (_sampled(len(kept), total),)
    columns = {name: _column([row[i] for row in kept]) for i, name in enumerate(header)}
    return _Raw(columns, chosen, notes)


def _rows(handle: Iterable[str]) -> Iterator[list[str]]:
    """Cells of each line that is not empty; the separator is the one that the first line shows."""
    lines = iter(handle)
    first = next(lines, "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=separator)
    return (row for row in reader if any(cell.strip() for cell in row))


def _reservoir(lines: Iterator[list[str]], width: int, path: Path) -> tuple[list[list[str]], int]:
    """At most so many lines, each equally likely, in one pass; and how many there were."""
    most = _rows_kept(width)
    rng = np.random.default_rng(0)
    kept: list[list[str]] = []
    total = 0
    for row in lines:
        total += 1
        if len(row) != width:
            raise SpecError.of(
                "data", str(path), f"line {total + 1} has {len(row)} cells instead of {width}",
                "Check that line, and quote texts that contain the separator",
            )  # fmt: skip
        if len(kept) < most:
            kept.append(row)
        elif (place := int(rng.integers(total))) < most:
            kept[place] = row
    return kept, total


def _rows_kept(columns: int) -> int:
    if columns > _MOST_COLUMNS:
        raise SpecError.of(
            "data", f"{columns} columns", f"must have at most {_MOST_COLUMNS} columns",
            "Keep the informative ones, or project the data first",
        )  # fmt: skip
    return min(_MOST_ROWS, _MOST_CELLS // max(columns, 1))


def _part(rows: int, columns: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which rows of a file that can be indexed are kept, in their order."""
    most = _rows_kept(columns)
    if rows <= most:
        return np.arange(rows), ()
    chosen = np.random.default_rng(0).choice(rows, most, replace=False)
    return np.sort(chosen), (_sampled(most, rows),)


def _sampled(kept: int, total: int) -> str:
    return f"Of {total:,} rows {kept:,} were drawn at random for this report."


def _label_column(names: list[str], label: str | None, path: Path) -> str:
    if label is None:
        return names[-1]
    if label not in names:
        raise SpecError.of(
            "label", label, f"must be a column of {path.name}: {', '.join(names[:12])}",
            did_you_mean(label, names),
        )  # fmt: skip
    return label


def _split(x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{i}": x[:, i] for i in range(x.shape[1])}


# --- from cells to numbers --------------------------------------------------------------


def _number(cell: object) -> float | None:
    """The number that a cell holds; NaN for a gap; None if it is a text."""
    if cell is None:
        return math.nan
    if isinstance(cell, int | float):
        return float(cell) if math.isfinite(cell) else math.nan
    text = str(cell).strip()
    if text.lower() in _GAPS:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else math.nan


def _column(cells: list[object] | list[str]) -> np.ndarray:
    """Numbers if every cell is one or a gap, otherwise texts."""
    values = [_number(cell) for cell in cells]
    if all(value is not None for value in values):
        return np.array(values, dtype=float)
    gaps = [value is not None and math.isnan(value) for value in values]
    texts = ["" if gap else str(cell).strip() for cell, gap in zip(cells, gaps, strict=True)]
    return np.array(texts)


def _is_gap(column: np.ndarray) -> np.ndarray:
    return np.isnan(column) if column.dtype.kind == "f" else column == ""


def _cleaned(raw: _Raw, task: str | None) -> Table:
    notes = list(raw.notes)
    labels = raw.columns[raw.label]
    known = ~_is_gap(labels)
    if not known.all():
        notes.append(f"{_plural(int((~known).sum()), 'row')} without a label left out.")
    y, kind = _labels(labels[known], raw.label, task)
    names: list[str] = []
    columns: list[np.ndarray] = []
    dropped: dict[str, list[str]] = {}
    filled = 0
    for name, column in raw.columns.items():
        if name == raw.label:
            continue
        column = column[known]
        reason = _useless(name, column)
        if reason:
            dropped.setdefault(reason, []).append(name)
            continue
        gaps = _is_gap(column)
        filled += int(gaps.sum())
        for new_name, values in _numeric(name, column, gaps):
            names.append(new_name)
            columns.append(values)
    for reason, which in dropped.items():
        notes.append(f"{_plural(len(which), 'column')} left out, {reason}: {_some(which)}.")
    if filled:
        notes.append(f"{_plural(filled, 'gap')} filled with the column's median.")
    if not columns:
        raise SpecError.of(
            "data", raw.label, "no input column is left beside the labels: all are constant, "
            "mostly empty or free text", "Name the label column with --label",
        )  # fmt: skip
    if len(y) < FEWEST_ROWS:
        raise SpecError.of(
            "data", f"{len(y)} rows", f"must have at least {FEWEST_ROWS} rows with a label: they "
            "are split into three parts", "Collect more samples",
        )  # fmt: skip
    return Table(np.column_stack(columns), y, tuple(names), raw.label, kind, tuple(notes))


def _useless(name: str, column: np.ndarray) -> str:
    gaps = _is_gap(column)
    if gaps.mean() > 0.5:
        return "more than half empty"
    values = column[~gaps]
    distinct = len(np.unique(values))
    if distinct < 2:
        return "constant"
    if column.dtype.kind != "f":
        return f"free text with more than {_MOST_CATEGORIES} values" * (distinct > _MOST_CATEGORIES)
    return "it only counts the rows" * _counts_rows(name, column)


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
    for value in np.unique(column[~gaps])[1:]:  # the first follows from the others
        yield f"{name} = {value}", (column == value).astype(float)


def _labels(labels: np.ndarray, name: str, task: str | None) -> tuple[np.ndarray, Task]:
    values = np.unique(labels)
    if len(values) < 2:
        shown = values[0] if len(values) else "(none)"
        raise SpecError.of(
            "label", name, f"has a single value ({shown}): there is nothing to learn",
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
        return labels, kind
    if len(values) > _MOST_CLASSES:
        raise SpecError.of(
            "label", name, f"has {len(values)} classes; at most {_MOST_CLASSES} are handled",
            "Name another column with --label" if text else "Try --task regression",
        )  # fmt: skip
    return (labels if text else np.array([f"{v:g}" for v in labels])), kind


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _some(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
