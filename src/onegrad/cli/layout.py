"""Tables that fit the terminal: side by side where there is room, else one block for each line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

PIPE = 160  # columns where nobody says how many there are
LONGEST_LINE = 100  # characters of a sentence's line, however wide the terminal


def new_table(title: str | None = None) -> Table:
    """An empty table without vertical lines, which takes the least room."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def print_text(text: str, margin: int | None = None) -> None:
    """Sentences, broken into lines on a terminal."""
    width = shutil.get_terminal_size().columns
    print(wrapped(text, width, margin) if sys.stdout.isatty() else text)


def wrapped(text: str, width: int, margin: int | None = None) -> str:
    """Longer lines broken, what follows indented like them, or by a `margin`.

    >>> print(wrapped("  one two three", 10))
      one two
      three
    """
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())] if margin is None else " " * margin
        short = len(line) <= width
        lines += [line] if short else textwrap.wrap(line, width, subsequent_indent=indent)
    return "\n".join(lines)


def print_table(table: Table, keys: int = 0) -> None:
    """The table, and below it the sentences of its caption, left-aligned; where it is too wide a
    block for each of its lines, headed by `keys` cells."""
    from rich.console import Console

    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    console = Console(**plain)  # names are not markup
    if not console.is_terminal:  # a pipe or a file has no width to fit into
        console = Console(width=PIPE, **plain)
    caption, table.caption = str(table.caption or ""), None
    if natural_width(table) <= console.width:
        console.print(table)
    else:
        print(blocks(table, keys, console.width))
    if caption:
        print(wrapped(caption, min(console.width, LONGEST_LINE)))


def natural_width(table: Table) -> int:
    """Columns that the table takes if nothing is broken into lines."""
    from rich.console import Console
    from rich.measure import Measurement

    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum


def blocks(table: Table, keys: int, width: int) -> str:
    """`activation = relu, width_ratio = 0.1`, and below it a line for every other column."""
    headers = [_plain(column.header) for column in table.columns]
    lines = [*textwrap.wrap(str(table.title or ""), width)]
    margin = max((len(header) for header in headers[keys:]), default=0) + 4
    rows = zip(*([_plain(cell) for cell in column.cells] for column in table.columns), strict=True)
    for cells in rows:
        pairs = list(zip(headers, cells, strict=True))
        head = ", ".join(f"{h} = {c}" if _is_number(c) else c for h, c in pairs[:keys])
        lines += ["", *textwrap.wrap(head, width)]
        for header, cell in pairs[keys:]:
            if cell:
                name = f"  {header}".ljust(margin)
                lines += textwrap.wrap(
                    name + cell, width, subsequent_indent=" " * min(margin, width // 2)
                )
    return "\n".join([*lines, "", *wrapped(str(table.caption or ""), width).split("\n")])


def _plain(cell: Any) -> str:
    return str(cell).replace("-\n", "-").replace("\n", " ").strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
