"""The whole grid behind the tables of notes/2026-11-real-data.md, of which the tests run a part.

python -m tests.agreement.real_images_grid grid.jsonl    # 40 CPU minutes; goes on where it was

Each line is one cell. Without a missing cell the tables are printed at the end.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

import onegrad as og
from tests.agreement.real_images import compare, fashion

PAIRS = ((0, 1), (5, 9))
ACTIVATIONS = ("relu", "tanh", "sigmoid")
RATES = (1.0, 100.0)
SEEDS = {0.1: 12, 0.5: 8, 1.0: 6, 0.2: 10, 2.0: 3, 5.0: 2}  # on each half, by k/m
CELLS = [
    (pair, activation, ratio, rate)
    for ratio in SEEDS
    for pair, activation, rate in itertools.product(PAIRS, ACTIVATIONS, RATES)
]


def measured(pair, activation, ratio, rate):
    found = compare(pair, activation, ratio, rate, SEEDS[ratio])
    hermite = {}
    for bulk in ("all", "noise"):
        problem = fashion(pair, activation, ratio, rate, bulk=bulk)
        done = og.simulate(
            problem, ["network", "hermite"], seeds=SEEDS[ratio], degree=4, test_samples=3000
        )
        hermite[bulk] = tuple(done.difference("hermite"))
    return {
        "cell": [pair, activation, ratio, rate],
        "gaps": found.gaps, "errors": found.errors, "rank": found.rank, "within": found.within(),
        "hermite": hermite,
    }  # fmt: skip


def rows_of(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {json.dumps(row["cell"]): row for row in map(json.loads, lines)}


def tables(rows):
    """Theory: gap (s.e.) of test and training error in percent. Hermite: distance by bulk."""
    known = [rows[key] for key in map(json.dumps, CELLS) if key in rows]
    for rate in RATES:
        print(f"\nη = {rate:g}\n")
        heads = [f"{a} {p[0]}/{p[1]}" for p, a in itertools.product(PAIRS, ACTIVATIONS)]
        for title, show in (("theory, test, train", theory_cell), ("Hermite", hermite_cell)):
            print(f"| k/m ({title}) | " + " | ".join(heads) + " |")
            print("|---" * (len(heads) + 1) + "|")
            for ratio in sorted(SEEDS):
                cells = [
                    next((show(r) for r in known if r["cell"] == [list(p), a, ratio, rate]), "")
                    for p, a in itertools.product(PAIRS, ACTIVATIONS)
                ]
                print(f"| {ratio:g} | " + " | ".join(cells) + " |")
    outside = [r["cell"] for r in known if not r["within"]]
    print(f"\n{len(known)} of {len(CELLS)} cells; outside 2 % + 2 s.e.: {outside or 'none'}")
    worst = max((max(r["errors"]) for r in known), default=np.nan)
    print(f"largest standard error {worst:.1%}")


def theory_cell(row):
    pairs = zip(row["gaps"], row["errors"], strict=True)
    return ", ".join(f"{100 * g:+.1f} ({100 * e:.1f})" for g, e in pairs)


def hermite_cell(row):
    return ", ".join(f"{100 * row['hermite'][bulk][0]:+.1f}" for bulk in ("all", "noise"))


def main():
    path = Path(sys.argv[1])
    for cell in CELLS:
        if json.dumps(cell) not in rows_of(path):
            row = measured(*cell)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(*cell, theory_cell(row), "" if row["within"] else "OUTSIDE", flush=True)
    tables(rows_of(path))


if __name__ == "__main__":
    main()
