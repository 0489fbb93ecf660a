"""What makes the theory of other losses shorter: rare types, rules as fine as sizes leave sense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onegrad.problem import Problem
from onegrad.theory import conditional
from onegrad.theory.chance import chance_of
from onegrad.theory.size.finite_size import finite_size_bound

LOSSES = ("test_loss", "train_loss", "test_error", "train_error")


def spiked(width: int = 250, spread: float = 10.0, **changes: Any) -> Problem:
    return Problem.from_spec({
        "data": {"model": "mixture", "dim": 250, "spread": spread, "mean": 2.0},
        "labels": {"model": "component"},
        "network": {"activation": "tanh", "width": width},
        "training": {"samples": 250, "ridge": 1e-3, "rate": 125.0, "loss": "logistic"} | changes,
    })  # fmt: skip


def test_rules_are_as_fine_as_finite_sizes_leave_sense() -> None:
    """A tenth of what sizes leave open, or the accuracy where these are not asked about."""
    problem = spiked(width=60)
    task = chance_of(problem, "auto", 0).typical
    fine = conditional.Theory(accuracy=0.002)
    short = conditional.predict_mixture(task, fine)
    limit = conditional.predict_mixture(task, replace(fine, finite_size=False))
    assert 0.002 < short.apart < 0.01 and short.status == "ok"
    assert limit.types > short.types or limit.status == "not settled"
    exact = replace(fine, policy=replace(fine.policy, of_sizes=0.0))
    long = conditional.predict_mixture(task, exact)
    assert long.types > short.types
    for name in LOSSES:  # what the next resolution changes is far below what is stated
        change = abs(getattr(long, name) / getattr(short, name) - 1)
        assert change < 0.2 * finite_size_bound(short)
