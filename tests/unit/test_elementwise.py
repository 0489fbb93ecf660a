"""Elementwise work in pieces and in place gives what the plain formulas give."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from onegrad.activation import get_activation, names
from onegrad.hermite import hermite_series, hermite_to_power, power_to_hermite
from onegrad.network.step import descent_direction, residual, slopes_and_error

ALL = [*names(), "hermite(0.1, 1, 0.4)"]


@pytest.fixture(scope="module")
def z():
    return 3 * np.random.default_rng(0).standard_normal((300, 170))  # several pieces


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("centred", [False, True])
def test_pieces_agree_with_the_whole(name, centred, z):
    activation = get_activation(name)
    activation = activation.centred() if centred else activation
    values, slopes = activation.value_and_slope(z)
    np.testing.assert_allclose(values, activation(z), atol=1e-14)
    np.testing.assert_allclose(slopes, activation.derivative(z), atol=1e-14)
    out = z.copy()
    assert activation.into(out, out) is out
    np.testing.assert_array_equal(out, activation(z))


def test_tanh_is_that_of_numpy():
    x = np.concatenate([np.linspace(-30, 30, 10_001), [0.0, 1e-300, 1e4, -1e4, np.inf]])
    tanh = get_activation("tanh")
    np.testing.assert_allclose(tanh(x), np.tanh(x), rtol=0, atol=5e-16)
    np.testing.assert_array_equal(tanh(-x), -tanh(x))
    assert tanh(0.3) == np.tanh(0.3)


@pytest.mark.parametrize("degree", range(12))
def test_hermite_series_in_both_forms(degree, z):
    coefficients = np.random.default_rng(degree).standard_normal(degree + 1)
    want = hermeval(z, coefficients)
    tolerance = 1e-14 * np.abs(want).max()
    np.testing.assert_allclose(hermite_series(coefficients, z), want, atol=tolerance)
    np.testing.assert_allclose(hermite_series(coefficients, z.T), want.T, atol=tolerance)
    out = z.copy()
    assert hermite_series(coefficients, out, out=out) is out
    np.testing.assert_allclose(out, want, atol=tolerance)


def test_powers_and_hermite_polynomials_are_inverse():
    np.testing.assert_allclose(hermite_to_power(9) @ power_to_hermite(9), np.eye(10), atol=1e-9)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
@pytest.mark.parametrize("labels_only", [False, True])
def test_one_pass_is_the_gradient(name, labels_only, z):
    rng = np.random.default_rng(1)
    activation = get_activation(name)
    x, y, a = rng.standard_normal((300, 20)), rng.standard_normal(300), rng.standard_normal(170)
    error = y if labels_only else residual(activation, z, a, y)
    want = 2.5 * descent_direction(activation, z, a, x, error)
    out = z.copy()
    got = slopes_and_error(activation, out, a, y, 2.5, labels_only, out=out)
    np.testing.assert_allclose(got, error, atol=1e-12)
    np.testing.assert_allclose(out.T @ x, want, atol=1e-12)


def test_a_derivative_that_is_its_own_argument_does_no_harm():
    from onegrad.activation import Activation

    square = Activation("half-square", lambda x: x * x / 2, lambda x: x)
    z = np.random.default_rng(2).standard_normal((30, 4))
    before = z.copy()
    slopes_and_error(square, z, np.ones(4), np.ones(30), 1.0, True, np.empty_like(z))
    np.testing.assert_array_equal(z, before)
