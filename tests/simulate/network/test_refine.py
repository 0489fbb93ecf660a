"""Factors and conjugate gradients of single precision, refined to double precision."""

import numpy as np
import pytest

from onegrad.compute.threads import blas_threads
from onegrad.simulate.network import readout, refine
from onegrad.simulate.network.readout import RidgeSolver


def fit(features, y, ridge):
    return RidgeSolver(features, y).fit(ridge, last=True)


def large_features(m, k):
    rng = np.random.default_rng(5)
    features = np.tanh(rng.standard_normal((m, k))) + 0.3
    return features, features[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(m)


@pytest.mark.parametrize(("m", "k"), [(600, 520), (520, 600), (1200, 520), (520, 1200), (550, 550)])
def test_a_factor_of_single_precision_is_refined_to_double(m, k, monkeypatch):
    features, y = large_features(m, k)
    ridge = 1e-3 * k
    used = []
    monkeypatch.setattr(readout, "rounded_solution", _noting(used, refine.rounded_solution))
    ours = fit(features, y, ridge)
    assert used == [True]
    exact = RidgeSolver(features, y).fit(ridge)  # other ridges may follow: double precision
    assert used == [True]
    size = np.linalg.norm(exact.coefficients)
    assert np.linalg.norm(ours.coefficients - exact.coefficients) < 1e-12 * size
    assert ours.train_error == pytest.approx(exact.train_error, rel=1e-12)
    assert ours.train_objective == pytest.approx(exact.train_objective, rel=1e-12)
    # negative control: without refinement the same comparison sees the single precision
    monkeypatch.setattr(refine, "_DOUBLE", 10.0)
    rough = fit(features, y, ridge).coefficients
    assert np.linalg.norm(rough - exact.coefficients) > 1e-9 * size


@pytest.mark.parametrize("contraction", [1e-3, 1e9])
def test_a_small_ridge_is_solved_in_double_precision(contraction, monkeypatch):
    """Also where the estimate of the contraction is wrong: then the refinement gives up."""
    features, y = large_features(600, 600)
    used = []
    monkeypatch.setattr(readout, "rounded_solution", _noting(used, refine.rounded_solution))
    monkeypatch.setattr(refine, "_CONTRACTION", contraction)
    ours = fit(features, y, 1e-8)
    assert used == [False]
    exact = RidgeSolver(features, y).fit(1e-8)
    np.testing.assert_array_equal(ours.coefficients, exact.coefficients)


@pytest.mark.parametrize(("m", "k"), [(600, 300), (300, 600), (400, 400)])
def test_conjugate_gradients_are_refined_as_well(m, k, monkeypatch):
    features, y = large_features(m, k)
    features = features.astype(np.float32)
    ridge = 1e-3 * k
    used = []
    monkeypatch.setattr(readout, "conjugate_solution", _noting(used, refine.conjugate_solution))
    ours = fit(features, y, ridge)
    assert used == [True]
    exact = RidgeSolver(features.astype(float), y).fit(ridge)
    size = np.linalg.norm(exact.coefficients)
    assert np.linalg.norm(ours.coefficients - exact.coefficients) < 1e-7 * size
    assert ours.train_error == pytest.approx(exact.train_error, rel=1e-7)
    assert ours.magnified == pytest.approx(
        refine.ROUNDED * np.sum(features.astype(float) ** 2) / (m * ridge), rel=1e-3
    )
    # negative control: one go of them is not enough
    monkeypatch.setattr(refine, "_WANTED", 10.0)
    rough = fit(features, y, ridge).coefficients
    assert np.linalg.norm(rough - exact.coefficients) > 1e-6 * size


def test_where_conjugate_gradients_take_long_a_factor_is_made(monkeypatch):
    features, y = large_features(400, 400)
    features = features.astype(np.float32)
    used = []
    monkeypatch.setattr(readout, "conjugate_solution", _noting(used, refine.conjugate_solution))
    ours = fit(features, y, 3e-4)
    assert used == [False]
    direct = RidgeSolver(features, y).fit(3e-4)  # other ridges may follow: by Cholesky
    np.testing.assert_array_equal(ours.coefficients, direct.coefficients)


def _noting(used, function):
    def noting(*arguments):
        solution = function(*arguments)
        used.append(solution is not None)
        return solution

    return noting


@pytest.mark.parametrize(("m", "k"), [(600, 520), (520, 900)])
def test_the_mean_of_features_costs_no_iterations(m, k):
    rng = np.random.default_rng(6)
    centred = np.tanh(rng.standard_normal((m, k))).astype(np.float32)
    features, dual = centred + np.float32(2.0), k > m
    right = rng.standard_normal(min(m, k)).astype(np.float32)
    shift = 0.02 * max(m, k)

    def iterations(features, mean):
        for most in range(1, 200):
            if (
                refine._conjugate_gradients(features, right, shift, dual, (1e-4, most), mean)
                is not None
            ):
                return most
        return 200

    assert refine._mean_direction(centred, shift, dual) is None
    mean = refine._mean_direction(features, shift, dual)
    assert mean is not None
    with_mean, without = iterations(features, mean), iterations(features, None)  # the control
    assert with_mean <= iterations(centred, None) + 2 < without


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "k"), [(300, 210), (210, 300)])
def test_features_that_are_read_once_have_the_products_of_two_readings(m, k, threads, monkeypatch):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((m, k)).astype(np.float32)
    dual, vector = k > m, rng.standard_normal(min(m, k))
    rows = (features.T if dual else features).astype(float)
    monkeypatch.setattr(refine, "_BLOCK", 1 << 11)  # many blocks, the last one smaller
    with blas_threads(threads):
        image, product = refine.gram_times(features, vector, dual)
    np.testing.assert_allclose(image, rows @ vector, rtol=1e-13)
    np.testing.assert_allclose(product, rows.T @ (rows @ vector), rtol=1e-12)


@pytest.mark.parametrize(("m", "k"), [(600, 520), (520, 600)])
def test_readouts_do_not_depend_on_how_features_are_read(m, k, monkeypatch):
    features, y = large_features(m, k)
    features = features.astype(np.float32)
    usual = fit(features, y, 1e-3 * k)
    monkeypatch.setattr(readout, "COPIED", 0)
    once = fit(features, y, 1e-3 * k)
    assert once.train_error == pytest.approx(usual.train_error, rel=1e-7)
    np.testing.assert_allclose(
        once.coefficients, usual.coefficients, atol=2e-7 * np.linalg.norm(usual.coefficients)
    )
