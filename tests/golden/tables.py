"""Small tables of data for the cases that bring their own: in memory, or written to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def table_of(
    rows: int, columns: int, classes: int, file: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with one strong direction, and labels: entry by entry, the same on any machine."""
    rng = np.random.default_rng([rows, columns, classes])
    x = rng.standard_normal((rows, columns))
    x[:, 0] *= 3.0
    if not classes:
        return x, x[:, 1] + 0.5 * x[:, 2] ** 2 + 0.2 * rng.standard_normal(rows)
    y = np.arange(rows) % classes
    x[:, 1] += 2.0 * y
    x[:, 2] *= 1.0 + 2.0 * (y == 1)
    return x, 2.0 * y - 1.0


def write_table(folder: Path, kind: str, x: np.ndarray, y: np.ndarray) -> dict[str, str]:
    """The keys of [data] that name the file."""
    path = folder / f"table.{kind}"
    if kind == "npz":
        np.savez(path, x=x, y=y)
        return {"path": str(path)}
    names = ["label", *(f"x{i}" for i in range(x.shape[1]))]
    lines = [",".join(map(repr, row)) for row in np.column_stack([y, x]).tolist()]
    path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    return {"path": str(path), "label": "label"}
