"""Chebyshev interpolation."""

import numpy as np
import pytest

from onegrad.gaussian.polynomials import chebyshev_basis, chebyshev_nodes, chebyshev_transform


@pytest.mark.parametrize("count", [1, 2, 7, 14])
def test_polynomials_below_the_number_of_nodes_are_exact(count):
    coefficients = np.random.default_rng(count).standard_normal(count)
    x = np.linspace(-1, 1, 23)
    values = np.polynomial.chebyshev.chebval(chebyshev_nodes(count), coefficients)
    np.testing.assert_allclose(chebyshev_transform(count) @ values, coefficients, atol=1e-14)
    want = np.polynomial.chebyshev.chebval(x, coefficients)
    np.testing.assert_allclose(chebyshev_basis(count, x) @ coefficients, want, atol=1e-13)


def test_one_degree_more_is_not():
    values = np.polynomial.chebyshev.chebval(chebyshev_nodes(5), np.eye(6)[5])
    assert np.abs(chebyshev_transform(5) @ values).max() < 1e-14  # T₅ vanishes at its own zeros


def test_what_lies_outside_is_taken_at_the_end():
    np.testing.assert_array_equal(chebyshev_basis(4, np.array([1.3, -2.0])),
                                  chebyshev_basis(4, np.array([1.0, -1.0])))  # fmt: skip
