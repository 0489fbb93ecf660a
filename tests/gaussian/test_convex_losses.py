"""Losses: their definitions, slopes and Gaussian means."""

import numpy as np
import pytest

from onegrad.gaussian.convex_losses import NAMES, OF_SIGNS, Clipped, clipped_moments, loss_of

DEFINED = {
    "squared": lambda y, f: (y - f) ** 2,
    "logistic": lambda y, f: np.log(1 + np.exp(-y * f)),
    "hinge": lambda y, f: np.maximum(1 - y * f, 0),
    "squared-hinge": lambda y, f: np.maximum(1 - y * f, 0) ** 2,
    "absolute": lambda y, f: np.abs(y - f),
    "huber": lambda y, f: np.where(
        np.abs(y - f) <= 0.7, (y - f) ** 2, 1.4 * np.abs(y - f) - 0.49
    ),
}  # fmt: skip


def labels_and_outputs(name):
    f = np.linspace(-3, 3, 41) + 1e-3
    y = np.where(np.arange(41) % 2, 1.0, -1.0)
    return (y if name in OF_SIGNS else 0.8 * y), f


@pytest.mark.parametrize("name", NAMES)
def test_values_and_slopes(name):
    loss, (y, f), h = loss_of(name, 0.7), labels_and_outputs(name), 1e-6
    np.testing.assert_allclose(loss.value(y, f), DEFINED[name](y, f), atol=1e-12)
    slope = -(loss.value(y, f + h) - loss.value(y, f - h)) / (4 * h)
    np.testing.assert_allclose(loss.slope(y, f), slope, atol=1e-7)
    if not (isinstance(loss, Clipped) and loss.softness == 0):
        bend = -(loss.slope(y, f + h) - loss.slope(y, f - h)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(y, f), bend, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variance", [0.0, 0.3, 4.0])
def test_means_under_gaussian_outputs(name, variance):
    loss, (y, f) = loss_of(name, 0.7), labels_and_outputs(name)
    z = np.linspace(-9, 9, 40_001)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    expected = [np.sum(weight * DEFINED[name](a, b + np.sqrt(variance) * z))
                for a, b in zip(y, f, strict=True)]  # fmt: skip
    np.testing.assert_allclose(loss.expected(y, f, variance), expected, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.4), (0.0, np.inf), (-np.inf, np.inf)])
def test_moments_of_a_clipped_gaussian(low, high):
    z = np.linspace(-9, 9, 200_001)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    x = 0.2 + 0.6 * z
    found = clipped_moments(np.array(0.2), np.array(0.6), np.array(low), np.array(high))
    clipped = np.clip(x, low, high)
    inside = (x > low) & (x < high)
    np.testing.assert_allclose(
        found, [weight @ clipped, weight @ clipped**2, weight @ inside], atol=2e-5
    )
