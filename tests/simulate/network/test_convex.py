"""Readouts with any convex loss: scikit-learn's, a general solver's, and what they promise."""

import numpy as np
import pytest
from scipy.optimize import minimize

import onegrad as og
from onegrad.gaussian.convex_losses import NAMES, OF_SIGNS, loss_of
from onegrad.simulate.network.convex import ConvexSolver, fit_kernel_readout, held_out_ridge
from onegrad.simulate.network.readout import RidgeSolver
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Compare, Point

SHAPES = [(120, 60), (90, 130)]


def problem_of(m, k, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, 20))
    features = np.maximum(x @ rng.standard_normal((20, k)), 0.0) / np.sqrt(20)
    return features, np.sign(x[:, 0] + 0.7 * rng.standard_normal(m))


def fitted(loss, m, k, ridge=0.02):
    features, y = problem_of(m, k)
    return ConvexSolver(features, y, loss_of(loss)).fit(ridge), features, y


@pytest.mark.parametrize(("m", "k"), SHAPES)
def test_squared_loss_is_ridge_regression(m, k):
    readout, features, y = fitted("squared", m, k)
    ridge = RidgeSolver(features, y).fit(0.02)
    np.testing.assert_allclose(readout.coefficients, ridge.coefficients, rtol=1e-9)
    assert readout.train_objective == pytest.approx(ridge.train_objective, rel=1e-12)
    assert readout.loss == pytest.approx(ridge.train_error, rel=1e-12)


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge", "absolute"])
def test_agrees_with_scikit_learn(loss, m, k):
    linear = pytest.importorskip("sklearn.linear_model")
    svm = pytest.importorskip("sklearn.svm")
    ridge = 0.3  # their support vectors have kernels of single precision
    readout, features, y = fitted(loss, m, k, ridge)
    # (1/m) Σ ℓ + λ‖a‖² is theirs, C Σ ℓ + ½‖a‖², with C = 1/(2mλ). Their support vectors have an
    # intercept: beside the mirrored samples (−φ, −y) it is zero, and every loss counts twice
    c, twice = 1 / (2 * m * ridge), (np.vstack([features, -features]), np.append(y, -y))
    if loss == "logistic":
        theirs = linear.LogisticRegression(
            solver="newton-cg", max_iter=10_000, C=c, fit_intercept=False, tol=1e-12
        ).fit(features, y)
    elif loss == "squared-hinge":
        theirs = svm.LinearSVC(
            loss="squared_hinge", dual=False, max_iter=10_000, C=c, fit_intercept=False, tol=1e-12
        ).fit(features, y)
    elif loss == "absolute":
        theirs = svm.SVR(kernel="linear", epsilon=0.0, C=c / 2, tol=1e-13).fit(*twice)
    else:
        theirs = svm.SVC(kernel="linear", C=c / 2, tol=1e-13).fit(*twice)
    outputs = features @ theirs.coef_.ravel()
    np.testing.assert_allclose(features @ readout.coefficients, outputs, atol=1e-6)


@pytest.mark.parametrize("loss", NAMES)
def test_nothing_is_below_the_minimum(loss):
    m, k, ridge = 40, 12, 0.05
    readout, features, y = fitted(loss, m, k, ridge)
    law = loss_of(loss)

    def objective(a):
        return float(np.mean(law.value(y, features @ a)) + ridge * a @ a)

    assert readout.train_objective == pytest.approx(objective(readout.coefficients), rel=1e-9)
    theirs = minimize(objective, readout.coefficients, method="Powell", options={"ftol": 1e-12})
    assert theirs.fun >= readout.train_objective * (1 - 1e-9)


def test_huber_of_a_large_delta_is_ridge_regression_and_of_a_small_one_the_absolute_loss():
    features, y = problem_of(80, 50)
    ridge = RidgeSolver(features, y).fit(0.02).coefficients
    wide = ConvexSolver(features, y, loss_of("huber", 1e6)).fit(0.02).coefficients
    np.testing.assert_allclose(wide, ridge, rtol=1e-9)
    # ℓ_δ → 2δ|r|: the objective of the absolute loss times 2δ at the ridge 2δλ
    narrow = ConvexSolver(features, y, loss_of("huber", 1e-5)).fit(2e-5 * 0.02).coefficients
    absolute = ConvexSolver(features, y, loss_of("absolute")).fit(0.02).coefficients
    np.testing.assert_allclose(features @ narrow, features @ absolute, atol=2e-4)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge"])
def test_separable_data_at_next_to_no_ridge(loss):
    features, y = problem_of(60, 200)
    readout = ConvexSolver(features, y, loss_of(loss)).fit(1e-8)
    assert np.all(y * (features @ readout.coefficients) > 0)
    assert readout.loss < 1e-3


def test_a_path_of_ridges_is_what_each_gives_alone():
    features, y = problem_of(70, 50)
    solver = ConvexSolver(features, y, loss_of("logistic"))
    for ridge in (0.1, 0.01, 0.003, 0.05):
        alone = ConvexSolver(features, y, loss_of("logistic")).fit(ridge)
        np.testing.assert_allclose(solver.fit(ridge).coefficients, alone.coefficients, rtol=1e-7)


@pytest.mark.parametrize("loss", NAMES)
def test_a_kernel_matrix_gives_what_its_features_give(loss):
    features, y = problem_of(50, 80)
    readout = ConvexSolver(features, y, loss_of(loss)).fit(0.02)
    dual = fit_kernel_readout(features @ features.T, y, 0.02, loss_of(loss))
    np.testing.assert_allclose(features.T @ dual.coefficients, readout.coefficients, atol=1e-7)
    assert dual.train_objective == pytest.approx(readout.train_objective, rel=1e-9)


def test_labels_other_than_signs_are_refused_by_losses_of_signs():
    features, y = problem_of(20, 10)
    for loss in OF_SIGNS:
        with pytest.raises(og.AssumptionError, match="labels ±1"):
            ConvexSolver(features, 0.5 * y, loss_of(loss))


def test_the_held_out_ridge_is_one_of_those_given():
    features, y = problem_of(100, 30)
    assert held_out_ridge(features, y, loss_of("logistic"), [1e-4, 1e-1, 1e2]) in (1e-4, 1e-1)


SPEC = {
    "data": {"model": "mixture", "dim": 60, "mean": 2.0},
    "labels": {"model": "component"},
    "network": {"width": 50},
    "training": {"samples": 80, "ridge": 1e-2},
    "scaling": {"strength": 0.74, "weighting": 0.5},
}
MODELS = ("network", "hermite", "conditional-gaussian", "gaussian", "random-features", "linear",
          "kernel")  # fmt: skip


def with_loss(loss, **training):
    return {**SPEC, "training": {**SPEC["training"], "loss": loss, **training}}


@pytest.mark.parametrize("loss", NAMES)
def test_every_model_has_every_loss(loss):
    found = og.simulate(with_loss(loss), MODELS, seeds=2)
    for summary in found.estimates.values():
        assert summary.train_loss.mean >= 0
        assert summary.test_loss.mean > 0
        assert 0 <= summary.misclassification.mean < 0.5
        assert np.isfinite(summary.calibration.mean) == (loss == "logistic")
        assert summary.train_objective.mean >= summary.train_loss.mean
        record = summary.as_json()
        assert {"test_loss", "test_loss_se", "train_loss", "misclassification"} <= set(record)
    if loss == "squared":
        assert found.test_loss == found.test_error


def test_the_spiked_model_has_them_too():
    spec = {
        "data": {"model": "isotropic", "dim": 40},
        "labels": {"link": "tanh"},
        "network": {"convention": "isotropic", "activation": "tanh", "width": 50},
        "training": {"samples": 60, "ridge": 0.1, "loss": "huber", "delta": 0.2},
        "scaling": {"exponent": 0.29},
    }
    found = og.simulate(spec, "spiked", seeds=2)
    assert 0 < found.train_loss.mean < found.test_loss.mean < found.test_error.mean


def test_a_loss_and_its_ridges_share_the_draw():
    points = [
        Point({"r": r}, og.Problem.from_spec(with_loss(loss, ridge=r)), Compare(), number=i)
        for i, (loss, r) in enumerate([("hinge", 1e-2), ("hinge", 1e-3), ("squared", 1e-2)])
    ]
    together = run_group(points, ["network"], 0)
    for row, point in zip(together, points, strict=True):
        (alone,) = run_group([point], ["network"], 0)
        assert row.test_loss == pytest.approx(alone.test_loss, rel=1e-6)


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"labels": {"link": "relu"}, "training": {"loss": "logistic"}}, "training.loss"),
        ({"labels": {"model": "component", "noise": 0.1}, "training": {"loss": "hinge"}},
         "training.loss"),
        ({"training": {"loss": "hinge", "delta": 0.5}}, "training.delta"),
        ({"training": {"loss": "huber", "delta": 0.0}}, "training.delta"),
        ({"training": {"loss": "logistics"}}, "training.loss"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_its_key(tables, key):
    spec = {**SPEC, **tables, "training": {**SPEC["training"], **tables["training"]}}
    with pytest.raises(og.SpecError, match=key):
        og.Problem.from_spec(spec)


def test_the_linear_baseline_on_separable_data_is_fitted():
    """With a ridge so small that the fit is found along larger ones only."""
    spec = {
        "data": {"model": "mixture", "dim": 120, "mean": 2.0, "rank": 0, "spread": 1.0},
        "labels": {"model": "component"}, "network": {"width": 150},
        "training": {"samples": 200, "ridge": 1e-3, "rate": 40.0, "loss": "squared-hinge"},
    }  # fmt: skip
    assert 0 < og.simulate(spec, "linear", seeds=6).misclassification.mean < 0.1
