"""The calibration error of one network: bins differ from one network to the next."""

import math

import numpy as np
import pytest

import onegrad as og
from onegrad.simulate.risk import sampled
from onegrad.theory.readout.calibration import calibration_error

TEACHER = {
    "data": {"model": "isotropic", "dim": 120},
    "labels": {"link": "sign"},
    "network": {"convention": "isotropic", "width": 40, "activation": "tanh"},
    "training": {"samples": 150, "ridge": 0.1, "rate": 10.0, "loss": "logistic"},
}


def test_mean_over_networks_of_the_size_of_gaps():
    """Against outputs drawn with a common shift and slope of their own."""
    rng = np.random.default_rng(0)
    weights, labels = np.full(40, 1 / 40), np.tanh(np.linspace(-2, 2, 40))
    mean, variance = np.linspace(-3, 3, 40), np.full(40, 0.5)
    root = 0.15 * np.stack([np.ones(40), mean / 2])
    found = calibration_error(
        weights, labels, mean, variance + (root**2).sum(axis=0),
        lambda along: ((root @ along) ** 2).sum(axis=0),
    )  # fmt: skip
    drawn = [
        calibration_error(weights, labels, mean + z @ root, variance)
        for z in rng.normal(size=(800, 2))
    ]
    error = np.std(drawn) / math.sqrt(len(drawn))
    assert abs(found - np.mean(drawn)) < 4 * error + 0.01 * found
    without = calibration_error(weights, labels, mean, variance + (root**2).sum(axis=0))
    assert abs(without - np.mean(drawn)) > 10 * error


@pytest.fixture(scope="module")
def simulated():
    """With test sets that are large enough not to have a calibration error of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled, "FEWEST", 12_000)
        return og.simulate(TEACHER, seeds=100).calibration


def _off(found, said):
    return abs(said - found.mean) / (4 * found.standard_error + 0.02 * found.mean)


def test_networks_agree(simulated):
    assert _off(simulated, og.predict(TEACHER).calibration) < 1


def test_networks_agree_on_drawn_layers(simulated):
    found = simulated

    def of_layers():
        said = [og.predict(TEACHER, method="layer", rng=seed).calibration for seed in range(4)]
        return np.mean(said), np.std(said) / math.sqrt(len(said))

    said, error = of_layers()
    assert abs(said - found.mean) < 4 * math.hypot(error, found.standard_error) + 0.02 * found.mean
