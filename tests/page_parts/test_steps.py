"""A network step by step: the numbers are those of simulation, and what it learned is its own."""

import json

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.page.requests import read_request
from onegrad.page.steps import (
    COUNTS,
    VERSUS,
    after_steps,
    step_tables,
    theory_after_steps,
    with_equal_first_step,
)
from onegrad.problem import Problem
from onegrad.simulate.models.network import fit_network
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import simulate

TABLES = {
    "data": {"model": "mixture", "dim": 120, "weights": [0.5, 0.5], "rank": 1, "spread": 4.0},
    "labels": {"model": "single-index", "link": "relu"},
    "network": {"convention": "mixture", "activation": "relu", "width": 80},
    "training": {"samples": 150, "step_samples": 240, "ridge": 1e-3, "rate": 60.0},
}
WHERE = {"seed": 0, "direction": "teacher", "component": 0, "equal": False}


@pytest.fixture(scope="module")
def found():
    """Every batch after every number of steps."""
    problem = Problem.from_spec(TABLES)
    cells = {
        (batch, steps): step_tables(problem, "batch", batch, steps)
        for batch in VERSUS["batch"]
        for steps in (0, 1, 2, 5)
    }
    return {
        place: after_steps(tables, False, **WHERE) | theory_after_steps(tables, 0, False)
        for place, tables in cells.items()
    }


def test_the_networks_are_those_of_simulate(found):
    problem = Problem.from_spec(
        TABLES | {"training": TABLES["training"] | {"steps": 2, "batch": "same"}}
    )
    expected = simulate(problem, seeds=4, rng=0, models=["network"])
    ours = found["same", 2]
    assert ours["networks"] == 4
    assert ours["test_error"] == pytest.approx(expected.test_error.mean, rel=1e-6)
    assert ours["train_error"] == pytest.approx(expected.train_error.mean, rel=1e-6)


def test_theory_and_networks_agree_and_steps_go_on_learning(found):
    for (batch, steps), one in found.items():
        off = abs(one["theory_test"] - one["test_error"])
        assert off < 4 * one["test_error_se"] + 0.08 * one["test_error"], (batch, steps)
    assert not found["fresh", 2]["drawn"] and found["same", 2]["drawn"]
    for key in ("test_error", "coefficients"):  # one step knows no other batch
        assert np.array_equal(found["fresh", 1][key], found["same", 1][key])
    errors = [found["fresh", steps]["test_error"] for steps in (0, 1, 2, 5)]
    assert errors == sorted(errors, reverse=True)
    assert found["fresh", 5]["test_error"] < 0.9 * found["same", 5]["test_error"]
    assert found["fresh", 5]["alignment"] > found["fresh", 1]["alignment"]


def test_what_it_learned_is_the_mean_output_of_the_network():
    """E[f | t] against 40,000 samples of the network itself; another network is refused."""
    problem = Problem.from_spec(step_tables(Problem.from_spec(TABLES), "batch", "fresh", 2))
    ours = after_steps(problem.model_dump(mode="json", exclude_none=True), True, **WHERE)
    for number, right in ((0, True), (1, False)):
        trial = Trial(problem, Streams(0, number))
        a, weights = fit_network(trial).readout.coefficients, trial.updated_weights
        batch = trial.instance.sample(40_000, np.random.default_rng(5))
        x = batch.x[batch.component == 0]
        along = x @ trial.instance.teacher.direction
        t, output = (along - along.mean()) / along.std(), problem.activation(x @ weights.T) @ a
        products = [output * h for h in (np.ones_like(t), t, (t**2 - 1) / np.sqrt(2))]
        sampled = np.array([np.mean(p) for p in products])
        error = np.array([np.std(p) for p in products]) / np.sqrt(len(t))
        off = np.abs(sampled - ours["coefficients"][:3])
        assert bool(np.all(off < 4 * error + 0.01 * np.abs(sampled))) is right


def test_other_optimisers_move_the_weights_as_far():
    problem = Problem.from_spec(TABLES)

    def moved(one):
        trial = Trial(one, Streams(0, 0))
        return np.linalg.norm(trial.updated_weights - trial.weights)

    for option in VERSUS["optimiser"]:
        one = Problem.from_spec(step_tables(problem, "optimiser", option, 1))
        assert moved(with_equal_first_step(one, 0)) == pytest.approx(moved(problem), rel=1e-6)
        three = Problem.from_spec(step_tables(problem, "optimiser", option, 3))
        assert len(set(with_equal_first_step(three, 0).rates)) == 1


def test_tables_of_lists_of_rates_and_other_options():
    training = TABLES["training"] | {"steps": 2, "rate": [60.0, 30.0], "optimiser": "kfac"}
    problem = Problem.from_spec(TABLES | {"training": training | {"damping": 0.2}})
    for steps in COUNTS:
        for versus, options in VERSUS.items():
            for option in options:
                one = Problem.from_spec(step_tables(problem, versus, option, steps))
                assert one.trained is (steps > 0)
                assert one.rates[:3] == ((60.0, 30.0, 30.0)[:steps] or (0.0,))
                kept = one.training.optimiser == "kfac" and steps > 0
                assert one.training.damping == (0.2 if kept else None)


@pytest.mark.parametrize(("key", "value"), [("width", 2000), ("width", 100_000)])
def test_large_networks_are_refused(key, value):
    spec = TABLES | {"network": TABLES["network"] | {key: value}}
    spec |= {"compare": {"models": ["theory"]}}
    with pytest.raises(SpecError, match=r"too large|at most 1600"):
        read_request(json.dumps({"type": "steps", "id": 1, "spec": spec}))
