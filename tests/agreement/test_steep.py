"""Neurons that a step has moved far, layers so small that their chance counts: against networks."""

from __future__ import annotations

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial

FAR = {
    "data": {"model": "mixture", "dim": 200, "rank": 1, "weights": [1.0], "spread": 34.0},
    "labels": {"link": "sigmoid", "direction": "spikes", "noise": 0.09},
    "network": {"convention": "isotropic", "activation": "gelu", "width": 100},
    "training": {"samples": 600, "step_samples": 300, "ridge": 0.0135, "rate": 28.0},
}
SETS, TESTED = 40, 20_000


@pytest.fixture(scope="module")
def far() -> tuple[og.Problem, Trial, np.ndarray, np.ndarray]:
    """One trained first layer, with errors of its readout: means over training sets and their
    standard errors, test and train."""
    problem = og.Problem.from_spec(FAR)
    trial = Trial(problem, Streams(3, 0))
    weights, instance, rng = trial.updated_weights, trial.instance, np.random.default_rng(5)
    tested, found = instance.sample(TESTED, rng), []
    fresh = problem.activation(tested.x @ weights.T)
    for _ in range(SETS):
        batch = instance.sample(problem.samples, rng)
        features = problem.activation(batch.x @ weights.T)
        gram = features.T @ features / problem.samples
        gram += problem.effective_ridge * np.eye(problem.width)
        readout = np.linalg.solve(gram, features.T @ batch.y / problem.samples)
        residuals = tested.y - fresh @ readout, batch.y - features @ readout
        found.append([float(np.mean(r**2)) for r in residuals])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(SETS)
    se[0] = np.hypot(se[0], mean[0] * np.sqrt(2 / TESTED))  # of the one test set
    return problem, trial, mean, se


def gaps(far: tuple[og.Problem, Trial, np.ndarray, np.ndarray]) -> tuple[np.ndarray, float]:
    """What is left of the relative deviation in test and train after 4 s.e., and the estimate."""
    problem, trial, mean, se = far
    found = og.predict_readout(
        trial.updated_weights, problem, instance=trial.instance, start=trial.weights
    )
    off = np.abs(np.array([found.test_error, found.train_error]) - mean) - 4 * se
    return np.maximum(off, 0) / mean, found.error_estimate


def test_neurons_that_moved_far_along_a_spike(far):
    off, estimate = gaps(far)
    assert off.max() < 0.02 and off.max() < estimate < 0.06


FEW = {  # centred even features have no mean but that of neurons' lengths, and neurons are few
    "data": {"model": "isotropic", "dim": 319},
    "labels": {"link": "softplus", "noise": 0.06},
    "network": {
        "convention": "isotropic", "activation": "hermite(-0.49, 0, 0.96)", "width": 53,
    },
    "training": {"samples": 195, "step_samples": 397, "ridge": 0.03, "rate": 2.28},
}  # fmt: skip


def test_first_layers_are_drawn_where_types_are_uncertain():
    problem = og.Problem.from_spec(FEW)
    simulated = og.simulate(problem, seeds=240, rng=1).test_error
    types, best = og.predict(problem, "conditional"), og.predict(problem)
    assert best.error_estimate < types.error_estimate
    assert any("uncertain by" in sentence for sentence in best.assumptions)
    mean, se = simulated
    assert abs(best.test_error - mean) <= 4 * se + best.error_estimate * mean
    assert abs(best.test_error / mean - 1) < 0.03 + 4 * se / mean
    assert abs(types.test_error / mean - 1) > 0.03 + 4 * se / mean  # the negative control
    (curve,) = og.predict_curve([problem])
    assert curve.test_error == pytest.approx(types.test_error, rel=1e-9)
    assert best.directions == ()  # what was learned is told by the theory that answers


def test_no_special_direction_at_all():
    """Component labels on components that do not differ: once an axis was looked for among none."""
    problem = og.Problem(
        data={"model": "mixture", "dim": 80, "rank": 0, "spread": 1.0},
        labels={"model": "component"}, network={"width": 30}, training={"samples": 90, "rate": 0.0},
    )  # fmt: skip
    assert og.predict(problem, "layer").train_error > 0
