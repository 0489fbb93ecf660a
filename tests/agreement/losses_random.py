"""Losses, labels and classes of random problems: theory against networks.

Behind notes/2026-11-losses.md.

`python -m tests.agreement.losses_random [seed] [first] [last] [n] [repetitions]`
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

import onegrad as og

QUANTITIES = ("train_loss", "test_loss", "train_error", "test_error", "misclassification")
LABELS = ("component", "component", "teacher", "indices", "classes")
FINITE = 0.02  # beside four standard errors


def random_problem(seed: int, number: int, n: int = 240) -> dict[str, dict[str, Any]]:
    """Problem `number` of a seed is always the same. Kinds of labels take turns."""
    rng = np.random.default_rng([seed, number])
    kind = LABELS[number % len(LABELS)]
    m = round(n * _between(rng, 0.6, 2.5))
    k = round(m * _between(rng, 0.3, 3.0))
    data = _data(rng, n, kind)
    labels, losses = _labels(rng, kind)
    rate = 0.0 if rng.random() < 0.3 else k * _between(rng, 0.05, 2.0)
    training = {"samples": m, "ridge": _between(rng, 1e-3, 1.0), "rate": round(rate, 3),
                "loss": str(rng.choice(losses))}  # fmt: skip
    if rng.random() < 0.4:
        training["gradient"] = "labels-only"
    activation = str(rng.choice(["relu", "tanh", "erf", "gelu", "softplus", "sigmoid"]))
    return {"data": data, "labels": labels, "training": training,
            "network": {"width": k, "activation": activation}}  # fmt: skip


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Uniform in the logarithm, three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def _data(rng: np.random.Generator, n: int, kind: str) -> dict[str, Any]:
    if kind in ("teacher", "indices") and rng.random() < 0.5:
        return {"model": "isotropic", "dim": n}
    data: dict[str, Any] = {"model": "mixture", "dim": n, "spread": 1.0, "rank": 0}
    shape = rng.choice(["means", "spikes", "both"])
    if shape != "spikes" or kind == "classes":
        data["mean"] = _between(rng, 0.7, 3.0)
    if shape != "means":
        data |= {"rank": 1, "spread": _between(rng, 2.0, 25.0)}
    if kind == "classes":
        data["weights"] = [0.4, 0.35, 0.25]
    elif rng.random() < 0.3:
        data["weights"] = [0.65, 0.35]
    if rng.random() < 0.6:
        data["directions"] = "orthogonal"
    if rng.random() < 0.3:
        data["counts"] = "proportional"
    return data


def _labels(rng: np.random.Generator, kind: str) -> tuple[dict[str, Any], list[str]]:
    """Labels, and the losses that they allow."""
    signs = ["logistic", "logistic", "hinge", "squared-hinge", "huber", "absolute"]
    flip = {"flip": _between(rng, 0.03, 0.2)} if rng.random() < 0.4 else {}
    if kind == "component":
        return {"model": "component", **flip}, signs
    if kind == "teacher":
        return {"link": "sign", **flip}, signs
    if kind == "classes":
        return {"model": "component"}, ["squared"]
    link = str(rng.choice(["xor", "product", "sum"]))
    labels = {"model": "multi-index", "indices": 2, "link": link}
    return (labels | flip, signs) if link == "xor" else (labels, ["huber", "absolute", "squared"])


def report(seed: int, number: int, n: int, repetitions: int) -> str:
    """Theory − network in percent (standard error), marked where outside of what is allowed."""
    tables = random_problem(seed, number, n)
    start = time.process_time()
    theory = og.predict(tables, throw=False)
    seconds = time.process_time() - start
    head = f"{number:3d} {written(tables)}"
    if theory.status == "failed":
        return f"{head}\n    refused in {seconds:.1f} s: {theory.error}"
    network = og.simulate(tables, seeds=repetitions, rng=1000 + number)
    cells = []
    for name in QUANTITIES:
        mean, said = getattr(network, name, None), getattr(theory, name)
        if mean is None or said is None or math.isnan(said) or math.isnan(mean.mean):
            continue
        gap, error = said / mean.mean - 1, mean.standard_error / mean.mean
        covered = name == "misclassification" or abs(gap) <= theory.error_estimate + 4 * error
        mark = "!" * (abs(gap) > 4 * error + FINITE) + "?" * (not covered)
        cells.append(f"{name} {100 * gap:+.1f} ({100 * error:.1f}){mark}")
    said = f"estimate {100 * theory.error_estimate:.1f} %, {theory.status}, {seconds:.1f} s"
    return f"{head}\n    {', '.join(cells)}; {said}; {theory.method}"


def written(tables: dict[str, dict[str, Any]]) -> str:
    """One line."""
    return " ".join(f"{k}={v}" for table in tables.values() for k, v in table.items())


def main(
    seed: int = 0, first: int = 0, last: int = 20, n: int = 240, repetitions: int = 40
) -> None:
    for number in range(first, last):
        print(report(seed, number, n, repetitions), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
