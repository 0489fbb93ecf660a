"""Tables of smoothed activations against the integrals."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation
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
