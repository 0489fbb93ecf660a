"""Gaussian integrals where plain rules fail."""

import math

import numpy as np
import pytest

from onegrad.errors import ConvergenceError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gauss_hermite, gaussian_mean


def test_breakpoints_are_integrated_to_rounding():
    got = gaussian_mean(lambda x: np.abs(x), [0.0, 0.4], [1.0, 0.3], (0.0,))
    root = math.sqrt(2 / math.pi)
    folded = 0.3 * root * math.exp(-0.5 * (4 / 3) ** 2) + 0.4 * math.erf(4 / 3 / math.sqrt(2))
    np.testing.assert_allclose(got, [root, folded], rtol=1e-12)


def test_plain_gauss_hermite_would_be_wrong_at_the_breakpoint():
    """Negative control of relu's coefficients: 100 plain nodes miss c₂ by more than 1e-4."""
    x, w = gauss_hermite(100)
    assert (
        abs(float(w @ (np.maximum(x, 0) * (x**2 - 1) / 2)) - 1 / (2 * math.sqrt(2 * math.pi)))
        > 1e-4
    )


def test_an_undeclared_breakpoint_is_refused_with_advice():
    rough = Activation("rough", lambda x: np.abs(x), np.sign)
    with pytest.raises(ConvergenceError, match="breakpoints"):
        rough.smoothed(0.1, 1.0)
