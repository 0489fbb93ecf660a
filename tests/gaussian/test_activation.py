"""Hermite coefficients and smoothing against mpmath, closed forms and finite differences."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from onegrad.errors import SpecError
from onegrad.gaussian.activation import (
    Activation,
    get_activation,
    hermite_activation,
    names,
    register_activation,
)
from onegrad.gaussian.polynomials import hermite_series

ALL = ["relu", "tanh", "sigmoid", "erf", "gelu", "softplus", "sin", "elu", "identity",
       "hermite(0.3, 1, -0.5, 0.2)"]  # fmt: skip

MP = {
    "relu": lambda x: x if x > 0 else mpmath.mpf(0),
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "gelu": lambda x: x * mpmath.ncdf(x),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "sin": mpmath.sin,
    "elu": lambda x: x if x > 0 else mpmath.expm1(x),
    "identity": lambda x: x,
    "hermite(0.3, 1, -0.5, 0.2)": lambda x: 0.3 + x - 0.5 * (x**2 - 1) + 0.2 * (x**3 - 3 * x),
}


def reference(function, s, b, weight=lambda z: 1, breakpoints=(0.0,)):
    """E[function(s+bZ)·weight(Z)] by mpmath, split at the breakpoints and on a fine partition."""
    points = sorted(
        {*np.linspace(-14, 14, 29).tolist(), *((breakpoint - s) / b for breakpoint in breakpoints)}
    )
    points = [p for p in points if -14 <= p <= 14]
    return float(mpmath.quad(lambda z: function(s + b * z) * weight(z) * mpmath.npdf(z), points))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("s", "b"), [(0.0, 1.0), (0.7, 0.4), (-2.0, 1.5), (1.0, 4.0)])
def test_smoothing_agrees_with_mpmath(name, s, b):
    got = get_activation(name).smoothed(s, b)
    f = MP[name]
    value = reference(f, s, b)
    square = reference(lambda x: f(x) ** 2, s, b)
    slope = reference(f, s, b, lambda z: z) / b  # Stein's identity, not the derivative's code
    size = 1 + abs(square)
    assert got.value == pytest.approx(value, abs=1e-10 * size)
    assert got.slope == pytest.approx(slope, abs=1e-10 * size)
    assert got.variance == pytest.approx(square - value**2, abs=1e-10 * size)


@pytest.mark.parametrize("name", ALL)
def test_projections_agree_with_mpmath(name):
    scale = 0.8
    got = get_activation(name).projections(6, scale)
    for j in (0, 1, 2, 3, 6):
        basis = [0.0] * j + [1.0]
        want = reference(
            MP[name], 0.0, scale, lambda z, c=basis: float(hermite_series(c, float(z)))
        )
        assert got[j] == pytest.approx(want, abs=1e-10)


def test_relu_coefficients_are_exact():
    c = get_activation("relu").coefficients(4)
    assert c[1] == pytest.approx(0.5, abs=1e-13)
    assert c[2] == pytest.approx(1 / (2 * math.sqrt(2 * math.pi)), abs=1e-13)
    assert c[3] == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "relu", "gelu", "softplus"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_parseval(name, scale):
    """E σ(bZ)² = Σ h_j²/j!: the remainder falls towards 0 and is never negative."""
    activation = get_activation(name)
    left = [activation.remainder(degree, scale) for degree in (0, 1, 3, 9, 21)]
    assert all(a**2 >= b**2 - 1e-12 for a, b in itertools.pairwise(left))
    assert left[-1] < 0.35 * math.sqrt(activation.second_moment(scale))


@pytest.mark.parametrize("name", ALL)
def test_zero_scale_is_the_function_itself(name):
    activation = get_activation(name)
    s = np.array([-1.3, 0.0, 2.1])
    got = activation.smoothed(s, 0.0)
    np.testing.assert_allclose(got.value, activation(s), atol=1e-12)
    np.testing.assert_allclose(got.variance, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_derivative(name):
    activation = get_activation(name)
    x = np.linspace(-3, 3, 14)  # misses the breakpoint
    step = 1e-5
    slope = (activation(x + step) - activation(x - step)) / (2 * step)
    np.testing.assert_allclose(activation.derivative(x), slope, atol=1e-8)


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "identity"])
def test_odd_activations_have_no_even_terms(name):
    np.testing.assert_allclose(get_activation(name).projections(8, 1.3)[::2], 0.0, atol=1e-11)


def test_centred_activation_has_no_constant_term():
    relu = get_activation("relu")
    centred = relu.centred()
    assert centred.coefficients(0)[0] == pytest.approx(0.0, abs=1e-13)
    np.testing.assert_allclose(centred.coefficients(5)[1:], relu.coefficients(5)[1:], atol=1e-13)
    assert centred.smoothed(0.2, 0.5).variance == pytest.approx(relu.smoothed(0.2, 0.5).variance)


def test_user_callable_with_breakpoints():
    clip = Activation(
        "clip",
        lambda x: np.clip(x, -1, 1),
        lambda x: (np.abs(x) < 1) * 1.0,
        breakpoints=(-1.0, 1.0),
    )
    got = clip.smoothed(0.3, 0.9)
    want = reference(lambda x: min(max(x, -1), 1), 0.3, 0.9, breakpoints=(-1.0, 1.0))
    assert got.value == pytest.approx(want, abs=1e-11)
    inside = 0.5 * (math.erf(0.7 / 0.9 / math.sqrt(2)) + math.erf(1.3 / 0.9 / math.sqrt(2)))
    assert got.slope == pytest.approx(inside, abs=1e-11)


def test_shapes_broadcast():
    got = get_activation("tanh").smoothed(np.zeros((4, 1)), np.ones(3))
    assert got.value.shape == got.slope.shape == got.variance.shape == (4, 3)


def test_hermite_by_coefficients():
    activation = get_activation("hermite(0, 1, 0.5)")
    np.testing.assert_allclose(activation.coefficients(4), [0, 1, 0.5, 0, 0], atol=1e-12)
    assert hermite_activation(0, 1, 0.5).name == activation.name


@pytest.mark.parametrize("bad", ["rleu", "hermite()", "hermite(1, nan)", "hermite(a)", 3, None])
def test_unknown_activation_is_advice(bad):
    with pytest.raises(SpecError) as caught:
        get_activation(bad)
    assert "relu" in str(caught.value) or "hermite(c0" in str(caught.value)


def test_register():
    register_activation(Activation("half", lambda x: x / 2, lambda x: 0.5 + 0 * x))
    assert "half" in names()
    with pytest.raises(SpecError):
        register_activation(Activation("relu", np.abs, np.sign, breakpoints=(0.0,)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("centred", [False, True])
def test_pieces_agree_with_the_whole(name, centred):
    z = 3 * np.random.default_rng(0).standard_normal((300, 170))  # several pieces
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
