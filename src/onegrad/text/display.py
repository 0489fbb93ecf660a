"""How objects look in a terminal and in a notebook: short texts, small tables, plots on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from importlib import import_module
from typing import Any

Cells = Sequence[Sequence[object]]


def text_table(header: Sequence[str], rows: Cells, most: int = 12) -> str:
    """Columns of equal width under their names; `most` rows, and how many more there are.

    >>> print(text_table(("model", "test error"), [("network", 0.5), ("theory", 0.48)]))
    model    test error
    network  0.5
    theory   0.48
    """
    shown = [[str(cell) for cell in row] for row in rows[:most]]
    widths = [max(map(len, column)) for column in zip(header, *shown, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, *shown)
    ]
    return "\n".join([*lines, *_more(len(rows), most)])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in a terminal too."""
    cells = [[cell.replace("|", "∣") for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells if i < len(row)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = [*row, *[""] * (len(head) - len(row))]
        first, *rest = (
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(padded, widths, strict=True))
        )
        return f"| {' | '.join((first, *rest))} |"

    rule = "|" + "|".join(
        f"{'-' * (width + 1)}:" if i else f":{'-' * (width + 1)}" for i, width in enumerate(widths)
    )
    return "\n".join([line(cells[0]), rule + "|", *(line(row) for row in cells[1:])])


def html_table(
    title: str, header: Sequence[str], rows: Cells, notes: Sequence[str] = (), most: int = 30
) -> str:
    """HTML for a notebook: a title, a plain table, and notes in small letters below."""
    cell = 'style="text-align: left; padding: 0.15em 0.8em 0.15em 0"'
    head = "".join(f"<th {cell}>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td {cell}>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows[:most]
    )
    below = "".join(
        f'<div style="color: #777; font-size: 85%">{escape(note)}</div>'
        for note in (*_more(len(rows), most), *notes)
    )
    names = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    table = f"<table>{names}<tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{table}{below}</div>"


def _more(count: int, most: int) -> list[str]:
    return [f"… and {count - most} more"] if count > most else []


def settings_text(settings: Mapping[str, Any]) -> str:
    """Swept keys without their table: `activation = relu, width_ratio = 0.5`."""
    return ", ".join(f"{key.rpartition('.')[2]} = {value_text(v)}" for key, v in settings.items())


def count_of(count: int, noun: str) -> str:
    """
    >>> count_of(1, "seed"), count_of(2500, "row")
    ('1 seed', '2,500 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def value_text(value: Any) -> str:
    """A swept value; nothing for None."""
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def brief(record: Any) -> str:
    """The `__repr__` of a dataclass with arrays in it: shapes for numbers, defaults left out.

    >>> import numpy as np
    >>> from dataclasses import make_dataclass
    >>> Part = make_dataclass("Part", ["name", "t", ("noise", float, 0.0)])
    >>> brief(Part("teacher", (np.zeros((3, 2)), 1)))
    "Part(name='teacher', t=(array 3 × 2, 1))"
    """

    def of(value: Any) -> str:
        if hasattr(value, "shape"):
            return f"array {' × '.join(map(str, value.shape))}"
        return f"({', '.join(map(of, value))})" if isinstance(value, tuple) else repr(value)

    values = [(field.name, getattr(record, field.name), field.default) for field in fields(record)]
    parts = (f"{n}={of(v)}" for n, v, usual in values if hasattr(v, "shape") or v != usual)
    return f"{type(record).__name__}({', '.join(parts)})"


def plots() -> Any:
    """figures/plots.py, loaded with the first plot.

    Objects know that they can be drawn; the rooms below `figures` know nothing of matplotlib.
    """
    return import_module("onegrad.figures.plots")
