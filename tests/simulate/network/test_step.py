"""The gradient step: its slopes against finite differences and the plain formula."""

import numpy as np
import pytest

from onegrad.gaussian.activation import Activation, get_activation
from onegrad.simulate.network.step import residual, slopes_and_error


@pytest.mark.parametrize("name", ["tanh", "relu", "erf", "gelu", "hermite(0.1, 1, 0.4)"])
def test_gradient_agrees_with_finite_differences(name):
    rng = np.random.default_rng(3)
    activation = get_activation(name)
    m, n, k = 17, 6, 5
    x, y = rng.standard_normal((m, n)), rng.standard_normal(m)
    weights, a = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k)

    def loss(w):
        return np.sum((y - activation(x @ w.T) @ a) ** 2) / (2 * m)

    slopes = np.empty((m, k))
    slopes_and_error(activation, x @ weights.T, a, y, 1.0, False, out=slopes)
    direction = slopes.T @ x
    step = 1e-5
    for i in range(k):
        for j in range(n):
            shift = np.zeros_like(weights)
            shift[i, j] = step
            slope = (loss(weights + shift) - loss(weights - shift)) / (2 * step)
            assert direction[i, j] == pytest.approx(-slope, abs=1e-7)
    # negative control: forgetting the ½ of the loss is seen by the same comparison
    assert not np.allclose(2 * direction, direction, atol=1e-7)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
@pytest.mark.parametrize("labels_only", [False, True])
def test_one_pass_is_the_gradient(name, labels_only):
    rng = np.random.default_rng(1)
    activation = get_activation(name)
    z = 3 * np.random.default_rng(0).standard_normal((300, 170))  # several pieces
    x, y, a = rng.standard_normal((300, 20)), rng.standard_normal(300), rng.standard_normal(170)
    error = y if labels_only else residual(activation, z, a, y)
    want = 2.5 * (activation.slope(z) * error[:, None] / 300 * a).T @ x
    out = z.copy()
    got = slopes_and_error(activation, out, a, y, 2.5, labels_only, out=out)
    np.testing.assert_allclose(got, error, atol=1e-12)
    np.testing.assert_allclose(out.T @ x, want, atol=1e-12)


def test_a_derivative_that_is_its_own_argument_does_no_harm():
    square = Activation("half-square", lambda x: x * x / 2, lambda x: x)
    z = np.random.default_rng(2).standard_normal((30, 4))
    before = z.copy()
    slopes_and_error(square, z, np.ones(4), np.ones(30), 1.0, True, np.empty_like(z))
    np.testing.assert_array_equal(z, before)
