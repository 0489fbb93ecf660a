"""Gaussian moments of polynomials, against the Gauss rule that is exact for them."""

import numpy as np
import pytest

from onegrad.gaussian.activation import hermite_activation
from onegrad.gaussian.moment_tables import three_moments
from onegrad.gaussian.quadrature import gauss_hermite


@pytest.mark.parametrize(
    "coefficients",
    [(0.3,), (0.1, 1.0, 0.4), (0.0, 0.4, 0.0, 0.7, 0.0, 0.06), (0, 1, 0, 0, 2, 1, 3)],
)
def test_moments_of_polynomials(coefficients: tuple[float, ...]) -> None:
    function = hermite_activation(*coefficients).function
    generator = np.random.default_rng(4)
    shift = 3 * generator.standard_normal((40, 7))
    scale = np.exp(0.5 * generator.standard_normal((40, 1)))
    z, w = gauss_hermite(len(coefficients))
    values = function(shift[..., None] + scale[..., None] * z)
    exact = np.stack([values @ w, values @ (w * z) / scale, values**2 @ w])
    found = three_moments(function, shift, scale)
    assert np.abs(found - exact).max() < 1e-12 * np.abs(exact).max()
