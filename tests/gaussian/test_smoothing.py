"""Tables of smoothed activations against the integrals."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.gaussian import moment_tables
from onegrad.gaussian.activation import get_activation, hermite_activation
from onegrad.gaussian.moment_tables import integrated, three_moments
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import slope_moments, smoothed


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "gelu", "hermite(0, 1, 0.5, 0.2)"])
@pytest.mark.parametrize("scales", [(0.6, 0.75), (0.9, 30.0)])
def test_tables_equal_the_integrals(name: str, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    sigma = get_activation(name).centred()
    scale = np.exp(rng.uniform(*np.log(scales), size=(60, 1)))
    shift = 2.0 * scale * rng.standard_normal((60, 120))
    table = smoothed(sigma, shift, scale)
    rows, columns = rng.integers(60, size=200), rng.integers(120, size=200)
    exact = sigma.smoothed(shift[rows, columns], scale[rows, 0])
    for mine, right in zip(table, exact, strict=True):
        size = 1 + np.abs(right).max()
        assert np.abs(mine[rows, columns] - right).max() < 5e-7 * size
    slope = slope_moments(sigma, shift, scale)
    assert np.abs(slope.value[rows, columns] - exact.slope).max() < 5e-7 * (
        1 + np.abs(exact.slope).max()
    )


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "gelu", "softplus", "sin"])
def test_far_out_a_function_is_its_asymptote(name: str) -> None:
    rng = np.random.default_rng(1)
    activation = get_activation(name)
    scale = np.exp(rng.uniform(-1, 1, size=(30, 1)))
    shift = rng.standard_normal((30, 80)) * rng.choice([1.0, 30.0, 500.0], size=(30, 1))
    for function in (activation.function, activation.derivative):
        found = three_moments(function, shift, scale)
        right = integrated(function, shift, np.broadcast_to(scale, shift.shape))
        assert np.abs(found - right).max() < 3e-7 * (1 + np.abs(right).max())
        lines = moment_tables._asymptotes(function)
        assert (lines is None) == (name == "sin")
        if lines is not None:  # taken too close to the middle they would not do
            near = np.abs(shift) < 0.1 * lines.start
            wrong = lines.moments(shift[near], np.broadcast_to(scale, shift.shape)[near])
            assert np.abs(wrong - right[:, near]).max() > 0.01


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
