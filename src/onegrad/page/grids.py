"""Grids of numbers for pages without a server: theory along an axis, dots of trained networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onegrad.errors import OnegradError
from onegrad.page.work import finite
from onegrad.predict.predict import predict_curve
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.spec.experiment import Experiment


def axis(
    symbol: str, title: str, values: Sequence[float] | Any, log: bool = False, start: int = 0
) -> dict[str, Any]:
    """An axis or a slider; start : the value that a slider begins at, by its number."""
    return {
        "symbol": symbol, "title": title, "values": rounded(values, 6), "log": log, "start": start,
    }  # fmt: skip


def rounded(values: Any, digits: int) -> list[Any]:
    """Numbers with so many significant digits; None where there is none."""
    known = finite([None if v is None else float(v) for v in values])
    return [None if v is None else float(f"{v:.{digits}g}") for v in known]


def grid(tables: Mapping[str, Any], sweep: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the theory says along one sweep."""
    found = Experiment.from_tables({**tables, "sweep": dict(sweep)})
    return lines_of([point.problem for point in found.points])


def lines_of(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """test_error and label_variance of problems along an axis; refused points are an error."""
    answers = predict_curve(problems)
    for one in answers:
        if one.error:
            raise OnegradError(one.error)
    return [{"test_error": a.test_error, "label_variance": a.label_variance} for a in answers]


def simulated(problems: Sequence[Problem], seeds: int) -> dict[str, list[Any]]:
    """Mean test errors of trained networks, with their standard errors, and learning rates."""
    found = [simulate(problem, seeds=seeds).test_error for problem in problems]
    return {
        "mean": rounded([one.mean for one in found], 4),
        "se": rounded([one.standard_error for one in found], 3),
        "rate": rounded([problem.rate for problem in problems], 5),
    }
