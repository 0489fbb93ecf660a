"""Features far from Gaussian given κ: what cumulants make of the 1/n correction is stated."""

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.layers.any_layer import layer_errors, own_directions


def _problem(activation, width):
    return Problem.from_spec({
        "data": {"model": "mixture", "dim": 80, "mean": 1.5, "spread": 4.0},
        "labels": {"model": "component", "values": [1.0, -0.5], "noise": 0.3},
        "network": {"activation": activation, "width": width},
        "training": {"samples": 160, "step_samples": 80, "rate": 50.0, "ridge": 0.01},
    })  # fmt: skip


def _readouts(p, trial, weights, sets):
    """Means over training sets, and their errors: leave-one-out error and training error."""
    rng, found = np.random.default_rng(1), []
    for _ in range(sets):
        batch = trial.instance.sample(p.samples, rng)
        phi = p.activation(batch.x @ weights.T)
        gram = phi.T @ phi / p.samples + p.effective_ridge * np.eye(p.width)
        solved = np.linalg.solve(gram, phi.T) / p.samples
        left = batch.y - phi @ (solved @ batch.y)
        leverage = np.einsum("si,is->s", phi, solved)
        found.append((np.mean((left / (1 - leverage)) ** 2), np.mean(left**2)))
    return np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(sets)


@pytest.mark.parametrize(
    ("activation", "width", "least"),
    [("hermite(-0.2, 0, 0.7, 0, 0.1)", 50, 0.03), ("tanh", 50, 0.0)],
)
def test_the_estimate_covers_what_polynomials_are_off(activation, width, least):
    p = _problem(activation, width)
    trial = Trial(p, Streams(0, 0))
    geometry, weights = drawn_geometry(trial.instance.population, None), trial.updated_weights
    found = layer_errors(p, geometry, weights, own_directions(weights, geometry.basis))
    mean, se = _readouts(p, trial, weights, 500)
    off = np.abs(np.array(found.errors[:2]) / mean - 1) - 4 * se / mean
    assert off.max() < found.by_nodes + found.by_size < 0.5
    assert found.by_size > least
