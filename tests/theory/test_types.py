"""Neurons after the step: what must not be left out, and what a step of no size changes."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.theory.chance import chance_of
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.types import pure_types
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for

from .sampled_neurons import drawn_neurons
from .settings import agrees, conditional, mixture, orthogonal

# simulate(orthogonal(…, strength=1, weighting=1, ratio=0.3), seeds=60, risk="exact")
MAXIMAL = {
    "relu": ((0.10618, 0.00112), (0.20121, 0.00088)),
    "tanh": ((0.18421, 0.00170), (0.32820, 0.00093)),
}


def agrees_at_maximal_step(activation: str) -> bool:
    train, test = MAXIMAL[activation]
    solution = conditional(orthogonal(1000, activation, strength=1.0, weighting=1.0, ratio=0.3))
    return agrees(solution.train_error, train) and agrees(solution.test_error, test)


@pytest.mark.parametrize("activation", list(MAXIMAL))
def test_a_maximal_step(activation: str) -> None:
    """Where the covariance of a neuron's coordinates is not diagonal."""
    assert agrees_at_maximal_step(activation)


def test_a_vanishing_step_is_continuous() -> None:
    none, tiny = (conditional(mixture(rate=rate)) for rate in (0.0, 1e-6))
    assert tiny.test_error == pytest.approx(none.test_error, rel=1e-4)


def test_noise_of_a_constant_readout_is_independent_of_the_start():
    tables = {
        "data": {"model": "mixture", "dim": 400, "directions": "orthogonal", "spread": 8.0,
                 "mean": 2.0},
        "labels": {"model": "component", "values": [1.5, 0.3]},
        "network": {"activation": "hermite(0, 0.4, -0.45)", "readout": "constant", "width": 2000},
        "training": {"samples": 400, "step_samples": 300, "rate": 150.0,
                     "gradient": "labels-only"},
    }  # fmt: skip

    def spread(types):
        weights = types.counts / types.counts.sum()
        return np.sqrt(weights @ (types.vectors - weights @ types.vectors) ** 2)

    problem = Problem.from_spec(tables)

    ratios = []
    for seed in range(16):  # one alone differs by 5 to 8 % along an axis
        geometry = geometry_of(problem, "drawn", seed)
        level = level_for(problem, geometry, QuadratureLevel.at(1))
        drawn = spread(drawn_neurons(problem, geometry, seed))
        ratios.append(spread(pure_types(problem, geometry, level)) / drawn)
    mean = np.mean(ratios, axis=0)
    np.testing.assert_allclose(mean, 1.0, rtol=0.06)
    assert abs(mean[1:3].mean() - 1) < 0.025  # axes that the noise reaches

    geometry = geometry_of(problem, "drawn", 0)
    level = level_for(problem, geometry, QuadratureLevel.at(1))
    taken_back = Problem.from_spec({**tables, "training": {**tables["training"], "rate": 300.0}})
    with pytest.raises(AssumptionError, match="takes back"):
        pure_types(taken_back, geometry, level)


@pytest.mark.parametrize("spectrum", [None, "two-level"])
def test_rows_of_unit_norm_have_no_lengths_to_learn_a_constant_from(spectrum) -> None:
    """An even activation without a mean: what rows of different lengths make of it is the only
    constant feature, and labels have a mean."""
    bulk = {} if spectrum is None else {"spectrum": spectrum, "levels": [1.0, 2.0], "share": 0.5}
    found = {}
    for rows in ("unit", "gaussian"):
        problem = Problem(
            data={"model": "isotropic", "dim": 100, **bulk},
            labels={"model": "single-index", "link": "sigmoid", "noise": 0.2},
            network={"activation": "hermite(0, 0, 0.7)", "width": 120, "rows": rows},
            training={"samples": 200, "ridge": 0.005, "rate": 0.0},
        )
        found[rows] = predict(problem), simulate(problem, seeds=60, rng=0).test_error
    for theory, network in found.values():
        room = 4 * network.standard_error + theory.error_estimate * network.mean
        assert abs(theory.test_error - network.mean) <= room
    # the other kind of rows is far off
    theory, network = found["gaussian"][0], found["unit"][1]
    assert abs(theory.test_error - network.mean) > 0.1 * network.mean


def after_a_visible_step(gradient: str) -> Problem:
    """Labels with a part of degree two, which the direction of the step alone can learn."""
    return Problem.from_spec({
        "data": {"model": "isotropic", "dim": 200},
        "labels": {"model": "single-index", "link": "hermite(0, 1, 0.5)"},
        "network": {"convention": "mixture", "activation": "relu", "width": 400},
        "training": {"samples": 800, "step_samples": 1600, "ridge": 2e-4, "rate": 400.0,
                     "gradient": gradient},
    })  # fmt: skip


def test_an_initial_output_below_a_thousandth_moves_errors_by_one_percent() -> None:
    """E f₀² is 8e-4 of E y². The same draws with and without it in the gradient; a theory that
    leaves it out would say that nothing changes, nine standard errors away."""
    gradients = ("labels-only", "exact")
    rows = [simulate(after_a_visible_step(g), seeds=40, rng=5).results.rows for g in gradients]
    answers = [predict(after_a_visible_step(g), accuracy=0.003) for g in gradients]
    for name in ("test_error", "train_error"):
        without, exact = (np.array([getattr(row, name) for row in some]) for some in rows)
        gaps = (exact - without) / without.mean()
        error = float(gaps.std(ddof=1)) / np.sqrt(len(gaps))
        found = getattr(answers[1], name) / getattr(answers[0], name) - 1
        assert found == pytest.approx(float(gaps.mean()), abs=4 * error)
        assert float(gaps.mean()) < -6 * error


def shapes_along_spikes(neurons) -> np.ndarray:
    """E v⁴/(E v²)² along the two spikes of `strong_spikes`."""
    weights = neurons.counts / neurons.counts.sum()
    squares = neurons.vectors[:, 1:3] ** 2
    return np.asarray((weights @ squares**2) / (weights @ squares) ** 2)


def test_a_neurons_own_noise_remains_where_the_step_takes_back_the_start() -> None:
    """By readouts of one sign the step takes back what neurons had along spikes, and their own
    noise with it if that were a stretch of the start: too many neurons would not see the spikes."""
    problem = Problem.from_spec({
        "data": {"model": "mixture", "dim": 500, "directions": "orthogonal", "spread": 25.0,
                 "mean": 2.0},
        "labels": {"model": "component"},
        "network": {"activation": "relu", "width": 1500},
        "training": {"samples": 500, "rate": 750.0, "gradient": "labels-only"},
    })  # fmt: skip
    drawn = []
    for seed in range(24):
        geometry = geometry_of(problem, "drawn", seed)
        drawn.append(shapes_along_spikes(drawn_neurons(problem, geometry, seed)).mean())
    mean, error = np.mean(drawn), np.std(drawn) / np.sqrt(len(drawn) - 1)

    task = chance_of(problem, "auto", 0).typical
    level = level_for(problem, task.geometry, QuadratureLevel.at(2))
    found = pure_types(problem, task.geometry, level, task.chance)
    assert abs(float(shapes_along_spikes(found).mean()) - mean) < 4 * error
