"""Our path and the straightforward procedure give the same numbers on the same draws."""

import numpy as np
import pytest

import onegrad as og
from benchmarks.speed import plain
from onegrad.compute.randomness import Streams
from onegrad.simulate.models import MODELS
from onegrad.simulate.network import readout, refine
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk.sampled import sampled_risk

SAMPLES = 120
TEST_SAMPLES = 3000  # more than one block of ours
LARGE = 600  # samples from which on our readout has a factor of single precision, refined


def trial(activation: str, width: int, samples: int = SAMPLES) -> Trial:
    problem = og.Problem.from_spec(
        {
            "data": {"model": "mixture", "dim": 90},
            "network": {"width": width, "activation": activation},
            "training": {"samples": samples, "ridge": 1e-4},
            "scaling": {"strength": 0.74, "weighting": 0.5},
        }
    )
    return Trial(problem, Streams(7, 0))


def plain_weights(t: Trial, activation: str) -> np.ndarray:
    batch = t.step_batch
    return plain.step(t.weights, t.readout, batch.x, batch.y, activation, t.problem.rate)


def plain_features(t: Trial, activation: str, model: str, x: np.ndarray, noise):
    weights = plain_weights(t, activation)
    if model == "network":
        return plain.network_features(weights, x, activation)
    expansion = plain.expand(activation, t.degree, t.problem.bulk_scale)
    return plain.hermite_features(weights, x, expansion, noise)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize(
    ("width", "samples"),
    [(50, SAMPLES), (SAMPLES, SAMPLES), (300, SAMPLES), (LARGE, LARGE), (900, LARGE)],
)
@pytest.mark.parametrize("model", ["network", "hermite"])
def test_same_draws_same_numbers(activation, width, samples, model, monkeypatch):
    rounded = []

    def noting(*arguments):
        rounded.append(refine.rounded_solution(*arguments))
        return rounded[-1]

    monkeypatch.setattr(readout, "rounded_solution", noting)
    ours = trial(activation, width, samples)
    fitted = MODELS[model].fit(ours)
    assert [solution is not None for solution in rounded] == [samples == LARGE]
    risk = sampled_risk(ours, {model: fitted}, TEST_SAMPLES)[model].value

    draws = trial(activation, width, samples)
    noise = draws.streams.rng("hermite").standard_normal((samples, width))
    batch = draws.train.batch
    features = plain_features(draws, activation, model, batch.x, noise)
    other = plain.ridge(features, batch.y, draws.problem.effective_ridge)
    size = np.mean(batch.y**2)
    assert fitted.readout.train_error == pytest.approx(other.train_error, rel=1e-9, abs=1e-9 * size)
    assert fitted.readout.train_objective == pytest.approx(other.train_objective, rel=1e-9)
    top = np.abs(other.coefficients).max()
    np.testing.assert_allclose(fitted.readout.coefficients, other.coefficients, atol=1e-9 * top)

    tests = list(draws.test_batches(TEST_SAMPLES))
    x, y = np.vstack([b.x for b in tests]), np.concatenate([b.y for b in tests])
    mean_features = plain_features(draws, activation, model, x, None)
    error = plain.tested(mean_features, y, other.coefficients).mean
    if model == "hermite":  # ours adds the mean square of the fresh noise instead of drawing it
        remainder = plain.expand(activation, draws.degree, draws.problem.bulk_scale).remainder
        error += remainder**2 * np.sum(other.coefficients**2)
    assert risk == pytest.approx(error, rel=1e-9)


def test_the_comparison_sees_small_differences():
    """Negative control: a rate that is off by one part in a million is noticed."""
    t = trial("tanh", 50)
    batch = t.train.batch
    fitted = MODELS["network"].fit(t)
    step = t.step_batch
    wrong = plain.step(t.weights, t.readout, step.x, step.y, "tanh", t.problem.rate * (1 + 1e-6))
    other = plain.ridge(
        plain.network_features(wrong, batch.x, "tanh"), batch.y, t.problem.effective_ridge
    )
    assert fitted.readout.train_error != pytest.approx(other.train_error, rel=1e-9)


def test_plain_repetition_measures_the_same_problem():
    """Its own draws follow the same law: means over seeds agree within 4 standard errors."""
    problem = trial("tanh", 100).problem
    setting = plain.Setting(
        problem.dim, 100, SAMPLES, problem.rate, problem.spread, problem.effective_ridge,
        problem.degree,
    )  # fmt: skip
    for model in ("network", "hermite"):
        rng = np.random.default_rng(0)
        errors = [plain.repetition(setting, "tanh", model, rng)[1].mean for _ in range(30)]
        ours = og.simulate(problem, [model], seeds=30).test_error
        spread = np.hypot(np.std(errors, ddof=1) / np.sqrt(30), ours.standard_error)
        assert abs(np.mean(errors) - ours.mean) < 4 * spread
