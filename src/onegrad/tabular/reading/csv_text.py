"""Delimited text as people save it: encodings, separators, comments, names that are missing."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from onegrad.errors import SpecError
from onegrad.tabular.reading.table import number_in

_MOST_LINE = 50_000_000  # characters
_SEPARATORS = ",;\t|"
_OLD = "cp1252"  # what a file is that is not UTF-8: Western Windows


def read_csv(
    path: Path, most: Callable[[int], int]
) -> tuple[list[str], list[list[str]], int, tuple[str, ...]]:
    """Names of the columns; cells of at most most(columns) rows, each equally likely; how many rows
    there were; and what was done. One pass (two if the file is not UTF-8)."""
    notes: tuple[str, ...] = ()
    with path.open("rb") as raw:
        start = raw.read(2)
    encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        names, kept, total, notes = _read(path, encoding, most)
    except UnicodeError:
        names, kept, total, notes = _read(path, _OLD, most)
        notes = ("The file is not UTF-8; it was read as Windows text (cp1252).", *notes)
    used = [i for i, name in enumerate(names) if name or any(row[i].strip() for row in kept)]
    if len(used) < 2:
        raise SpecError.of(
            "data", str(path), "must have at least one input column and the labels",
            "Separate the columns by commas, semicolons or tabs",
        )  # fmt: skip
    named = [name or f"column {i + 1}" for i, name in enumerate(names)]
    own, told = _own_names([named[i] for i in used])
    return own, [[row[i] for i in used] for row in kept], total, (*notes, *told)


def _read(
    path: Path, encoding: str, most: Callable[[int], int]
) -> tuple[list[str], list[list[str]], int, tuple[str, ...]]:
    errors = "replace" if encoding == _OLD else "strict"
    with path.open(newline="", encoding=encoding, errors=errors) as handle:
        lines = _rows(_lines(handle))
        header = [name.strip() for name in next(lines, [])]
        notes: tuple[str, ...] = ()
        if header and all(number_in(name) is not None for name in header):
            lines = chain([header], lines)
            header = [f"column {i + 1}" for i in range(len(header))]
            notes = ("The file has no header line; columns were numbered.",)
        kept, total = _reservoir(lines, len(header), most(len(header)), path)
    return header, kept, total, notes


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


def _lines(handle: TextIO) -> Iterator[str]:
    """Lines of a file; one without an end is no table. Remarks above the header are left out."""
    begun = False
    while line := handle.readline(_MOST_LINE):
        if len(line) == _MOST_LINE:
            raise csv.Error(f"a line has {_MOST_LINE:,} characters and more")
        remark = line.startswith("#") and not any(mark in line for mark in _SEPARATORS)
        if not begun and (remark or not line.strip()):
            continue
        begun = True
        yield line


def _rows(handle: Iterable[str]) -> Iterator[list[str]]:
    """Cells of each line that is not empty; the separator is the one that the first line shows."""
    lines = iter(handle)
    first = next(lines, "")
    separator = max(_SEPARATORS, key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=separator)
    return (row for row in reader if any(cell.strip() for cell in row))


def _reservoir(
    lines: Iterator[list[str]], width: int, most: int, path: Path
) -> tuple[list[list[str]], int]:
    """At most so many lines, each equally likely, in one pass; and how many there were."""
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
