"""The audit: random problems over everything that a spec can say, theory against simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError, verb
from onegrad.problem import Problem
from onegrad.results.rows import QUANTITIES
from onegrad.results.summaries import Summary
from onegrad.runs.coordinator import Progress
from onegrad.runs.cost import Agree
from onegrad.runs.engines import Dask, Local
from onegrad.runs.run import run_experiment
from onegrad.simulate.control_variates import random_labels
from onegrad.spec.experiment import Compare, Experiment, Point
from onegrad.spec.figure_options import FigureOptions
from onegrad.validate.audit_report import Audit, Checked
from onegrad.validate.random_specs import Tables, random_spec

_FEWEST, _MOST = 24, 240  # repetitions; a standard error of fewer than 24 is too often too small
# Operations for all repetitions of a problem, about 3 s: large problems get fewer
_OPERATIONS = 3e10


@dataclass(frozen=True)
class AuditPlan:
    """Which problems, and how well they are simulated.

    problems, seed : numbers 0 … problems − 1 of this seed (`random_spec`)
    dims : smallest and largest n
    precision : relative standard error of the mean test error to aim at, within a limit on what a
        problem may cost
    only : these numbers instead of the first `problems`
    """

    problems: int = 500
    seed: int = 0
    dims: tuple[int, int] = (200, 700)
    precision: float = 0.005
    only: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.problems <= 100_000:
            raise SpecError.of(
                "problems", self.problems, "must be a whole number from 1 to 100,000",
                "For example 500",
            )  # fmt: skip

    def specs(self) -> dict[int, Tables]:
        """The tables of every problem, by its number."""
        numbers = self.only or range(self.problems)
        return {i: random_spec(self.seed, i, *self.dims) for i in numbers}

    def experiments(self) -> list[Experiment]:
        """Every problem is a point; those whose means control variates correct, and the others."""
        groups: dict[bool, list[Point]] = {}
        for number, tables in self.specs().items():
            problem = Problem.from_spec(tables)
            members = groups.setdefault(random_labels(problem), [])
            settings = {"problem": number}
            members.append(Point(settings, problem, self._compare(problem), len(members)))
        return [
            Experiment(
                f"audit {self.seed}", points[0].compare, {}, tuple(points), FigureOptions()
            )
            for points in groups.values()
        ]  # fmt: skip

    def _compare(self, problem: Problem) -> Compare:
        # the exact risk of kinks is a slow series that may not converge
        slow = problem.network.activation.breakpoints and problem.network.activation.name != "relu"
        most = max(_FEWEST, min(_MOST, int(_OPERATIONS / operations(problem))))
        return Compare(
            models=("network", "theory"), seeds="auto", precision=self.precision,
            fewest_seeds=_FEWEST, most_seeds=most, seed=self.seed,
            risk="sampled" if slow else "auto",
        )  # fmt: skip


def operations(problem: Problem) -> float:
    """Approximate operations of a repetition: products, solution, elementwise functions."""
    n, k, m, step = problem.dim, problem.width, problem.samples, problem.step_samples
    return 2.0 * n * k * (2 * step + m + k / 2) + m * k * min(m, k) + 300.0 * k * (m + step + k)


def run_audit(
    plan: AuditPlan,
    out: str | Path,
    engine: Local | Dask = Local(),
    progress: Progress | None = None,
    agree: Agree | None = None,
) -> Audit:
    """What `out` does not have yet is computed, as by `run_experiment`."""
    summaries: dict[tuple[int, str], Summary] = {}
    for experiment in plan.experiments():
        results = run_experiment(experiment, out, engine, progress, agree)
        summaries |= {(s.point["problem"], s.model): s for s in results.summaries()}
    return Audit(
        plan.seed,
        tuple(
            replace(
                _checked(i, tables, summaries[i, "network"], summaries[i, "theory"]), seed=plan.seed
            )
            for i, tables in plan.specs().items()
        ),
    )


@verb
def audit(
    problems: int = 500,
    seed: int = 0,
    out: str | Path = "results/audit",
    dims: tuple[int, int] = (200, 700),
    engine: Local | Dask = Local(),
) -> Audit:
    """`onegrad audit` from Python: random problems, theory against simulation.

    problems, seed : numbers 0 … problems − 1 of this seed; more of them go on where fewer stopped
    dims : smallest and largest n
    engine : as of `run`
    """
    return run_audit(AuditPlan(problems, seed, dims), out, engine)


def _checked(number: int, tables: Mapping[str, Any], network: Summary, theory: Summary) -> Checked:
    refused = theory.status != "ok"
    return Checked(
        number,
        dict(tables),
        tables["data"]["dim"],
        {} if refused else {q: getattr(theory, q).mean for q in QUANTITIES},
        {q: getattr(network, q) for q in QUANTITIES},
        theory.error_estimate,
        theory.seconds,
        network.seeds,
        theory.error,
        network.error,
    )
