"""Whether a fit will fit into memory, estimated before it starts."""

from __future__ import annotations

import math

from onegrad.compute.memory import available_bytes
from onegrad.errors import SpecError
from onegrad.tabular.estimators.rows import rows_in_block

_SMALL = 1 << 28  # bytes that are allowed without asking the machine
_DENSE = 4096  # inputs up to which their covariance is a matrix


def needed_bytes(width: int, inputs: int, rows: int) -> int:
    """Beside the data: 3k² + n² + 3kn numbers, two blocks of features, 80 bytes a row."""
    square = min(inputs, _DENSE) * inputs
    block = 2 * min(rows, rows_in_block(width, inputs)) * (width + inputs)
    return 8 * (3 * width * width + square + 3 * width * inputs + block) + 80 * rows


def check_memory(width: int, inputs: int, rows: int) -> None:
    needed, available = needed_bytes(width, inputs, rows), available_bytes()
    if needed < _SMALL or available is None or needed <= available:
        return
    free = max(available - needed_bytes(1, inputs, rows), 0) / 8
    fitting = int((math.sqrt(9 * inputs * inputs + 12 * free) - 3 * inputs) / 6)
    raise SpecError.of(
        "width", width,
        f"needs about {needed / 1e9:,.1f} GB for {inputs:,} inputs, and {available / 1e9:,.1f} GB "
        "are available",
        f"About {max(1, int(0.7 * fitting)):,} neurons would fit; {min(rows, 2000):,} are plenty "
        f"for {rows:,} rows",
    )  # fmt: skip
