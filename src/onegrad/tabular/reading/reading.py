"""Somebody's table, read with patience: gaps, texts and constant columns are dealt with and told.

`data.model = "file"` is strict, because an experiment must not guess. This reader is for a first
look at data (`onegrad analyze`): it does what a careful person would do, and says so.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from onegrad.data.formats import check_file, check_size, read_npz
from onegrad.errors import SpecError, did_you_mean
from onegrad.tabular.reading.csv_text import read_csv
from onegrad.tabular.reading.table import Raw, Table, cleaned, column_of

_MOST_ROWS = 20_000  # rows kept for the analysis, drawn at random from a longer file
_MOST_CELLS = 40_000_000  # numbers kept: 320 MB
_MOST_COLUMNS = 20_000


def read_table(
    path: str | Path, label: str | None = None, task: str | None = None, time: str | None = None
) -> Table:
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
    check_file(path, "data", "a CSV, Parquet, NPZ or IDX file")
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
    return cleaned(raw, task, time)


# --- the formats ------------------------------------------------------------------------


def _from_npz(path: Path) -> Raw:
    x, y = read_npz(path, "data")
    if x.ndim > 2 and x.size:
        x = x.reshape(len(x), -1)
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y) or x.dtype.kind not in "fiub":
        raise SpecError.of(
            "data", f"x {x.shape} {x.dtype}, y {y.shape}",
            "x must be numbers, with one row for each entry of y",
            "Write it with numpy.savez(path, x=x, y=y)",
        )  # fmt: skip
    keep, notes = _part(len(x), x.shape[1])
    kept = x[keep].astype(float)
    kept[~np.isfinite(kept)] = np.nan  # gaps
    return Raw(_split(kept) | {"y": column_of(y[keep].tolist())}, "y", notes, len(x))


def _from_idx(path: Path) -> Raw:
    from onegrad.data.formats import read_idx

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
    if images.size == 0:
        raise SpecError.of(
            "data", str(path), f"has {len(images)} images of shape {images.shape[1:]}: no numbers",
            "Give the file as it was published",
        )  # fmt: skip
    if labels.ndim != 1 or len(images) != len(labels):
        raise SpecError.of(
            "data", str(path), f"{len(images)} images but labels of shape {labels.shape}",
            "Take both files from the same data set",
        )  # fmt: skip
    flat = images.reshape(len(images), -1)
    keep, notes = _part(len(flat), flat.shape[1])
    kept = flat[keep].astype(float)
    kept[~np.isfinite(kept)] = np.nan
    columns = _split(kept)
    return Raw(columns | {"class": labels[keep].astype(str)}, "class", notes, len(flat))


def _from_parquet(path: Path, label: str | None) -> Raw:
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
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise SpecError.of("data", twice, "names two columns", "Give each its own name")
        meta = file.metadata
        sizes = (meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        check_size(path, "data", max(sum(sizes), meta.num_rows * len(names)))
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
    columns = {name: column_of(values) for name, values in parts.items()}
    return Raw(columns, chosen, notes, rows)


def _from_csv(path: Path, label: str | None) -> Raw:
    try:
        cells = read_csv(path, _rows_kept)
    except OSError as error:
        raise SpecError.of(
            "data", str(path), f"cannot be read as CSV ({error})", "Check the file's contents"
        ) from None
    chosen = _label_column(list(cells.columns), label, path)
    notes = cells.notes
    if cells.total > cells.kept:
        notes += (_sampled(cells.kept, cells.total),)
    columns = {name: column_of(texts) for name, texts in cells.columns.items()}
    return Raw(columns, chosen, notes, cells.total)


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
