"""Problems that several tests ask about, and a plain simulation of them beside the theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from onegrad.data.population import Population
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.directions.arrangement import Arrangement
from onegrad.theory.directions.geometry import Geometry, drawn_geometry
from onegrad.theory.neurons.step import label_power
from onegrad.theory.neurons.types import drawn_types
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution, Task

from . import plain_simulation as plain

COMPONENT = {"model": "component"}


def mixture(
    n: int = 1000,
    activation: str = "relu",
    labels: dict[str, Any] | None = None,
    ratio: float = 1.0,
    rate: float | None = None,
    ridge: float = 1e-4,
    **others: Any,
) -> Problem:
    """m = m̃ = n samples in the mixture convention; others: strength, weighting, keys of [data].

    With a `rate`, strength and weighting set the spread alone.
    """
    strength, weighting = others.pop("strength", 0.74), others.pop("weighting", 0.5)
    scaling, by_hand = {"strength": strength, "weighting": weighting}, {}
    if rate is not None:
        others["spread"] = n ** (strength * (1 - weighting))
        scaling, by_hand = {}, {"rate": rate}
    return Problem(
        data={"model": "mixture", "dim": n, **others},
        labels=labels or {"model": "single-index"},
        network={"activation": activation, "width": max(1, round(ratio * n))},
        training={"samples": n, "ridge": ridge, **by_hand},
        scaling=scaling,
    )


def orthogonal(n: int = 1000, activation: str = "relu", **others: Any) -> Problem:
    """Directions without chance overlaps, so that one prediction fits all seeds."""
    return mixture(n, activation, directions="orthogonal", **others)


def conditional(problem: Problem, **options: Any) -> Solution:
    return predict_mixture(Task.of(problem), Theory(**options))


def agrees(value: float, reference: tuple[float, float]) -> bool:
    """Within 4 standard errors + 2 % of a simulated mean."""
    mean, standard_error = reference
    return abs(value - mean) <= 4 * standard_error + 0.02 * mean


def assert_agreement(measured: np.ndarray, predicted: np.ndarray, what: str = "train test") -> None:
    """|mean difference| ≤ 4 standard errors + 2 %, for the first columns."""
    difference = measured - predicted
    error = difference.std(axis=0, ddof=1) / len(difference) ** 0.5
    for j, name in enumerate(what.split()):
        allowed = 4 * error[j] + 0.02 * measured[:, j].mean()
        assert abs(difference[:, j].mean()) <= allowed, name


def plain_instance(problem: Problem, rng: np.random.Generator) -> tuple[plain.Instance, Geometry]:
    """Explicit vectors, drawn as plainly as can be, and their geometry."""
    weights = list(getattr(problem.data, "weights", (1.0,)))
    rank, mean = getattr(problem.data, "rank", 0), getattr(problem.data, "mean", 0.0)
    drawn = plain.draw_instance(problem.data.dim, weights, rank, problem.spread, mean, rng)
    population = Population(drawn.weights, drawn.means, drawn.spikes, drawn.strengths)
    return drawn, drawn_geometry(population, None if problem.links is None else drawn.teacher)


def plain_result(
    problem: Problem, instance: plain.Instance, rng: np.random.Generator, test_samples: int
) -> plain.Result:
    """The scales of the conventions are written out here, not taken from the Problem."""
    n, k, m = problem.data.dim, problem.width, problem.training.samples
    isotropic = problem.network.convention == "isotropic"
    trace = n + problem.spread * getattr(problem.data, "rank", 0)
    network = plain.Network(
        activation=problem.activation,
        derivative=problem.activation.derivative,
        width=k,
        samples=m,
        step_samples=m,
        rate=problem.rate,
        ridge=problem.training.ridge * (1 if isotropic else k),
        weight_variance=1 / n if isotropic else 1 / trace,
        readout_std=k**-0.5 if isotropic else 1 / k,
        exact_gradient=problem.training.gradient == "exact",
    )
    rules: Any = problem.component_values or problem.links
    return plain.simulate(instance, network, list(rules), problem.labels.noise, rng, test_samples)


def simulated_and_predicted(
    seeds: int, problem: Problem, hybrid: bool = False, networks: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, 3) arrays of train, test and sign errors, theory with the overlaps of each draw.

    networks : so many of them on each draw of the directions, which are predicted once.

    Training errors of single-index problems are ratio estimates: divided by the sample's mean y²
    and multiplied by its expectation, which removes most of one training set's fluctuation.
    """
    measured, predicted = [], []
    for seed, child in enumerate(np.random.SeedSequence(0).spawn(seeds)):
        rng = np.random.default_rng(child)
        if seed % networks == 0:
            instance, geometry = plain_instance(problem, rng)
            power = label_power(problem, geometry)
        result = plain_result(problem, instance, rng, 4 * problem.dim)
        neurons = None
        if hybrid:
            assert networks == 1 and geometry.basis is not None
            e = result.gradient_direction
            e = e - geometry.basis @ (geometry.basis.T @ e)
            basis = np.concatenate([geometry.basis, (e / np.linalg.norm(e))[:, None]], axis=1)
            neurons = drawn_types(result.first_layer, basis)
        if seed % networks == 0:
            task = Task(problem, geometry, neurons)
            solution = predict_mixture(task, Theory(finite_size=False))
        ratio_estimate = 1.0 if problem.links is None else power / result.train_power
        measured.append([result.train_error * ratio_estimate, result.test_error, result.wrong_sign])
        predicted.append(
            [solution.train_error, solution.test_error, solution.misclassification or np.nan]
        )
    return np.array(measured), np.array(predicted)


def typical_geometry(*law: Any, **more: Any) -> Geometry:
    """The geometry of an `Arrangement` at typical overlaps."""
    return Arrangement(*law, **more).geometry()
