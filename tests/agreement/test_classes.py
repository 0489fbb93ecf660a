"""Three classes, one output for each: theory against simulation, with and without a step."""

import math
from functools import cache

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.predict import layers as readouts
from onegrad.simulate.models import MODELS
from onegrad.simulate.models.base import exact_risk
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk.sampled import class_risk
from onegrad.theory.layers import any_layer as layer_classes

N = 200
FINITE = 0.015  # of squared errors at this size
FINITE_CLASS = 0.03  # of the class


def problem(rate: float) -> og.Problem:
    return og.Problem(
        data={"model": "mixture", "dim": N, "weights": [0.4, 0.3, 0.3], "spread": 5.0, "mean": 2.0,
              "directions": "orthogonal"},
        labels={"model": "component"},
        network={"activation": "relu", "width": 160},
        training={"samples": 400, "ridge": 1e-3, "rate": rate},
    )  # fmt: skip


RATES = (0.0, 480.0)


@cache
def simulation(rate: float):
    return og.simulate(problem(rate), seeds=12, risk="sampled", test_samples=6000)


@cache
def prediction_and_control(rate: float):
    """What is predicted, and the misclassification of the same layers with the diagonal of Q alone:
    outputs taken as independent."""
    of_class, independent = layer_classes.wrong_class, []

    def both(mean, covariance, *where):
        independent.append(of_class(mean, covariance * np.eye(3), *where))
        return of_class(mean, covariance, *where)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_classes, "wrong_class", both)
        return og.predict(problem(rate)), float(np.mean(independent or [math.nan]))


def prediction(rate: float):
    return prediction_and_control(rate)[0]


def apart(found, theory: float, finite: float = FINITE) -> float:
    return abs(theory - found.mean) / (4 * found.standard_error + finite * found.mean)


@pytest.mark.parametrize("rate", RATES)
def test_classes_agree(rate):
    simulated, theory = simulation(rate), prediction(rate)
    assert np.isfinite(theory.error_estimate)
    assert apart(simulated.test_error, theory.test_error) < 1
    assert apart(simulated.train_error, theory.train_error) < 1
    assert apart(simulated.misclassification, theory.misclassification, FINITE_CLASS) < 1
    assert theory.label_variance == pytest.approx(0.24 + 2 * 0.21)


def test_a_draft_is_near_and_few_layers_have_their_standard_error():
    """The draft solves all outputs at once; the class differs from one first layer to the next."""
    theory = prediction(RATES[1])
    drafts = [og.predict(problem(RATES[1]), accuracy=0.03, rng=seed) for seed in range(3)]
    assert all(d.status == "draft" and d.misclassification_se == 0 for d in drafts)
    mean, wrong = np.mean([(d.test_error, d.misclassification) for d in drafts], axis=0)
    assert mean == pytest.approx(theory.test_error, rel=0.06)
    assert wrong == pytest.approx(theory.misclassification, rel=0.06)
    assert 0 < theory.misclassification_se < 0.03 * theory.misclassification
    assert "misclassification_se" in theory.as_json()


def test_outputs_taken_as_independent_fail():
    """Q with its diagonal alone: further off than the full one."""
    theory, wrong = prediction_and_control(RATES[1])
    full, found = theory.misclassification, simulation(RATES[1])
    assert abs(wrong / full - 1) > 0.05
    assert abs(wrong - found.misclassification.mean) > abs(full - found.misclassification.mean)


def test_many_axes_on_one_layer():
    """Six directions of the data and three of the layer, against readouts fitted on it."""
    many = og.Problem(
        data={"model": "mixture", "dim": N, "weights": [0.4, 0.35, 0.25], "spread": 6.0,
              "mean": 1.0, "directions": "orthogonal"},
        labels={"model": "component"},
        network={"activation": "sigmoid", "width": 190, "convention": "isotropic"},
        training={"samples": 300, "ridge": 0.14, "rate": 320.0},
    )  # fmt: skip
    layer, rng = readouts._drawn(many, 0, 0), np.random.default_rng(0)

    def sample(count):
        batch = layer.instance.sample(count, rng)
        return many.activation(batch.x @ layer.weights.T), batch.y

    (features, y), wrong = sample(10_000), []
    for _ in range(24):
        phi, labels = sample(300)
        gram = phi.T @ phi / 300 + many.effective_ridge * np.eye(190)
        output = features @ np.linalg.solve(gram, phi.T @ labels / 300)
        wrong.append(np.mean(output.argmax(axis=1) != y.argmax(axis=1)))
    allowed = 4 * np.std(wrong) / np.sqrt(24) + 0.015 * np.mean(wrong)
    assert abs(readouts._wrong_class(many, layer) - np.mean(wrong)) < allowed


@pytest.mark.parametrize("model", ["network", "hermite:3", "conditional-gaussian", "linear"])
def test_the_exact_risk_sums_over_outputs(model):
    trial = Trial(problem(RATES[1]), Streams(0, 0))
    fitted = MODELS[model].fit(trial)
    exact = exact_risk(trial, fitted).value
    sampled = class_risk(trial, {model: fitted}, 20_000)[model]
    assert sampled.value == pytest.approx(exact, rel=0.03)
    assert 0 < sampled.misclassification < 0.5


def test_the_step_is_the_gradient_of_the_sum():
    """By differences of ½·MSE summed over outputs."""
    trial = Trial(problem(480.0), Streams(0, 0))
    batch, w, a = trial.step_batch, trial.weights, trial.readout
    assert batch.y.shape == (400, 3) and a.shape == (160, 3)

    def half_mse(weights):
        output = trial.problem.activation(batch.x @ weights.T) @ a
        return 0.5 * np.mean(np.sum((batch.y - output) ** 2, axis=1))

    move = np.random.default_rng(0).standard_normal(w.shape)
    slope = (half_mse(w + 1e-7 * move) - half_mse(w - 1e-7 * move)) / 2e-7
    step = (trial.updated_weights - w) / trial.problem.rate
    assert np.sum(step * move) == pytest.approx(-slope, rel=1e-3)


def test_two_classes_are_signs_and_other_theories_say_no():
    with pytest.raises(og.AssumptionError, match="3 outputs"):
        og.predict(problem(480.0), "conditional")
    tables = {"model": "mixture", "dim": N, "spread": 5.0, "mean": 2.0}
    two = og.Problem(data=tables, labels={"model": "component"}, network={"width": 20},
                     training={"samples": 30, "rate": 1.0})  # fmt: skip
    assert two.outputs == 1 and two.labels_binary
