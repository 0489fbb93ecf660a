"""Features as they are, given κ: samples drawn at the nodes, each with its own response."""

from types import SimpleNamespace

import numpy as np
import pytest

from onegrad import predict_readout
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.layers.any_layer import layer_errors, own_directions
from onegrad.theory.layers.given import given_layer
from onegrad.theory.layers.matrix_responses import solve_nodes
from onegrad.theory.layers.rules import nodes_of, rule_of
from onegrad.theory.layers.samples import Rows, draw_rows, response_spread, sampled_errors
from onegrad.theory.nodes.rules import QuadratureLevel

QUARTIC = "hermite(-0.2, 0, 0.7, 0, 0.1)"


def _problem(activation: str) -> Problem:
    return Problem.from_spec({
        "data": {"model": "mixture", "dim": 80, "mean": 1.5, "spread": 4.0},
        "labels": {"model": "component", "values": [1.0, -0.5], "noise": 0.3},
        "network": {"activation": activation, "width": 50},
        "training": {"samples": 160, "step_samples": 80, "rate": 50.0, "ridge": 0.01},
    })  # fmt: skip


@pytest.fixture(scope="module")
def even():
    """A trained layer of a quartic activation, and means over training sets with their errors."""
    p = _problem(QUARTIC)
    trial = Trial(p, Streams(0, 0))
    geometry = drawn_geometry(trial.instance.population, None)
    weights = trial.updated_weights
    own = own_directions(weights, geometry.basis, trial.weights)
    rng, found = np.random.default_rng(1), []
    for _ in range(500):
        batch = trial.instance.sample(p.samples, rng)
        found.append(_ridge(p.activation(batch.x @ weights.T), batch.y, p.effective_ridge))
    mean, se = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    layer = given_layer(p.activation, geometry, weights, own)
    return SimpleNamespace(
        p=p, trial=trial, geometry=geometry, weights=weights, own=own, layer=layer, mean=mean, se=se
    )


def _ridge(phi, y, ridge):
    """Leave-one-out error, training error and objective of ridge regression."""
    m, k = phi.shape
    inverse = np.linalg.inv(phi.T @ phi / m + ridge * np.eye(k))
    a = inverse @ phi.T @ y / m
    leverage = np.einsum("si,si->s", phi @ inverse, phi) / m
    train = np.mean((y - phi @ a) ** 2)
    return np.mean(((y - phi @ a) / (1 - leverage)) ** 2), train, train + ridge * a @ a


def test_as_many_rows_as_samples_are_ridge_regression():
    rng = np.random.default_rng(0)
    phi, y = rng.standard_normal((60, 20)) ** 3, rng.standard_normal(60)
    problem = SimpleNamespace(samples=60, effective_ridge=0.3, label_noise_variance=0.0)
    node = np.repeat(np.arange(30), 2)
    found = sampled_errors(problem, Rows(phi, np.full(60, 1 / 60), y, node), 0.5)
    np.testing.assert_allclose(found.errors, _ridge(phi, y, 0.3), rtol=1e-9)
    wrong = sampled_errors(problem, Rows(phi, np.full(60, 1 / 60), y, node[::-1]), 0.5).errors
    np.testing.assert_allclose(wrong, found.errors)
    other = SimpleNamespace(samples=50, effective_ridge=0.3, label_noise_variance=0.0)
    more = sampled_errors(other, Rows(phi, np.full(60, 1 / 60), y, node), 0.5).errors
    assert more.test_error > 1.02 * found.errors.test_error  # fewer samples to learn from


def test_a_quartic_layer_is_predicted_and_its_gaussian_equivalent_is_not(even):
    level = QuadratureLevel.at(2)
    where = nodes_of(even.p, even.layer, level)
    found = [sampled_errors(even.p, draw_rows(even.p, even.layer, where, j), 0.5) for j in range(4)]
    errors = np.array([one.errors for one in found])
    mean, own = errors.mean(axis=0), errors.std(axis=0, ddof=1) / 2
    np.testing.assert_array_less(
        np.abs(mean - even.mean), 4 * np.hypot(even.se, own) + 0.02 * even.mean
    )
    scatter = errors.std(axis=0, ddof=1)[:2] / mean[:2]
    said = np.mean([one.by_draws for one in found])
    assert scatter.max() < 3 * said
    # with Gaussian features given κ, and their first responses
    rule = rule_of(even.p, even.layer, level)
    gauss = np.array(solve_nodes(rule, even.p.samples, even.p.effective_ridge, 0.5).errors)
    off = np.abs(gauss - even.mean) - 4 * even.se
    assert np.any(off[:2] > 0.02 * even.mean[:2])


def test_layers_far_from_gaussian_are_sampled_and_say_so(even):
    found = layer_errors(even.p, even.geometry, even.weights, even.own)
    assert found.study.sampled
    assert found.rows > 4 * even.p.samples
    off = np.abs(np.array(found.errors)[:2] / even.mean[:2] - 1)
    assert off.max() < found.by_nodes + found.by_size + 2 * found.by_draws
    given = {"instance": even.trial.instance, "start": even.trial.weights}
    said = predict_readout(even.weights, even.p, **given)
    assert f"Features of up to {found.rows} samples" in said.numerics[0]


def test_responses_of_smooth_features_hardly_differ(even):
    spread = {}
    for name in ("tanh", QUARTIC):
        p = _problem(name)
        layer = given_layer(p.activation, even.geometry, even.weights, even.own)
        where = nodes_of(p, layer, QuadratureLevel.at(1))
        inverse = solve_nodes(
            rule_of(p, layer, QuadratureLevel.at(1)), p.samples, p.effective_ridge, 0.5
        ).inverse
        spread[name] = response_spread(draw_rows(p, layer, where, 0), inverse, p.samples)
    assert spread["tanh"] < 0.01
    assert spread[QUARTIC] > 0.02
