"""Mutated specs and data files: no exception but ours, no hang, no memory without a limit."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory


def peak() -> float:
    """Megabytes of this process at its largest so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def long_run(check: Callable[[int, int, Path], bool], count: int, seed: int = 0) -> None:
    """Numbers 0 … count − 1 of a seed, and what failed."""
    valid, failed, start = 0, 0, time.monotonic()
    for number in range(count):
        if number % 1000 == 0:
            print(number, file=sys.stderr, flush=True)
        with TemporaryDirectory() as folder:
            try:
                valid += check(seed, number, Path(folder))
            except Exception as error:
                failed += 1
                print(f"({seed}, {number}): {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(f"{count} of seed {seed}: {valid} valid, {failed} failures, peak {peak():.0f} MB, "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip
