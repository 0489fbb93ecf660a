"""Losses of the readout: theory against networks over a grid.

Prints the table of notes/2026-11-losses.md.

`python -m tests.agreement.losses_grid [n] [seeds] [kind …]`
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import onegrad as og
from onegrad.gaussian.convex_losses import NAMES
from onegrad.results.results import Results
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Compare, Point

QUANTITIES = ("train_loss", "test_loss", "misclassification")
RATIOS = (0.3, 1.0, 3.0)
STEPS = {"no step": 0.0, "step": 0.5}  # rate over width
KINDS: dict[str, dict[str, Any]] = {
    "means": {
        "data": {"model": "mixture", "mean": 2.0, "rank": 0, "directions": "orthogonal"},
        "labels": {"model": "component"},
        "activation": "relu",
    },
    "spikes": {
        "data": {"model": "mixture", "spread": 10.0, "directions": "orthogonal"},
        "labels": {"model": "component"},
        "activation": "relu",
    },
    "sign teacher": {
        "data": {"model": "isotropic"}, "labels": {"link": "sign"}, "activation": "tanh",
    },
    "flips": {
        "data": {"model": "mixture", "mean": 2.0, "rank": 0, "directions": "orthogonal"},
        "labels": {"model": "component", "flip": 0.1},
        "activation": "tanh",
    },
}  # fmt: skip


class Setting(NamedTuple):
    """A point of the grid."""

    kind: str
    ratio: float
    step: str

    def problem(self, n: int, loss: str) -> og.Problem:
        kind, width = KINDS[self.kind], round(self.ratio * n)
        data = {"dim": n, **kind["data"]}
        if data["model"] == "mixture":
            data.setdefault("spread", 1.0)
        training = {"samples": n, "ridge": 1e-3, "loss": loss, "gradient": "labels-only"}
        return og.Problem(
            data=data, labels=kind["labels"],
            network={"width": width, "activation": kind["activation"]},
            training={**training, "rate": STEPS[self.step] * width},
        )  # fmt: skip


class Compared(NamedTuple):
    """Theory over the network, minus one, and the network's standard error, relatively."""

    gap: dict[str, float]
    error: dict[str, float]
    estimate: float

    def within(self, quantity: str, finite: float) -> bool:
        return abs(self.gap[quantity]) <= 4 * self.error[quantity] + finite


def compare(setting: Setting, n: int, seeds: int, losses: Any = NAMES) -> dict[str, Compared]:
    """All losses of a setting on the same draws."""
    problems = [setting.problem(n, loss) for loss in losses]
    points = [
        Point({"training.loss": loss}, problem, Compare(models=("network",)), number=i)
        for i, (loss, problem) in enumerate(zip(losses, problems, strict=True))
    ]
    rows = [row for seed in range(seeds) for row in run_group(points, ["network"], seed)]
    found = {s.point["training.loss"]: s for s in Results("losses", tuple(rows)).summaries()}
    answers = {}
    for loss, problem in zip(losses, problems, strict=True):
        theory, network = og.predict(problem, throw=False), found[loss]
        means = {q: getattr(network, q) for q in QUANTITIES}
        known = {q: math.nan if (v := getattr(theory, q)) is None else v for q in means}
        gap = {q: known[q] / e.mean - 1 for q, e in means.items()}
        error = {q: e.standard_error / e.mean for q, e in means.items()}
        answers[loss] = Compared(gap, error, theory.error_estimate)
    return answers


def main(n: int = 600, seeds: int = 6, *kinds: str) -> None:
    for kind in kinds or KINDS:
        for step in STEPS:
            for ratio in RATIOS:
                for loss, one in compare(Setting(kind, ratio, step), n, seeds).items():
                    cells = [f"{100 * one.gap[q]:+.1f} ({100 * one.error[q]:.1f})"
                             for q in QUANTITIES]  # fmt: skip
                    off = [q for q in QUANTITIES if not one.within(q, 0.02)]
                    estimate = "–" if math.isnan(one.estimate) else f"{100 * one.estimate:.1f}"
                    print(f"| {kind} | {step} | {ratio:g} | {loss} | {' | '.join(cells)} | "
                          f"{estimate} |", "!" * len(off), flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
