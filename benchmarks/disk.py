"""What waiting for the disk costs a run: `synchronous` FULL never, as we do it, at each commit.

`python benchmarks/disk.py [DIM] [SEEDS]`; the three take turns, each a whole run in this process
with its own results.sqlite. Seconds in commits are those that the run waits for.
"""

import sys
import tempfile
import time
from contextlib import contextmanager

import numpy as np

import onegrad as og
from onegrad.runs import database

POLICIES = {"never": 1e-9, "up to 2 % of the time": database.SHARE, "each commit": 1e9}


def spec(dim, seeds):
    return {
        "data": {"model": "mixture", "dim": dim},
        "network": {"width": dim},
        "training": {"samples": dim},
        "scaling": {"strength": 0.6, "weighting": 0.5},
        "compare": {"models": ["network", "hermite"], "seeds": seeds},
    }


def timed(policy, tables):
    """Seconds of a run, those that it waits in commits, and their number."""
    waits = []
    database.SHARE = POLICIES[policy]
    whole = database.Database.transaction

    @contextmanager
    def transaction(self):
        inside = []
        start = time.perf_counter()
        with whole(self):
            inside.append(time.perf_counter())
            yield
            inside.append(time.perf_counter())
        waits.append(time.perf_counter() - start - (inside[1] - inside[0]))

    database.Database.transaction = transaction
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            og.run(tables, folder, og.Local(1), progress=False)
    finally:
        database.Database.transaction = whole
    return time.perf_counter() - start, sum(waits), len(waits)


def main(dim=100, seeds=300, turns=3):
    found = {policy: [] for policy in POLICIES}
    for _ in range(turns):
        for policy in POLICIES:
            found[policy].append(timed(policy, spec(dim, seeds)))
    print(f"n = m = k = {dim}, {seeds} seeds")
    for policy, runs in found.items():
        took, wait, commits = np.median(runs, axis=0)
        rest = took - wait
        print(f"{policy:22} {commits:.0f} commits, {1e3 * wait / commits:.2f} ms each: "
              f"{100 * wait / rest:.1f} % beside {rest:.1f} s")  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
