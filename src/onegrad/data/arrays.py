"""Somebody's own data: arrays in memory, or a CSV or NPZ file."""

from __future__ import annotations

import csv
import hashlib
import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from onegrad.compute.backend import Array
from onegrad.data.base import DataModel, DataNodes
from onegrad.data.formats import check_file, read_npz
from onegrad.data.population import Batch
from onegrad.errors import SpecError

_MOST_CLASSES = 20  # more distinct labels than this are numbers, not classes
_FEWEST_IN_CLASS = 10


class RowTable(DataModel):
    """Inputs (N × n) and labels (N) that are used as they are.

    Every repetition splits the rows at random into disjoint parts for the step, for the readout
    and, with the rest, for the test. A subclass has `load`.
    """

    known: ClassVar[bool] = False
    label_models: ClassVar[tuple[str, ...]] = ("given",)
    own_nodes: ClassVar[bool] = True
    whole_test: ClassVar[bool] = True

    @abstractmethod
    def load(self) -> tuple[Array, Array]:
        """Inputs (N × n) and labels (N)."""

    @property
    def dim(self) -> int:
        return int(self.load()[0].shape[1])

    @property
    def rows(self) -> int:
        return len(self.load()[1])

    @cached_property
    def variance(self) -> float:
        """Sum of the variances of the columns: the trace of the covariance."""
        return float(self.load()[0].var(axis=0).sum())

    def mean_trace(self, spread: float) -> float:
        return self.variance

    def bulk_trace(self, spread: float) -> float:
        """The whole trace: arrays have no known split into bulk and structure."""
        return self.variance

    def fingerprint(self) -> dict[str, Any]:
        return {"model": self.model, "sha256": digest(*self.load())}

    def batch(self, rows: np.ndarray, spread: float, rng: np.random.Generator) -> Batch:
        x, y = self.load()
        return Batch(x[rows], y[rows], np.zeros(len(rows), dtype=int))

    def nodes(self, rows: np.ndarray, spread: float) -> DataNodes:
        x, y = self.load()
        y = y[rows].astype(float)
        return DataNodes(x[rows].astype(float), y, label_groups(y))


class Arrays(RowTable):
    """Inputs x (N × n) and labels y (N), as NumPy arrays."""

    only_in_python: ClassVar[bool] = True
    model: Literal["arrays"] = "arrays"
    x: np.ndarray = Field(description="a NumPy array of inputs, one row per sample", repr=False)
    y: np.ndarray = Field(description="a NumPy array of labels, one per row", repr=False)

    @model_validator(mode="before")
    @classmethod
    def _in_python(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and not {"x", "y"} & set(values):
            raise SpecError.of(
                "data.model", "arrays", "takes arrays in Python, Arrays(x=…, y=…)",
                'In a spec file write model = "file" and path = "my.csv"',
            )  # fmt: skip
        return values

    @model_validator(mode="after")
    def _usable(self) -> Arrays:
        check_arrays(self.x, self.y, "data")
        return self

    def load(self) -> tuple[Array, Array]:
        return np.asarray(self.x, dtype=float), np.asarray(self.y, dtype=float)


class File(RowTable):
    """A table of numbers: CSV with a header, or NPZ with arrays `x` and `y`."""

    model: Literal["file"] = "file"
    path: Path = Field(description="a .csv or .npz file", examples=["my.csv"])
    label: str | None = Field(
        default=None, description="the CSV column with the labels; the last one unless named",
        examples=["target"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _readable(self) -> File:
        check_file(self.path, "data.path", "the path of a CSV or NPZ file")
        if self.path.suffix.lower() not in (".csv", ".npz"):
            raise SpecError.of(
                "data.path", str(self.path), "must end in .csv or .npz",
                "Save the table as CSV with a header line",
            )  # fmt: skip
        _ = self.loaded
        return self

    @cached_property
    def loaded(self) -> tuple[Array, Array]:
        """The file's inputs and labels, read once."""
        npz = self.path.suffix.lower() == ".npz"
        x, y = read_npz(self.path) if npz else _read_csv(self.path, self.label)
        check_arrays(x, y, "data.path")
        return x.astype(float), y.astype(float)  # sums of half precision overflow at 65,504

    def load(self) -> tuple[Array, Array]:
        return self.loaded


def label_groups(y: Array) -> np.ndarray:
    """The class of each sample (S) where labels are classes, else one group for all.

    Classes are up to 20 distinct values, each of at least 10 samples.
    """
    values, group = np.unique(y, return_inverse=True)
    few = len(values) <= _MOST_CLASSES
    if few and np.bincount(group).min() >= _FEWEST_IN_CLASS:
        return np.asarray(group)
    return np.zeros(len(y), dtype=int)


def digest(*arrays: np.ndarray, first: str = "") -> str:
    """SHA-256 of a text and of the bytes of arrays, one after the other."""
    found = hashlib.sha256(first.encode())
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def check_arrays(x: np.ndarray, y: np.ndarray, key: str) -> None:
    """Refuse shapes and values that would lead to a wrong number later."""
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y) or x.shape[1] == 0:
        raise SpecError.of(
            key, f"x {x.shape}, y {y.shape}",
            "inputs must be a table with one row per sample, and labels one number per row",
            "Check that x.shape == (N, n) and y.shape == (N,)",
        )  # fmt: skip
    for name, array in (("x", x), ("y", y)):
        if array.dtype.kind not in "fiub" or not np.all(np.isfinite(array)):
            raise SpecError.of(
                key, name, "must be finite numbers: no text, no NaN, no infinity",
                "Drop or fill the missing entries first",
            )  # fmt: skip


def _read_csv(path: Path, label: str | None) -> tuple[Array, Array]:
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as handle:
            rows = _one_line_each(path, csv.reader(handle))
    except (OSError, csv.Error) as error:
        raise SpecError.of(
            "data.path", str(path), f"cannot be read as CSV ({error})", "Check the file's contents"
        ) from None
    if len(rows) < 3:
        raise SpecError.of(
            "data.path", str(path), "must have a header line and at least two samples",
            "Check the file's contents",
        )  # fmt: skip
    header = [name.strip() for name in rows[0]]
    if all(_is_number(name) for name in header):
        raise SpecError.of(
            "data.path", str(path), "must begin with a line of column names, not numbers",
            "Add a header line",
        )  # fmt: skip
    if label is not None and label not in header:
        raise SpecError.choice("data.label", label, header)
    column = header.index(label) if label is not None else len(header) - 1
    values = np.empty((len(rows) - 1, len(header)))
    for i, row in enumerate(rows[1:]):
        if len(row) != len(header) or not all(_is_number(cell) for cell in row):
            raise SpecError.of(
                "data.path", str(path), f"sample {i + 1} must have {len(header)} numbers, it reads "
                f"{', '.join(row)[:40]!r}", "Drop or fill that line, and code classes as numbers",
            )  # fmt: skip
        values[i] = [float(cell) for cell in row]
    return np.delete(values, column, axis=1), values[:, column]


def _one_line_each(path: Path, reader: Any) -> list[list[str]]:
    """The rows that are not empty. A quote that is not closed would swallow the rows up to the
    next one, and nobody would miss them."""
    rows, before = [], 0
    for row in reader:
        if reader.line_num > before + 1:
            raise SpecError.of(
                "data.path", str(path), f"has a quote in line {before + 1} that is closed only in "
                f"line {reader.line_num}: {reader.line_num - before} lines would become one row",
                'Remove the quote, or the line breaks between two quotes (")',
            )  # fmt: skip
        before = reader.line_num
        if any(cell.strip() for cell in row):
            rows.append(row)
    return rows


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
