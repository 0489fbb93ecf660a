"""The theory of any loss: limits, identities, and the squared loss through the same iteration."""

import time

import numpy as np
import pytest

import onegrad as og
from onegrad.gaussian.convex_losses import NAMES, loss_of
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.errors import errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.readout.reweighted import LossProblem, solve_with_loss
from onegrad.theory.readout.stage import TypeStage
from onegrad.theory.resolution import _resolve
from onegrad.theory.task import Task

SPEC = {
    "data": {"model": "mixture", "dim": 300, "mean": 2.0, "rank": 0, "spread": 1.0},
    "labels": {"model": "component", "flip": 0.05},
    "network": {"width": 250},
    "training": {"samples": 350, "ridge": 1e-3, "rate": 300.0},
}


def with_training(spec=SPEC, **training):
    return {**spec, "training": {**spec["training"], **training}}


@pytest.fixture(scope="module")
def features():
    task = Task.of(og.Problem.from_spec(SPEC))
    return _resolve(task, QuadratureLevel.at(0)).features


def solved(features, loss, ridge=0.25, tolerance=1e-10, binary=True):
    numbers = np.asarray(350.0), np.asarray(ridge)
    return solve_with_loss(LossProblem(TypeStage(features, *numbers), loss, binary), tolerance)


@pytest.mark.parametrize("loss", [loss_of("squared"), loss_of("huber", 1e6)])
def test_the_squared_loss_is_the_same_to_1e_9(features, loss):
    plain = errors_of(solve_fixed_point(features, 350.0, 0.25, tolerance=1e-12))
    _, found = solved(features, loss)
    for name in ("test_error", "train_error", "train_objective", "prediction", "variance"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-9)
    assert float(found.test_loss) == pytest.approx(float(plain.test_error), rel=1e-9)
    assert float(found.train_loss) == pytest.approx(float(plain.train_error), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_objective_changes_with_the_ridge_by_the_penalty(features, name):
    """dL/d log λ = λ‖a‖² = L − train loss: a and its errors solve the same problem."""
    loss, step = loss_of(name), 1e-3
    _, at = solved(features, loss)
    up, down = (float(solved(features, loss, 0.25 * np.exp(s))[1].train_objective)
                for s in (step, -step))  # fmt: skip
    penalty = float(at.train_objective - at.train_loss)
    assert (up - down) / (2 * step) == pytest.approx(penalty, rel=2e-4)


def test_a_strong_ridge_makes_the_logistic_loss_a_squared_one(features):
    """log(1 + e^{−yf}) = log 2 + (1/8)(f − 2y)² − ½ + O(f⁴): ridge regression on 2y at 8λ."""
    ridge = 3e4
    _, logistic = solved(features, loss_of("logistic"), ridge)
    _, squared = solved(features, loss_of("squared"), 8 * ridge)
    np.testing.assert_allclose(logistic.prediction, 2 * squared.prediction, rtol=1e-3)
    np.testing.assert_allclose(logistic.variance, 4 * squared.variance, rtol=2e-3)


def test_a_narrow_huber_loss_is_the_absolute_one(features):
    """ℓ_δ/(2δ) → |y − f|: the ridge 2δλ."""
    delta = 1e-3
    _, huber = solved(features, loss_of("huber", delta), 2 * delta * 0.25)
    _, absolute = solved(features, loss_of("absolute"))
    assert float(huber.test_error) == pytest.approx(float(absolute.test_error), rel=5e-3)
    assert float(huber.train_loss) / (2 * delta) == pytest.approx(
        float(absolute.train_loss), rel=5e-3
    )


def test_the_squared_loss_s_response_would_be_another_theory(features):
    """Negative controls: χ of the squared loss, and a slope without its ½, are percents off."""
    point, right = solved(features, loss_of("logistic"))
    plain = solve_fixed_point(features, 350.0, 0.25)
    assert np.abs(plain.chi / point.chi - 1).max() > 0.1
    _, doubled = solved(features, loss_of("logistic"), 0.125)  # ρ twice as large is half the ridge
    assert abs(float(doubled.train_loss / right.train_loss) - 1) > 0.02


@pytest.fixture(scope="module")
def few_types():
    """After a short step neurons have few types, and an iteration takes a millisecond."""
    task = Task.of(og.Problem.from_spec(with_training(rate=20.0)))
    return _resolve(task, QuadratureLevel.at(0)).features


@pytest.mark.parametrize("name", ["logistic", "hinge", "squared-hinge"])
def test_separable_data_at_next_to_no_ridge_are_right_or_refused(few_types, name):
    try:
        _, found = solved(few_types, loss_of(name), 1e-7, 1e-6)
    except og.ConvergenceError as error:
        assert "larger training.ridge" in str(error)
    else:
        assert 0 <= float(found.train_loss) < float(found.test_loss) < 100


@pytest.mark.parametrize("name", NAMES)
def test_a_prediction_has_everything(name):
    found = og.predict(with_training(loss=name), accuracy=0.02)
    assert found.status == "ok" and np.isfinite(found.error_estimate)
    assert 0 < found.train_loss < found.test_loss
    assert 0.05 < found.misclassification < 0.5
    assert (found.calibration is None) == (name != "logistic")
    said = " ".join(found.assumptions)
    assert ("ridge regression at the curvature" in said) == (name != "squared")


def test_a_point_takes_less_than_two_seconds_and_a_curve_less_than_ten():
    start = time.process_time()
    og.predict(with_training(loss="logistic"))
    assert time.process_time() - start < 2
    start = time.process_time()
    ridges = np.geomspace(1e-4, 1e-1, 20)
    found = og.predict_curve([with_training(loss="logistic", ridge=float(r)) for r in ridges])
    assert time.process_time() - start < 10
    assert all(one.status in ("ok", "not settled") for one in found)


def test_what_has_no_theory_says_so():
    isotropic = {
        "data": {"model": "isotropic", "dim": 50},
        "labels": {"link": "sign"},
        "network": {"convention": "isotropic", "activation": "tanh", "width": 40},
        "training": {"samples": 60, "loss": "logistic"},
        "scaling": {"exponent": 0.1},
    }
    with pytest.raises(og.AssumptionError, match="squared"):
        og.predict(isotropic, "isotropic")
    digits = {**isotropic, "data": {"model": "digits"}, "labels": {"model": "component"},
              "network": {"width": 30}, "scaling": {"strength": 0.5, "weighting": 0.5}}  # fmt: skip
    with pytest.raises(og.AssumptionError, match="squared loss"):
        og.predict(digits)
