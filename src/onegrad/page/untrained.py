"""The same network on the same data without the step: random features, to compare with."""

from __future__ import annotations

from typing import Any

from onegrad.problem import Problem

# Keys of the steps: they have no meaning without a rate
_STEPS = ("steps", "batch", "optimiser", "damping")


def tables_without_step(problem: Problem) -> dict[str, Any]:
    """The spec of the problem at learning rate 0, its data as they were."""
    tables = tables_by_hand(problem)
    training = {k: v for k, v in tables["training"].items() if k not in _STEPS}
    return tables | {"training": training | {"rate": 0.0}}


def without_step(problem: Problem) -> Problem:
    """The same network on the same data with learning rate 0."""
    return Problem.from_spec(tables_without_step(problem))


def tables_by_hand(problem: Problem) -> dict[str, Any]:
    """The same spec with its rate and spread as numbers, without [scaling]."""
    tables = problem.model_dump(mode="json", exclude_none=True)
    tables["training"]["rate"] = problem.rate
    tables["scaling"] = {}
    if "spread" in type(problem.data).model_fields:  # θ came with [scaling]
        tables["data"]["spread"] = problem.spread
    return tables
