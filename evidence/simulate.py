"""Simulate the frozen problems: means and standard errors, one line of JSON a problem.

    python evidence/simulate.py PROBLEMS.jsonl evidence/frozen.jsonl [--cap 12] [--worse 0.01]

Resumable: a problem that the file has already is left alone, or with `--worse` simulated once more
if the standard error of its test error, relative to the mean, is above that; the longer of two
simulations counts. Every repetition draws all that is random anew (population, data, network), from
the root `seed` of its problem. A problem ends at the first of the checks below at which its test
error is known to PRECISION and its training error to TRAIN_PRECISION, or when `cap` seconds of
processor time are used up.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import onegrad as og

FEWEST = 20  # repetitions: the standard error of fewer is too often too small
MOST = 1000
PRECISION, TRAIN_PRECISION = 0.006, 0.01  # relative standard errors
_NUMBERS = (
    "test_error", "train_error", "train_objective", "relative_error", "misclassification",
    "test_loss", "train_loss", "calibration",
)  # fmt: skip


def _parts() -> tuple[Any, ...]:
    """What `og.simulate` is made of: one repetition at a time, wherever the package keeps it."""
    module = sys.modules[og.simulate.__module__]
    labels = sys.modules[module.ControlVariates.__module__].random_labels
    return module.run_group, module.Point, module.Compare, module.Results, module.Pool, labels


def simulated(problem: og.Problem, root: int, cap: float) -> dict[str, Any]:
    """Repetitions 0, 1, … of that root until all is known well enough or the time is over."""
    run_group, point_of, compare_of, results_of, pool_of, random_labels = _parts()
    activation = problem.network.activation
    # with a kink, the exact risk is a series that takes seconds and may not converge in the end
    slow = activation.breakpoints and activation.name != "relu"
    compare = compare_of(
        models=("network",), seeds=2, seed=root, risk="sampled" if slow else "auto"
    )
    point, pool = point_of({}, problem, compare), pool_of()
    rows: list[Any] = []
    controlled = random_labels(problem)
    start, check = time.process_time(), FEWEST
    while True:
        rows += run_group([point], ("network",), len(rows), None, pool, controlled)
        if rows[-1].status != "ok":
            return {"failure": rows[-1].error}
        used = time.process_time() - start
        over = used * (1 + 1 / len(rows)) > cap and len(rows) >= 4
        if len(rows) == check or over:
            (summary,) = results_of("frozen", tuple(rows)).summaries()
            errors = [
                e.standard_error / abs(e.mean) if e.mean else math.inf
                for e in (summary.test_error, summary.train_error)
            ]
            known = errors[0] <= PRECISION and errors[1] <= TRAIN_PRECISION
            if over or known or len(rows) >= MOST:
                break
            check = math.ceil(1.4 * check)
    numbers = {name: getattr(summary, name) for name in _NUMBERS}
    if problem.loss.name == "squared":
        del numbers["test_loss"], numbers["train_loss"]
    return {
        "repetitions": len(rows), "seconds": round(used, 1),
        "simulated": {
            name: [float(f"{e.mean:.7g}"), float(f"{e.standard_error:.3g}")]
            for name, e in numbers.items()
            if math.isfinite(e.mean) and math.isfinite(e.standard_error)
        },
        "version": og.__version__, "numpy": np.__version__,
    }  # fmt: skip


def _relative(record: dict[str, Any]) -> float:
    mean, error = record.get("simulated", {}).get("test_error", (0.0, 1.0))
    return error / abs(mean) if mean else math.inf


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The records of a file by their id; of several the one with the most repetitions."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        before = found.get(record["id"])
        if before is None or record.get("repetitions", 0) >= before.get("repetitions", 0):
            found[record["id"]] = record
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cap", type=float, default=12.0, help="seconds of a problem")
    parser.add_argument("--worse", type=float, help="again, if the standard error is above that")
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help="part I of N")
    given = parser.parse_args()
    known = read(given.out)
    problems = [json.loads(line) for line in given.problems.read_text().splitlines()]
    for problem in problems[given.share[0] :: given.share[1]]:
        before = known.get(problem["id"])
        again = given.worse is not None and before and _relative(before) > given.worse
        if before and not again:
            continue
        stated = og.Problem.from_spec(problem["spec"])
        record = problem | simulated(stated, problem["seed"], given.cap)
        with given.out.open("a") as out:
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
