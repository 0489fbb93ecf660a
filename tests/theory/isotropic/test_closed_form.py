"""Predictions from a problem: regimes, assumptions, limits, and the network itself."""

import math
import time

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.linalg import cho_factor, cho_solve

from onegrad.errors import AssumptionError, SpecError
from onegrad.gaussian.activation import get_activation
from onegrad.problem import Problem
from onegrad.theory.isotropic.closed_form import (
    isotropic_losses,
    on_border,
    predict_isotropic,
    regime_of,
)
from onegrad.theory.isotropic.limits import (
    finite_step_losses,
    loss_drops,
    random_features_losses,
)
from onegrad.theory.isotropic.setting import IsotropicSetting
from tests.theory.isotropic.common import (
    COEFFICIENTS,
    NOISE,
    PHI,
    PSI,
    RIDGE,
    link_of,
    polynomial_spikes,
    problem,
    setting,
)

# --- regimes and assumptions ------------------------------------------------------------


def test_regimes_and_borders():
    exponents = (-0.1, 0.0, 0.1, 0.25, 0.3, 1 / 3, 0.34, 0.4, 0.41)
    assert [regime_of(a) for a in exponents] == [0, 1, 1, 1, 2, 2, 3, 4, 5]
    for border in (0.0, 0.25, 0.25 + 1e-8, 1 / 3, 0.375, 0.4, 5 / 12):
        assert on_border(border)
    for inside in (-0.1, 0.1, 0.25 - 1e-6, 0.25 + 1e-6, 0.3):
        assert not on_border(inside)
    with pytest.raises(AssumptionError, match="conditional Gaussian"):
        regime_of(0.5)
    with pytest.raises(AssumptionError, match="too near"):
        regime_of(0.499)


@pytest.mark.parametrize("exponent", [0.0, 0.25, 1 / 3, 0.4])
def test_there_is_no_limit_on_a_border(exponent):
    with pytest.raises(AssumptionError, match="finite-step"):
        predict_isotropic(problem(exponent=exponent), "limit")
    for side in (exponent - 1e-6, exponent + 1e-6) if exponent else ():  # both sides have one
        here = IsotropicSetting.of(problem(exponent=side))
        drop = loss_drops(here, regime_of(exponent) + (side > exponent))[1]
        limit = random_features_losses(here).test_error - drop
        found = predict_isotropic(problem(exponent=side), "limit").test_error
        assert found == pytest.approx(limit, rel=1e-12)
    assert predict_isotropic(problem(exponent=exponent)).test_error > 0


def test_failures_say_what_to_use_instead():
    even = "hermite(0, 0, 1)"
    with pytest.raises(AssumptionError, match="conditional Gaussian"):
        predict_isotropic(problem(even, exponent=0.2))
    predict_isotropic(problem(even, exponent=0.2), "random-features")
    with pytest.raises(AssumptionError, match="any step"):
        predict_isotropic(problem(rate=40.0))
    with pytest.raises(AssumptionError, match="mean off the labels"):
        predict_isotropic(problem(link=[0.5, 1.0], exponent=0.2), "limit")
    # an odd activation learns no constant, so there the limit stands
    predict_isotropic(problem("tanh", [0.5, 1.0], exponent=0.2), "limit")
    with pytest.raises(AssumptionError, match="guess"):
        predict_isotropic(problem(exponent=0.2), "guess")
    for wrong in ({"training": {"gradient": "none"}}, {"rate": -1.0}, {}):
        with pytest.raises(SpecError):
            problem(**wrong)
    tables = problem(exponent=0.2).model_dump(mode="json", exclude_none=True)
    tables["network"]["readout"] = "constant"
    with pytest.raises(AssumptionError, match="readout"):
        predict_isotropic(Problem.from_spec(tables))


def test_a_prediction_says_what_it_assumed():
    p = predict_isotropic(problem("tanh", exponent=0.29), "limit")
    text = " ".join(p.assumptions)
    assert p.regime == 2
    assert "ℓ = 2" in text and "no spike of degree 2" in text and "residual y − f₀" in text


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_a_prediction_is_fast(name):
    def once(i):
        given = problem(name, samples=1000 + 8 * i, exponent=0.29)
        start = time.process_time()  # other processes do not count
        predict_isotropic(given)
        return time.process_time() - start

    once(0)  # the activation's coefficients are computed once
    assert np.median([once(i) for i in range(15)]) < 2e-2


# --- algebra ----------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
@pytest.mark.parametrize(("name", "exponent"), [("relu", 0.2), ("relu", 0.29), ("softplus", 0.3),
                                                ("tanh", 0.2), ("sigmoid", 0.35)])  # fmt: skip
def test_the_finite_step_tends_to_the_limit(name, exponent, gradient):
    # spike k has strength n^(k(α − ½) + ½) against the bulk, and only its square counts
    active = setting(name).features.active(8)
    expected = min(2 * abs(k * (exponent - 0.5) + 0.5) for k in active)
    if gradient == "exact":  # the initial output shortens the old row along a: relative 1/η
        expected = min(expected, exponent)
    powers = [round(p / expected) for p in (7, 8, 9)]
    gaps = []
    for power in powers:
        n = 10**power
        here = setting(name, rate=float(n) ** exponent, exponent=exponent, width=5 * n // 8,
                       gradient=gradient)  # fmt: skip
        finite = finite_step_losses(here, polynomial_spikes(here, 8))
        limit = isotropic_losses(here, "limit")
        gaps.append(abs(finite.train_objective / limit.train_objective - 1))
    decay = -np.polyfit(powers, np.log10(gaps), 1)[0]
    assert gaps[-1] < 1e-3
    assert decay == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("method", ["finite-step", "limit", "random-features"])
def test_training_error_is_the_objective_without_its_penalty(method):
    # ∂L/∂λ = ‖a‖² at fixed features
    def at(ridge):
        return predict_isotropic(problem(training={"ridge": ridge}, exponent=0.29), method)

    step = 1e-4
    slope = (at(0.1 + step).train_objective - at(0.1 - step).train_objective) / (2 * step)
    middle = at(0.1)
    assert middle.train_error == pytest.approx(middle.train_objective - 0.1 * slope, rel=1e-6)


def test_zero_rate_is_random_features():
    still = predict_isotropic(problem(rate=0.0))
    plain = predict_isotropic(problem(exponent=0.2), "random-features")
    tiny = predict_isotropic(problem(rate=1e-6))
    assert still.test_error == plain.test_error
    # one neuron direction out of N is treated apart, at no change
    assert tiny.test_error == pytest.approx(plain.test_error, rel=1e-5)
    expected = [float(loss) for loss in random_features_losses(setting())]
    got = (plain.train_objective, plain.train_error, plain.test_error)
    assert got == pytest.approx(expected, rel=1e-13)


def test_more_first_step_samples_give_a_better_direction():
    few, many = (predict_isotropic(problem(training={"step_samples": m}, exponent=0.2))
                 for m in (1000, 100_000))  # fmt: skip
    assert many.test_error < few.test_error


# --- simulations ------------------------------------------------------------------------


def test_random_features_errors_of_a_simulation():
    n, d, width, ridge = 800, 400, 500, RIDGE
    rng = np.random.default_rng(3)
    activation = get_activation("relu").centred()
    rows = []
    for _ in range(12):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        x, fresh = rng.standard_normal((n, d)), rng.standard_normal((4 * n, d))
        y = x[:, 0] + rng.standard_normal(n)
        rows.append(fit(activation(x @ w.T), y, activation(fresh @ w.T), fresh[:, 0], ridge, 1.0))
    rows = np.array(rows)
    theory = random_features_losses(setting(link=link_of([0, 1]), noise_variance=1.0))
    error = rows.std(0, ddof=1) / math.sqrt(len(rows))
    assert np.all(np.abs(rows.mean(0) - np.array(theory)) <= 4 * error)


def fit(features, y, fresh, target, ridge, noise):
    """Objective, mean squared residual, mean squared test error of the ridge readout."""
    n, width = features.shape
    gram = features.T @ features / n
    gram[np.diag_indices(width)] += ridge
    a = cho_solve(cho_factor(gram), features.T @ y / n)
    residual = np.mean((y - features @ a) ** 2)
    return residual + ridge * a @ a, residual, np.mean((target - fresh @ a) ** 2) + noise


def one_step_runs(name, n, seeds, exponents, rng, link=COEFFICIENTS):
    """[seed, run, loss]: run 0 without a step, then both gradients at every exponent.

    In single precision: the ridge is 0.1.
    """
    d, width = round(PHI * n), round(PHI / PSI * n)
    activation = get_activation(name).centred()
    runs = []
    for _ in range(seeds):
        w = rng.standard_normal((width, d), np.float32) / np.float32(math.sqrt(d))
        a = rng.standard_normal(width, np.float32) / np.float32(math.sqrt(width))
        x, x2, x3 = (rng.standard_normal((m, d), np.float32) for m in (n, n, 3000))
        y, y2, target = (hermeval(z[:, 0].astype(float), link) for z in (x, x2, x3))
        y, y2 = (clean + math.sqrt(NOISE) * rng.standard_normal(n) for clean in (y, y2))

        def losses(w, x2=x2, x3=x3, y2=y2, target=target):
            return fit(activation(x2 @ w.T), y2, activation(x3 @ w.T), target, RIDGE, NOISE)

        u = x @ w.T
        row = [losses(w)]
        for gradient in ("labels-only", "exact"):
            r = (y - activation(u) @ a if gradient == "exact" else y).astype(np.float32)
            step = (activation.derivative(u) * np.outer(r, a)).T @ x
            row += [losses(w + np.float32(n ** (alpha - 1)) * step) for alpha in exponents]
        runs.append(row)
    return np.array(runs)


def compare_with_network(name, n, seeds, link):
    """(predicted/simulated − 1, relative standard error) for [gradient × exponent, loss]."""
    exponents = (0.2, 0.29)
    runs = one_step_runs(name, n, seeds, exponents, np.random.default_rng(1), link)
    plain = predict_isotropic(problem(name, link, samples=n, rate=0.0))
    base = np.array([plain.train_objective, plain.train_error, plain.test_error])
    # the labels' own fluctuation (heavy tails: 4 % at n = 2000) cancels against the run without
    # a step, whose limit is known
    ratio = runs.mean(0) / runs[:, 0].mean(0)
    spread = (runs - ratio * runs[:, :1]).std(0, ddof=1) / math.sqrt(len(runs))
    simulated = ratio * base
    predicted = []
    for gradient in ("labels-only", "exact"):
        for alpha in exponents:
            given = problem(name, link, {"gradient": gradient}, n, exponent=alpha)
            p = predict_isotropic(given)
            predicted.append([p.train_objective, p.train_error, p.test_error])
    relative = spread / runs[:, 0].mean(0) * base / simulated
    return np.array(predicted) / simulated[1:] - 1, relative[1:], runs[:, 0].mean(0) / base - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_the_finite_step_against_the_network(name):
    gap, error, _ = compare_with_network(name, 1000, 12, COEFFICIENTS)
    assert np.all(error < 0.02)
    assert np.all(np.abs(gap) < 0.05)


@pytest.mark.slow
def test_labels_with_a_mean():
    gap, error, base = compare_with_network("softplus", 1400, 9, [1.0, 1.0])
    assert np.all(error < 0.02)
    assert np.all(np.abs(gap) < 0.05)
    # the untrained network fits a part of the mean by the spread of its neurons' norms
    assert np.all(np.abs(base) < 0.05)
    without = random_features_losses(setting("softplus", link=link_of([1.0, 1.0])))
    plain = predict_isotropic(problem("softplus", [1.0, 1.0], rate=0.0))
    assert float(without.test_error) > 1.08 * plain.test_error
