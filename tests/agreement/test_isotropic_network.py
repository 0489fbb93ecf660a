"""The isotropic closed form at a finite step against the network itself, at n = 2000."""

import pytest

import onegrad as og
from onegrad.predict.predict import predict
from onegrad.simulate.simulate import simulate
from tests.agreement.paper import simulate_together

pytestmark = pytest.mark.slow


def problem(activation, exponent, gradient):
    return og.Problem.from_spec(
        {
            "data": {"model": "isotropic", "dim": 1000},
            "labels": {"link": "hermite(0, 1, 0.3)", "noise": 0.3},
            "network": {"convention": "isotropic", "width": 1250, "activation": activation},
            "training": {"samples": 2000, "ridge": 0.1, "gradient": gradient},
            "scaling": {"exponent": exponent},
        }
    )


CASES = [
    ("relu", 0.2, "labels-only"),
    ("relu", 0.29, "exact"),
    ("tanh", 0.2, "exact"),
    ("tanh", 0.29, "labels-only"),
]


def test_finite_step_prediction_is_within_five_percent():
    problems = {case: problem(*case) for case in CASES}
    for case, outcome in simulate_together(problems, seeds=16, rng=3).items():
        said = predict(problems[case], "isotropic")
        assert "isotropic closed form" in said.method
        for name in ("test_error", "train_error", "train_objective"):
            simulated = getattr(outcome, name)
            assert simulated.standard_error < 0.02 * simulated.mean
            assert getattr(said, name) == pytest.approx(simulated.mean, rel=0.05), (case, name)


def test_the_wrong_ridge_scaling_fails():
    """Negative control: λ·N, as in the other convention, is far outside of five percent."""
    p = problem("relu", 0.2, "exact")
    wrong = p.model_copy(
        update={"training": p.training.model_copy(update={"ridge": 0.1 * p.width})}
    )
    outcome = simulate(p, seeds=2, rng=3)
    assert predict(wrong, "isotropic").test_error != pytest.approx(outcome.test_error.mean, rel=0.3)


def test_auto_is_right_where_the_closed_form_is_far_off():
    """m = 5n and a strong step: the closed form is 18 % high, the conditional theory is right."""
    p = og.Problem.from_spec(
        {
            "data": {"model": "isotropic", "dim": 300},
            "labels": {"link": "hermite(0, 1, 0.7071067811865476)"},
            "network": {"convention": "isotropic", "width": 1500, "activation": "relu"},
            "training": {"samples": 1500, "ridge": 0.01},
            "scaling": {"exponent": 0.3},
        }
    )
    mean, error = simulate(p, seeds=10).test_error
    said = predict(p)
    assert said.method == "conditional Gaussian theory"
    assert abs(said.test_error - mean) < 4 * error + min(said.error_estimate, 0.02) * mean
    closed = predict(p, "isotropic")
    assert closed.test_error > mean + 4 * error + 0.05 * mean
    assert closed.error_estimate > closed.test_error / mean - 1 - 4 * error / mean
