"""Hermite series of activations and links."""

import pytest

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import get_activation
from onegrad.theory.isotropic.setting import ActivationSeries, LinkSeries
from tests.theory.isotropic.common import COEFFICIENTS, LINK


def test_which_spikes_an_activation_has():
    for name, active in (("relu", (1, 2, 4)), ("tanh", (1, 3)), ("softplus", (1, 2, 4))):
        assert ActivationSeries.of(get_activation(name)).active(4) == active


def test_a_link_is_its_coefficients():
    series = LinkSeries.of(get_activation(f"hermite({', '.join(map(str, COEFFICIENTS))})"))
    assert series.padded(3) == pytest.approx(COEFFICIENTS, abs=1e-12)
    assert series.second_moment == pytest.approx(LINK.second_moment, rel=1e-12)
    assert LINK.padded(5)[4:].tolist() == [0.0, 0.0] and LinkSeries((0.5,), 0.25).linear == 0


def test_a_second_moment_below_the_coefficients_is_refused():
    with pytest.raises(AssumptionError, match="second moment"):
        LinkSeries((0.0, 1.0), 0.5)
