"""Delimited text as people save it, read by pandas: encodings, separators, remarks, missing names.

Cells stay texts here; table.py makes numbers of them and lists what it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from onegrad.errors import SpecError
from onegrad.tabular.reading.table import number_in

if TYPE_CHECKING:
    import pandas as pd

_MOST_LINE = 50_000_000  # characters; a file without line ends is no table
_MOST_BREAKS = 5  # in a cell; more are rows that an unclosed quote has swallowed
_CHUNK = 50_000  # rows that are in memory beside those kept
_SEPARATORS = ",;\t|"
_OLD = "cp1252"  # encoding of files that are not UTF-8: Western Windows


@dataclass(frozen=True)
class Cells:
    """Columns of texts with their names, rows in the order of the file; how many rows there were
    before any were left out at random; what was done."""

    columns: dict[str, list[str]]
    kept: int
    total: int
    notes: tuple[str, ...]


def read_csv(path: Path, most: Callable[[int], int]) -> Cells:
    """At most most(columns) rows, each equally likely. One pass (two if the file is not UTF-8)."""
    with path.open("rb") as raw:
        start = raw.read(2)
    encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    notes: tuple[str, ...] = ()
    try:
        header, frame, total, told = _read(path, encoding, most)
    except UnicodeError:
        notes = ("The file is not UTF-8; it was read as Windows text (cp1252).",)
        header, frame, total, told = _read(path, _OLD, most)
    notes += told
    if header and all(number_in(name) is not None for name in header):
        import pandas as pd

        frame, total = pd.concat([pd.DataFrame([header]), frame], ignore_index=True), total + 1
        header = [f"column {i + 1}" for i in range(len(header))]
        notes += ("The file has no header line; columns were numbered.",)
    cells = [frame[i].str.strip().tolist() for i in frame.columns] or [[] for _ in header]
    used = [i for i, name in enumerate(header) if name or any(cells[i])]
    if len(used) < 2:
        raise SpecError.of(
            "data", str(path), "must have at least one input column and the labels",
            "Separate the columns by commas, semicolons or tabs",
        )  # fmt: skip
    names, told = _own_names([header[i] or f"column {i + 1}" for i in used])
    columns = {name: cells[i] for name, i in zip(names, used, strict=True)}
    return Cells(columns, len(frame), total, (*notes, *told))


def _read(
    path: Path, encoding: str, most: Callable[[int], int]
) -> tuple[list[str], pd.DataFrame, int, tuple[str, ...]]:
    import pandas as pd

    errors = "replace" if encoding == _OLD else "strict"
    with path.open(newline="", encoding=encoding, errors=errors) as handle:
        watched = _Watched(handle)
        first = watched.first_line()
        separator = max(_SEPARATORS, key=first.count)
        try:
            chunks: Any = pd.read_csv(
                watched, sep=separator, header=None, dtype=str, keep_default_na=False,
                na_filter=True, na_values=[], chunksize=_CHUNK, encoding=encoding, engine="c",
            )  # fmt: skip
            return _sampled(iter(chunks), watched, most, path)
        except pd.errors.EmptyDataError:
            return [], pd.DataFrame(), 0, ()
        except pd.errors.ParserError as error:
            raise _advice(str(error), watched.skipped, path) from None


def _sampled(
    chunks: Iterator[pd.DataFrame], watched: _Watched, most: Callable[[int], int], path: Path
) -> tuple[list[str], pd.DataFrame, int, tuple[str, ...]]:
    """The header, and the rows with the smallest of random numbers, in their order."""
    import pandas as pd

    rng = np.random.default_rng(0)
    header: list[str] = []
    kept, keys, total, breaks = pd.DataFrame(), np.zeros(0), 0, 0
    for chunk in chunks:
        if not header:
            header = [str(name).strip() for name in chunk.iloc[0].fillna("")]
            chunk, limit = chunk.iloc[1:], most(len(header))
        _check_cells(chunk, len(header), watched.skipped, path)
        breaks += int(sum(chunk[i].str.count("\n").sum() for i in chunk.columns))
        chunk = chunk[(chunk != "").any(axis=1)]
        total += len(chunk)
        keys = np.concatenate([keys, rng.random(len(chunk))])
        kept = pd.concat([kept, chunk]) if len(kept) else chunk
        if len(kept) > limit:
            least = np.sort(np.argpartition(keys, limit)[:limit])
            kept, keys = kept.iloc[least], keys[least]
    notes: tuple[str, ...] = ()
    if breaks:
        lines = watched.lines - watched.skipped - 1
        notes = (f"{lines:,} lines below the header became {total:,} rows: cells in quotes have "
                 "line breaks in them.",)  # fmt: skip
    return header, kept, total, notes


def _check_cells(chunk: pd.DataFrame, width: int, skipped: int, path: Path) -> None:
    """A row with too few cells, or a cell of many lines."""
    short = chunk.isna().to_numpy()
    if short.any():
        row = int(short.any(axis=1).argmax())
        number = int(chunk.index[row]) + 1 + skipped
        raise _wrong_width(number, int((~short[row]).sum()), width, path)
    for i in chunk.columns:
        many = chunk[i].str.count("\n").to_numpy()
        if len(many) and many.max() > _MOST_BREAKS:
            number = int(chunk.index[int(many.argmax())]) + 1 + skipped
            raise _unclosed(path, f"a cell of row {number} spans {int(many.max()) + 1} lines")


def _advice(message: str, skipped: int, path: Path) -> SpecError:
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        width, line, count = map(int, found.groups())
        return _wrong_width(line + skipped, count, width, path)
    if "EOF inside string" in message:
        return _unclosed(path, "a quote is not closed before the end of the file")
    return SpecError.of(
        "data", str(path), f"cannot be read as CSV ({message[:120]})", "Check the file's contents"
    )


def _wrong_width(line: int, count: int, width: int, path: Path) -> SpecError:
    return SpecError.of(
        "data", str(path), f"line {line} has {count} cells instead of {width}",
        "Check that line, and quote texts that contain the separator",
    )  # fmt: skip


def _unclosed(path: Path, what: str) -> SpecError:
    return SpecError.of(
        "data", str(path), f"{what}: rows would be lost in it",
        "Close the quote, or double quotes that belong to a text",
    )  # fmt: skip


def _own_names(names: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names that occur again are numbered, "x (2)"; the last column is the label as a rule, and
    must be told from the others."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if names[-1] in twice:
        raise SpecError.of(
            "data", names[-1], "names two columns, and the last of them would be the label",
            "Give every column its own name",
        )  # fmt: skip
    seen, given = Counter[str](), set(names)
    own: list[str] = []
    for name in names:
        seen[name] += 1
        again = f"{name} ({seen[name]})"
        own.append(name if seen[name] == 1 or again in given else again)
    if len(set(own)) < len(own):
        raise SpecError.of("data", twice[0], "names two columns", "Give every column its own name")
    notes = tuple(f"Several columns are called “{name}”; they were numbered." for name in twice)
    return own, notes


class _Watched:
    """A file of text that counts its lines, begins at its header, and refuses endless lines."""

    def __init__(self, handle: TextIO) -> None:
        self.handle = handle
        self.skipped = self.lines = self.since = 0
        self.begin = ""

    def first_line(self) -> str:
        """The header; remarks and empty lines above it are left out."""
        while line := self.handle.readline(_MOST_LINE):
            remark = line.startswith("#") and not any(mark in line for mark in _SEPARATORS)
            if line.strip() and not remark:
                self.begin = line
                return line
            self.skipped += 1
            self.lines += 1
        return ""

    def read(self, size: int = -1) -> str:
        text, self.begin = self.begin or self.handle.read(size), ""
        self.lines += text.count("\n")
        cut = text.rfind("\n")
        self.since = self.since + len(text) if cut < 0 else len(text) - cut
        if self.since >= _MOST_LINE:
            raise OSError(f"a line has {_MOST_LINE:,} characters and more")
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.handle)
