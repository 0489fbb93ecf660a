"""The softmax readout of several classes: scikit-learn's, its promises, and every model with it."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.gaussian.convex_losses import Softmax, loss_of
from onegrad.simulate.models import MODELS
from onegrad.simulate.network.convex import ConvexSolver, fit_kernel_readout
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.sampled import class_risk

SHAPES = [(120, 60, 3, 0.02), (90, 130, 4, 1e-3), (200, 100, 5, 1e-5), (60, 80, 10, 100.0)]


def problem_of(m, k, classes):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((m, 20))
    features = np.maximum(x @ rng.standard_normal((20, k)), 0.0) / np.sqrt(20)
    owner = (x[:, :classes] + 0.7 * rng.standard_normal((m, classes))).argmax(axis=1)
    return features, owner, np.eye(classes)[owner]


@pytest.mark.parametrize(("m", "k", "classes", "ridge"), SHAPES)
def test_agrees_with_scikit_learn(m, k, classes, ridge):
    linear = pytest.importorskip("sklearn.linear_model")
    features, owner, y = problem_of(m, k, classes)
    readout = ConvexSolver(features, y, Softmax()).fit(ridge)
    theirs = linear.LogisticRegression(
        solver="newton-cg", max_iter=100_000, C=1 / (2 * m * ridge), fit_intercept=False, tol=1e-12
    ).fit(features, owner)
    a = theirs.coef_.T
    objective = np.mean(Softmax().value(y, features @ a)) + ridge * np.sum(a**2)
    assert readout.train_objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(features @ readout.coefficients, features @ a, atol=1e-6)


def test_the_step_without_the_half_of_the_penalty_is_another_minimum():
    """Negative control: a convention with ½λ‖a‖² is far from what is minimised."""
    features, _, y = problem_of(120, 60, 3)
    right = ConvexSolver(features, y, Softmax()).fit(0.02)
    wrong = ConvexSolver(features, y, Softmax()).fit(0.01).coefficients
    objective = np.mean(Softmax().value(y, features @ wrong)) + 0.02 * np.sum(wrong**2)
    assert objective > right.train_objective * (1 + 1e-3)


def test_two_classes_are_the_logistic_loss():
    """f and −f, halved: the penalty of both is that of one at half the ridge, f ↦ f_1 − f_2."""
    features, owner, _ = problem_of(90, 50, 3)
    first = owner == 0
    two = ConvexSolver(features, np.stack([first, ~first], axis=1).astype(float), Softmax())
    one = ConvexSolver(features, np.where(first, 1.0, -1.0), loss_of("logistic"))
    a, b = two.fit(0.02), one.fit(0.01)
    np.testing.assert_allclose(
        a.coefficients[:, 0] - a.coefficients[:, 1], b.coefficients, atol=1e-8
    )
    assert a.train_objective == pytest.approx(b.train_objective, rel=1e-10)


def test_a_path_and_a_kernel_matrix_give_what_each_ridge_gives_alone():
    features, _, y = problem_of(60, 90, 3)
    solver = ConvexSolver(features, y, Softmax())
    for ridge in (0.1, 0.003, 0.02):
        alone = ConvexSolver(features, y, Softmax()).fit(ridge)
        np.testing.assert_allclose(solver.fit(ridge).coefficients, alone.coefficients, atol=1e-7)
    dual = fit_kernel_readout(features @ features.T, y, 0.02, Softmax())
    np.testing.assert_allclose(features.T @ dual.coefficients, alone.coefficients, atol=1e-7)
    assert dual.train_objective == pytest.approx(alone.train_objective, rel=1e-9)


def test_separable_classes_at_next_to_no_ridge():
    features, owner, y = problem_of(60, 200, 3)
    readout = ConvexSolver(features, y, Softmax()).fit(1e-8)
    assert np.all((features @ readout.coefficients).argmax(axis=1) == owner)
    assert readout.loss < 1e-3


def test_labels_that_are_no_classes_are_refused():
    features, _, y = problem_of(20, 10, 3)
    with pytest.raises(og.AssumptionError, match="name one class"):
        ConvexSolver(features, y + 0.1, Softmax())


SPEC = {
    "data": {"model": "mixture", "dim": 60, "weights": [0.4, 0.3, 0.3], "mean": 2.0,
             "spread": 3.0},
    "labels": {"model": "component"},
    "network": {"width": 50},
    "training": {"samples": 120, "ridge": 1e-3, "rate": 30.0, "loss": "logistic"},
}  # fmt: skip
MODELS_ASKED = ("network", "hermite:3", "conditional-gaussian", "gaussian", "random-features",
                "linear", "kernel")  # fmt: skip


def test_every_model_has_it():
    found = og.simulate(SPEC, MODELS_ASKED, seeds=3)
    for summary in found.estimates.values():
        assert 0 < summary.train_loss.mean < summary.train_objective.mean
        assert 0 < summary.test_loss.mean < 1.2
        assert 0 < summary.misclassification.mean < 0.5
        assert np.isnan(summary.calibration.mean)
    each = found.estimates
    gap = each["conditional-gaussian"].test_loss.mean / each["network"].test_loss.mean - 1
    assert abs(gap) < 0.05  # paired: the equivalence holds for a softmax too
    assert each["random-features"].test_loss.mean > 1.2 * each["network"].test_loss.mean


@pytest.mark.parametrize("model", ["network", "conditional-gaussian"])
def test_the_test_loss_is_the_cross_entropy(model):
    """By hand, with 40 draws of a model's own noise."""
    trial = Trial(og.Problem.from_spec(SPEC), Streams(0, 0))
    fitted = MODELS[model].fit(trial)
    found = class_risk(trial, {model: fitted}, 4000)[model]
    rng, values, squares = np.random.default_rng(1), [], []
    for batch in trial.test_batches(4000):
        mean, extra = fitted.predict(Inputs(batch))
        noise = np.zeros((1, *mean.shape))
        if not isinstance(extra, float):
            root = np.linalg.cholesky(extra + 1e-12 * np.eye(3))
            noise = np.einsum("mij,rmj->rmi", root, rng.standard_normal((40, *mean.shape)))
        f = mean + noise
        chance = np.exp(f - f.max(axis=-1, keepdims=True))
        chance /= chance.sum(axis=-1, keepdims=True)
        values.append(-np.log(np.sum(chance * batch.y, axis=-1)).mean(axis=0))
        squares.append(np.sum((batch.y - f) ** 2, axis=-1).mean(axis=0))
    assert found.test_loss == pytest.approx(np.concatenate(values).mean(), rel=0.01)
    assert found.value == pytest.approx(np.concatenate(squares).mean(), rel=0.02)


@pytest.mark.parametrize("method", ["auto", "layer", "conditional"])
def test_its_theory_says_what_to_do_instead(method):
    with pytest.raises(og.AssumptionError, match=r'softmax.*Simulate it.*"squared"'):
        og.predict(SPEC, method)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "huber", "absolute"])
def test_other_losses_of_classes_are_refused_by_their_key(loss):
    with pytest.raises(og.SpecError, match=r"training\.loss.*3 classes.*softmax"):
        og.Problem.from_spec({**SPEC, "training": {**SPEC["training"], "loss": loss}})


def test_noise_and_a_softmax_do_not_go_together():
    with pytest.raises(og.SpecError, match=r"labels\.noise"):
        og.Problem.from_spec({**SPEC, "labels": {"model": "component", "noise": 0.1}})
