"""A network after some steps: simulated errors, predicted errors, and the learned function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onegrad.compute.randomness import Streams
from onegrad.errors import OnegradError
from onegrad.gaussian.polynomials import sqrt_factorial
from onegrad.page.bounds import MOST_STEPS
from onegrad.page.untrained import tables_by_hand, tables_without_step
from onegrad.predict.layers import predict_readout
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.models.base import Fitted, exact_risk
from onegrad.simulate.models.network import fit_network
from onegrad.simulate.network.trial import Trial
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.learned import LearnedFunction, Learner, learned_by
from onegrad.theory.neurons.recursion import recursion_holds
from onegrad.theory.neurons.types import drawn_types
from onegrad.theory.options import DRAFT, Theory

COUNTS = tuple(range(MOST_STEPS + 1))  # steps that the page shows
VERSUS: dict[str, tuple[str, ...]] = {
    "batch": ("fresh", "same"),
    "optimiser": ("gd", "kfac", "sign", "adam", "muon"),
}
_NETWORKS = 4  # trained for the mean, one for a draft
_DEGREES = 4


def step_tables(problem: Problem, versus: str, option: str, steps: int) -> dict[str, Any]:
    """The spec of the problem after so many steps, on that batch or by that optimiser."""
    if steps == 0:
        return tables_without_step(problem)
    tables = problem.model_dump(mode="json", exclude_none=True)
    own = (versus, "steps", *(("damping",) if versus == "optimiser" and option != "kfac" else ()))
    training = {k: v for k, v in tables["training"].items() if k not in own}
    if steps > 1:
        training["steps"] = steps
    if versus == "optimiser" or steps > 1:  # one step knows no other batch
        training[versus] = option
    tables["training"] = training
    for table, key in (("training", "rate"), ("scaling", "exponent")):
        given = tables[table].get(key)
        if isinstance(given, list):  # the last one goes on
            tables[table][key] = (given + given[-1:] * steps)[:steps]
    return tables


def after_steps(
    tables: Mapping[str, Any], coarse: bool, seed: int, direction: str, component: int, equal: bool
) -> dict[str, Any]:
    """Means over networks drawn and trained with that seed.

    test_error, train_error : of the networks; alignment : |cos| between what all neurons learned
    most of and the teacher; learned, target : functions of t, and coefficients
    equal : set the rate such that the first step is as long as that of gradient descent
    """
    problem = _problem(tables, seed, equal)
    count = 1 if coarse else _NETWORKS
    trials = [Trial(problem, Streams(seed, i)) for i in range(count)]
    fits = [fit_network(trial) for trial in trials]
    tests = [_risk(trial, fitted) for trial, fitted in zip(trials, fits, strict=True)]
    teacher = problem.links is not None or problem.joint_link is not None
    answer: dict[str, Any] = {
        "test_error": np.mean(tests),
        "test_error_se": np.std(tests, ddof=1) / math.sqrt(count) if count > 1 else math.nan,
        "train_error": np.mean([fitted.readout.train_error for fitted in fits]),
        "alignment": np.mean([_alignment(one) for one in trials]) if teacher else math.nan,
        "networks": count,
        "label_variance": np.mean([trial.instance.label_variance for trial in trials]),
        "rate": problem.rate,
        "spread": problem.spread,
    }
    learned = [
        learned_of_network(trial, fitted, direction, component)[1]
        for trial, fitted in zip(trials, fits, strict=True)
    ]
    return {k: float(v) if isinstance(v, np.floating) else v for k, v in answer.items()} | (
        _mean_function([one for one in learned if one is not None])
    )


def theory_after_steps(tables: Mapping[str, Any], seed: int, equal: bool) -> dict[str, Any]:
    """Errors by the theory: without a draw where one knows how, else of another first layer than
    those of the networks, drawn and trained for it."""
    problem = _problem(tables, seed, equal)
    known = _without_draw(problem)
    test, train = known or _of_layer(Trial(problem, Streams(seed, 0, theory=True)))
    return {"theory_test": test, "theory_train": train, "drawn": known is None}


def _problem(tables: Mapping[str, Any], seed: int, equal: bool) -> Problem:
    problem = Problem.from_spec(tables)
    return with_equal_first_step(problem, seed) if equal else problem


def with_equal_first_step(problem: Problem, seed: int) -> Problem:
    """The rate of another optimiser than gradient descent such that the first step moves W by as
    much, ‖Ŵ − W₀‖ of the first draw; updates are proportional to their rate."""
    if problem.training.optimiser == "gd" or not problem.trained:
        return problem

    def moved(optimiser: str, rate: float) -> float:
        tables = tables_by_hand(problem)
        tables["training"] |= {"optimiser": optimiser, "rate": rate, "steps": 1, "batch": "fresh"}
        trial = Trial(Problem.from_spec(tables), Streams(seed, 0))
        return float(np.linalg.norm(trial.updated_weights - trial.weights))

    ratio = moved("gd", problem.rate) / moved(problem.training.optimiser, 1.0)
    tables = tables_by_hand(problem)
    tables["training"]["rate"] = [ratio * rate / problem.rate for rate in problem.rates]
    return Problem.from_spec(tables)


def _without_draw(problem: Problem) -> tuple[float, float] | None:
    """Test and training error by the theory of types, where it holds: one step, some fresh ones."""
    if problem.trained and not problem.one_step and not recursion_holds(problem):
        return None
    found = predict(problem, Theory("conditional", DRAFT), throw=False)
    return None if found.error else (found.test_error, found.train_error)


def _of_layer(trial: Trial) -> tuple[float, float]:
    """Test and training error by the theory of this first layer; NaN where that refuses."""
    try:
        found = predict_readout(
            trial.updated_weights, trial.problem, instance=trial.instance, start=trial.weights,
            theory=Theory(accuracy=DRAFT),
        )  # fmt: skip
    except OnegradError:
        return math.nan, math.nan
    return found.test_error, found.train_error


def _risk(trial: Trial, fitted: Fitted) -> float:
    try:
        return exact_risk(trial, fitted).value
    except OnegradError:
        return math.nan


def _alignment(trial: Trial) -> float:
    """|cos| between the leading right singular vector of Ŵ − W₀ and the teacher's directions."""
    change, teacher = trial.updated_weights - trial.weights, trial.instance.teacher.direction
    if not np.any(change):
        return math.nan
    leading = np.linalg.eigh(change.T @ change)[1][:, -1]
    plane = np.linalg.qr(teacher.reshape(len(leading), -1))[0]
    return float(np.linalg.norm(leading @ plane))


def learned_of_network(
    trial: Trial, fitted: Fitted, direction: str, component: int, degrees: int = _DEGREES
) -> tuple[list[str], LearnedFunction | None]:
    """Known directions, and what this network has learned along one; None without directions."""
    problem, population = trial.problem, trial.instance.population
    component = min(component, problem.components - 1)
    readout = fitted.readout.coefficients
    if problem.outputs > 1:  # an output for each class: the one that is 1 in its component
        readout = readout[:, component]
        values = [float(c == component) for c in range(problem.components)]
        tables = problem.model_dump(mode="json", exclude_none=True)
        problem = Problem.from_spec(tables | {"labels": tables["labels"] | {"values": values}})
    labelled = problem.links is not None or problem.joint_link is not None
    geometry = drawn_geometry(population, trial.instance.teacher.direction if labelled else None)
    known = list(geometry.directions)
    if not known:
        return known, None
    assert geometry.basis is not None
    neurons = drawn_types(population.seen(trial.updated_weights), geometry.basis)
    name = direction if direction in known else known[-1]  # teachers are the last ones
    return known, learned_by(Learner(problem, geometry, neurons, readout), name, component, degrees)


def _mean_function(functions: list[LearnedFunction]) -> dict[str, Any]:
    """The mean of what several networks have learned."""
    if not functions:
        return {}
    scale = sqrt_factorial(_DEGREES)
    first = functions[0]
    return {
        "direction": first.direction,
        "t": first.t,
        "learned": np.mean([one.learned for one in functions], axis=0),
        "target": np.mean([one.target for one in functions], axis=0),
        "coefficients": np.mean([one.learned_coefficients for one in functions], axis=0) * scale,
        "target_coefficients": first.target_coefficients * scale,
    }
