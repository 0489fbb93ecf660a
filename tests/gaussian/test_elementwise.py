"""Elementwise work in pieces and in place gives what the plain formulas give."""

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation, names

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
