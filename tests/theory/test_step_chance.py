"""Chance parts of the first step along strong spikes: against first layers and networks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import onegrad.theory.neurons.step_chance as module
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import simulate
from onegrad.theory.chance import chance_of
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.step import StepChance, step_sample
from onegrad.theory.neurons.step_chance import step_shares
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task


def spiked(n: int = 200, rate: float = 5.0, **others: Any) -> Problem:
    """One strong spike, isotropic convention, exact gradient, a tanh teacher, m = 4n, k = n."""
    network = {"activation": others.pop("activation", "tanh"), "width": n}
    gradient = others.pop("gradient", "exact")
    return Problem(
        data={"model": "mixture", "dim": n, "weights": [1.0], "spread": 25.6,
              "directions": "orthogonal", **others},
        labels={"model": "single-index", "link": "tanh"},
        network={**network, "convention": "isotropic"},
        training={"samples": 4 * n, "ridge": 0.01, "rate": rate, "gradient": gradient},
    )  # fmt: skip


def test_slope_of_trained_neurons_on_their_readout() -> None:
    """Σ a_i v_i/Σ a_i² along the spike is c/(k E a²) + η g(c) + η ζ: regression and noise."""
    problem = spiked()
    variance = problem.weight_variance
    measured, expected, noise = [], [], []
    for seed in range(60):
        trial = Trial(problem, Streams(seed, 0))
        geometry = geometry_of(problem, "drawn", seed)
        assert geometry.basis is not None
        spike = geometry.basis @ geometry.directions["spike 1.1"]
        a, before, after = trial.readout, trial.weights @ spike, trial.updated_weights @ spike
        measured.append(a @ after / (a @ a))
        c = float(a @ before)
        chance = StepChance(geometry.directions["spike 1.1"] * c, np.zeros(geometry.rank), 1)
        sample = step_sample(problem, geometry, QuadratureLevel.at(1), True, chance)
        z, w = np.polynomial.hermite_e.hermegauss(7)
        start = np.zeros((7, geometry.rank + 2))
        start[:, : geometry.rank] = math.sqrt(variance) * np.outer(
            z, geometry.directions["spike 1.1"]
        )
        bulk = np.full(7, math.sqrt(problem.dim * variance))
        push = sample.moments(problem.activation, start, bulk).push[:, : geometry.rank]
        along = w / w.sum() @ (push @ geometry.directions["spike 1.1"])
        expected.append(c / (a @ a) + problem.rate * along)
        basis = geometry.directions["spike 1.1"][:, None]
        noise.append(problem.rate**2 * module._noise_variance(problem, geometry, basis)[0])
    x, y = np.array(expected), np.array(measured)
    slope = x @ y / (x @ x)
    left = y - x
    assert slope == pytest.approx(1.0, abs=4 * left.std() / math.sqrt(x @ x))
    assert np.corrcoef(x, y)[0, 1] > 0.9
    assert left.var() / np.mean(noise) == pytest.approx(1.0, abs=4 * math.sqrt(2 / 60))


@pytest.fixture(scope="module")
def networks() -> dict[int, np.ndarray]:
    """Test errors of networks with n = 200 and 400."""
    return {
        n: np.array([row.test_error for row in simulate(spiked(n), seeds=seeds).results.rows])
        for n, seeds in ((200, 60), (400, 24))
    }


def agrees(value: float, measured: np.ndarray) -> bool:
    """Within 4 standard errors and 200/n %, which the 1/n correction leaves."""
    n = 200 if len(measured) == 60 else 400
    error = measured.std(ddof=1) / math.sqrt(len(measured))
    return bool(abs(value - measured.mean()) <= 4 * error + 2.0 / n * measured.mean())


@pytest.mark.parametrize("n", [200, 400])
def test_networks_have_the_mean_over_the_steps_chance(
    n: int, networks: dict[int, np.ndarray]
) -> None:
    """Negative control: without c and ζ errors are 15 to 25 % too low."""
    problem = spiked(n)
    found = predict(problem, "conditional")
    assert agrees(found.test_error, networks[n])
    assert found.error_estimate < 0.05
    assert found.spread_over_draws is not None
    assert found.spread_over_draws == pytest.approx(networks[n].std(ddof=1), rel=0.5)
    chance = chance_of(problem, "auto", 0)
    tasks = [replace(chance.typical, chance=None), chance.task(np.zeros(1))]
    for one in solve_tasks(tasks, QuadratureLevel.at(1), 1e-6):
        assert isinstance(one, Solution)
        assert not agrees(one.test_error, networks[n])


def test_one_size_of_c_is_not_the_mean() -> None:
    """Negative control at n = 200: |c| fixed at one standard deviation."""
    problem = spiked()
    full = predict(problem, "conditional").test_error
    (typical,) = solve_tasks([chance_of(problem, "auto", 0).typical], QuadratureLevel.at(1), 1e-6)
    assert isinstance(typical, Solution)
    assert 0.02 < typical.test_error / full - 1 < 0.10


def test_sampling_noise_counts_without_the_initial_output() -> None:
    """Labels only, mixture convention, rate 5k; negative control: ζ left out."""
    problem = Problem(
        data={"model": "mixture", "dim": 200, "weights": [1.0], "spread": 25.6,
              "directions": "orthogonal"},
        labels={"model": "single-index", "link": "tanh"},
        network={"activation": "tanh", "width": 200},
        training={"samples": 200, "ridge": 1e-4, "rate": 1000.0, "gradient": "labels-only"},
    )  # fmt: skip
    measured = np.array([row.test_error for row in simulate(problem, seeds=60).results.rows])
    assert agrees(predict(problem, "conditional").test_error, measured)
    without = Task(problem, geometry_of(problem))
    assert not agrees(predict_mixture(without).test_error, measured)


def test_when_it_counts() -> None:
    """Q grows with the square of the rate; below 0.02 nothing is averaged over."""
    geometry = geometry_of(spiked())
    small, large = (sum(step_shares(spiked(rate=rate), geometry).values()) for rate in (0.01, 0.02))
    assert large == pytest.approx(4 * small, rel=1e-6)
    assert small < 0.02 and chance_of(spiked(rate=0.01), "auto", 0).strong == ()
    assert chance_of(spiked(), "auto", 0).strong == ("spike 1.1",)
    assert sum(step_shares(spiked(gradient="labels-only"), geometry).values()) > 0.02
    assert step_shares(spiked(rate=0.0), geometry) == {}


def test_where_it_cannot_be_averaged_over_it_is_refused() -> None:
    problem = spiked(rank=12)
    with pytest.raises(AssumptionError, match="12 strong spikes by chance") as caught:
        predict(problem, "conditional")
    for advice in ("rate", "spread", "labels-only", "layer"):
        assert advice in str(caught.value)
    faint = predict(spiked(rank=12, rate=0.05), "conditional")  # too little to count
    assert faint.status in ("ok", "not settled") and math.isfinite(faint.error_estimate)
