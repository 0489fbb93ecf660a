"""Hermite polynomials: orthonormality, series in both forms, powers."""

import math

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval
from numpy.polynomial.hermite_e import hermeval

from onegrad.gaussian.polynomials import (
    chebyshev_basis,
    chebyshev_nodes,
    chebyshev_transform,
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


@pytest.mark.parametrize("count", [1, 2, 7, 14])
def test_chebyshev_interpolation_is_exact_below_the_number_of_nodes(count):
    coefficients = np.random.default_rng(count).standard_normal(count)
    x, nodes = np.linspace(-1, 1, 23), chebyshev_nodes(count)
    values = chebval(nodes, coefficients)
    np.testing.assert_allclose(chebyshev_transform(count) @ values, coefficients, atol=1e-14)
    want = chebval(x, coefficients)
    np.testing.assert_allclose(chebyshev_basis(count, x) @ coefficients, want, atol=1e-13)
    # of one degree more nothing is seen: it vanishes at its own zeros
    assert (
        np.abs(chebyshev_transform(count) @ chebval(nodes, np.eye(count + 1)[count])).max() < 1e-14
    )
    outside, ends = np.array([1.3, -2.0]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(chebyshev_basis(4, outside), chebyshev_basis(4, ends))
