"""Parts of a table: some classes, the order of time, rows drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.errors import SpecError, did_you_mean
from onegrad.tabular.reading.table import FEWEST_ROWS, Table


def only_classes(table: Table, classes: Sequence[str] | None) -> Table:
    """Rows of these classes; all without any."""
    if classes is None:
        return table
    if table.task == "regression":
        raise SpecError.of("classes", list(classes), "needs labels that are classes",
                           "Leave out --classes, or give --task classification")  # fmt: skip
    for name in classes:
        if name not in table.classes:
            raise SpecError.of(
                "classes", name, f"must be from {', '.join(table.classes[:20])}",
                did_you_mean(name, table.classes),
            )  # fmt: skip
    rows = np.isin(table.y, list(classes))
    if len(set(classes)) < 2 or rows.sum() < FEWEST_ROWS:
        raise SpecError.of(
            "classes", list(classes), f"must be two different classes or more, with {FEWEST_ROWS} "
            "rows together", f"For example {table.classes[0]},{table.classes[1]}",
        )  # fmt: skip
    left = len(table.classes) - len(set(classes))
    notes = (*table.notes, f"{left} other classes left out.") if left else table.notes
    total = max(int(rows.sum()), round(rows.mean() * table.total))
    return replace(table, x=table.x[rows], y=table.y[rows], notes=notes, total=total)


def in_time(table: Table, column: str | None) -> Table:
    """Rows in the order of a column."""
    if column is None:
        return table
    if column not in table.names:
        raise SpecError.of(
            "time", column, f"must be a column of numbers or dates: {', '.join(table.names[:12])}",
            did_you_mean(column, table.names),
        )  # fmt: skip
    order = np.argsort(table.x[:, table.names.index(column)], kind="stable")
    cautions = tuple(text for text in table.cautions if "--time" not in text)
    return replace(table, x=table.x[order], y=table.y[order], cautions=cautions)


def at_most(table: Table, rows: int) -> Table:
    """Rows drawn at random, in the same order."""
    if len(table.y) <= rows:
        return table
    kept = np.sort(np.random.default_rng(0).choice(len(table.y), rows, replace=False))
    if table.task == "classification" and len(np.unique(table.y[kept])) < 2:
        return table
    note = f"Models were fitted to parts of {rows:,} rows drawn at random."
    return replace(table, x=table.x[kept], y=table.y[kept], notes=(*table.notes, note))
