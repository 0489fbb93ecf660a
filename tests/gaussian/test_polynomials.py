"""Hermite polynomials: orthonormality, series in both forms, powers."""

import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from onegrad.gaussian.polynomials import (
    hermite_series,
    hermite_to_power,
    orthonormal_hermite,
    power_to_hermite,
    sqrt_factorial,
)
from onegrad.gaussian.quadrature import gauss_hermite


@pytest.fixture(scope="module")
def z():
    return 3 * np.random.default_rng(0).standard_normal((300, 170))  # several pieces


def test_power_to_hermite():
    x = np.linspace(-2, 2, 9)
    table = power_to_hermite(6)
    for p in range(7):
        np.testing.assert_allclose(hermite_series(table[p], x), x**p, atol=1e-11)


def test_orthonormality():
    x, w = gauss_hermite(60)
    rows = orthonormal_hermite(20, x)
    np.testing.assert_allclose((rows * w) @ rows.T, np.eye(21), atol=1e-10)
    assert sqrt_factorial(4)[-1] == pytest.approx(math.sqrt(24))


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
