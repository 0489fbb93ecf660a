"""Back-test of `og.learning_curve` on real tables: predicted from few rows, measured on others.

    python -m benchmarks.learning_curves --folder /usr/lib/R --out results/learning_curves.json
    python -m benchmarks.learning_curves --later …    # tables that no constant was chosen on

For every table and seed the curve sees `base` rows. Truth are fits to 2, 4 and 8 times as many
rows that it has not seen, judged on rows of neither. Written after every table; told at the end:
median error of the anchored theory, of the raw theory, of a power law and of "no change", and how
often the truth lies within one and two standard deviations.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import LATER, SOURCES, tables
from onegrad.compute.randomness import Streams
from onegrad.tabular.learning.curve_of_rows import learning_curve
from onegrad.tabular.learning.subsets import Plan, Targets, fit
from onegrad.tabular.reading.table import Table

FACTORS = (2, 4, 8)
METHODS = ("anchored", "theory", "power_law", "no_change")


def one_table(name: str, table: Table, seed: int, base: int, width: int) -> dict[str, Any]:
    """Forecasts and truths of one split; all errors relative to that of the best constant."""
    start = time.process_time()
    order = np.random.default_rng(seed).permutation(len(table.y))
    held_out = min(1000, len(order) // 5)
    base = min(base, (len(order) - held_out) // (FACTORS[-1] + 1))
    test, known, fresh = np.split(order, [held_out, held_out + base])
    targets = Targets.of(table.y, table.task)
    curve = learning_curve(table.x[known], table.y[known], task=table.task, width=width, seed=seed)
    found = []
    own = [one.drift for one in curve.backtests]
    for factor in FACTORS:
        rows = factor * base
        how = (Plan(width), Streams(seed + 1000, factor))
        truth, noise, wrong, rate, _ = fit(table.x, targets, fresh[:rows], test, how)
        point = curve.at(rows)
        # both are over the best constant, which few rows know a little worse
        found.append({
            "factor": factor, "truth": truth, "noise": noise, "wrong": wrong, "rate": rate,
            "anchored": point.error, "theory": point.theory, "power_law": point.power_law,
            "no_change": curve.subsets[-1].mean, "spread": curve.forecast.spread(rows, own),
            "doublings": float(np.log2(rows / curve.fitted)), "predicted_wrong": 1 - point.accuracy,
            "anchor_se": curve.subsets[-1].standard_error / curve.subsets[-1].mean,
        })  # fmt: skip
    return {"table": name, "seed": seed, "base": base, "points": found, "own": own,
            "cpu": time.process_time() - start}  # fmt: skip


def summary(results: list[dict[str, Any]]) -> str:
    """Median and mean absolute error of each method by factor, and the calibration of the bars."""
    lines = ["| times the rows | " + " | ".join(METHODS) + " | within 1 σ | within 2 σ |",
             "|---" * (len(METHODS) + 3) + "|"]  # fmt: skip
    for factor in FACTORS:
        points = [p for r in results for p in r["points"] if p["factor"] == factor]
        cells = []
        for method in METHODS:
            left = np.abs(np.log([p[method] / p["truth"] for p in points]))
            cells.append(f"{100 * np.median(left):.1f} % (mean {100 * left.mean():.1f} %)")
        z = np.abs([
            np.log(p["anchored"] / p["truth"]) / np.hypot(p["spread"], p["noise"] / p["truth"])
            for p in points
        ])  # fmt: skip
        shares = [f"{100 * np.mean(z < limit):.0f} %" for limit in (1, 2)]
        lines.append(f"| {factor} | " + " | ".join([*cells, *shares]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/usr/lib/R"))
    parser.add_argument("--out", type=Path, default=Path("results/learning_curves.json"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--base", type=int, default=500)
    parser.add_argument("--width", type=int, default=250)
    parser.add_argument("--later", action="store_true", help="the tables LATER")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for name, table in tables(options.folder, LATER if options.later else SOURCES):
        for seed in range(options.seed, options.seed + options.seeds):
            results.append(one_table(name, table, seed, options.base, options.width))
            print(name, seed, f"{results[-1]['cpu']:.1f} s", flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(summary(results))


if __name__ == "__main__":
    main()
