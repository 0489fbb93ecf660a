"""Rules of integration: designs of weak axes, labels, and growth in every axis."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.designs import cross_polytope, fifth_degree, two_level
from onegrad.theory.nodes.rules import (
    QuadratureLevel,
    axis_order,
    label_rule,
    standard_nodes,
)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("turn", [0, 2])
def test_fifth_degree_has_gaussian_moments_up_to_five(count: int, turn: int) -> None:
    z, w = fifth_degree(count, turn)
    delta = np.eye(count)
    pairs = [np.einsum(f"{a},{b}->ijkl", delta, delta) for a, b in (("ij", "kl"), ("ik", "jl"))]
    fourth = pairs[0] + pairs[1] + np.einsum("il,jk->ijkl", delta, delta)
    assert w.min() > 0 and np.allclose((z.T * w) @ z, delta)
    assert np.allclose(np.einsum("s,si,sj,sk,sl->ijkl", w, z, z, z, z), fourth)
    assert np.allclose(w @ z, 0) and np.allclose(w @ z**3, 0) and np.allclose(w @ z**5, 0)


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_small_designs_are_wrong_in_opposite_ways(count: int) -> None:
    """E z⁴ = 3 lies between the two, and half their difference covers the error of the second."""
    (cross, w), (signs, v) = cross_polytope(count), two_level(count)
    for z, weight in ((cross, w), (signs, v)):
        assert weight.sum() == pytest.approx(1)
        assert np.allclose((z.T * weight) @ z, np.eye(count)) and np.allclose(weight @ z**3, 0)
    high, low = w @ cross**4, v @ signs**4
    assert np.all(low < 3) and np.all(high >= 5) and np.all((high - low) / 2 >= 3 - low)


@pytest.mark.parametrize(
    ("link", "most"),
    [("identity", 3), ("hermite(0, 1, 0.5, 0.2)", 4), ("relu", 6), ("tanh", 14), ("erf", 14)],
)
@pytest.mark.parametrize("offset", [0.0, 1.3])
def test_labels_are_resolved_by_few_nodes(link: str, most: int, offset: float) -> None:
    f, z = get_activation(link), np.linspace(-9, 9, 200_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    y = f(offset + 0.8 * z)
    exact = np.array([density @ y, density @ (y * z), density @ y**2])
    x, w = label_rule(f, offset, 0.8, 3e-4).nodes
    v = f(offset + 0.8 * x)
    mine = np.array([w @ v, w @ (v * x), w @ v**2])
    assert np.abs(mine - exact).max() <= 4e-4 * max(1.0, exact[2])
    assert len(w) <= most


def test_negative_control_eight_gauss_hermite_nodes_miss_the_power_of_tanh() -> None:
    z, w = gauss_hermite(8)
    assert w @ np.tanh(z) ** 2 == pytest.approx(0.3943, rel=0.03)
    assert abs(w @ np.tanh(z) ** 2 / 0.394294 - 1) > 0.015


@pytest.mark.parametrize("lower", [0, 1, 2])
@pytest.mark.parametrize("strong", [0.0, 0.05, 0.3])
def test_every_axis_differs_between_successive_levels(lower: int, strong: float) -> None:
    """The nodes along each axis: none has the same marginal rule at the next level."""
    spread, label = np.diag([strong, 0.3 * strong, 1e-3, 1e-3, 1e-4]), np.eye(5)[2]
    for link in ("tanh", "relu", None):
        integrand = Integrand(
            spread, None if link is None else label, None if link is None else get_activation(link)
        )
        rules = [
            component_nodes(np.zeros(5), np.eye(5), integrand, QuadratureLevel.at(number))
            for number in (lower, lower + 1)
        ]
        for axis in range(5):
            values = [{round(float(v), 9) for v in z[:, axis]} for z, _ in rules]
            assert values[0] != values[1], (link, axis)


def test_orders_grow_even_where_the_tolerance_would_not_ask_for_it() -> None:
    for importance, step in itertools.product([0.02, 0.2, 1.0, 20.0], [1, 2]):
        orders = [axis_order(importance, QuadratureLevel.at(n), step) for n in range(5)]
        for before, after in itertools.pairwise(orders):
            assert after >= before + step or after == QuadratureLevel.at(4).longest or after <= 2


def test_many_strong_axes_stay_below_the_limit() -> None:
    for number in range(3):
        level = QuadratureLevel.at(number)
        z, w = standard_nodes(np.array([3.0] * 3 + [0.2] * 9), level)
        assert len(w) <= level.most
        assert np.allclose(w @ z, 0, atol=1e-12) and np.allclose((z.T * w) @ z, np.eye(12))


@pytest.mark.parametrize("number", [2, 3])
def test_many_weak_axes_have_nearly_gaussian_fourth_moments(number: int) -> None:
    level, count = QuadratureLevel.at(number), 9
    z, w = standard_nodes(np.full(count, 1e-3), level)
    assert len(w) <= level.most
    np.testing.assert_allclose((z.T * w) @ z, np.eye(count), atol=1e-9)
    off = np.abs((w * (z**2).T) @ z**2 - 1 - 2 * np.eye(count)).mean()
    assert off < 0.35
    # negative control: a design of degree three, which is taken where there is no room
    z, w = standard_nodes(np.full(count, 1e-3), replace(level, most=40))
    assert len(w) == 32
    assert np.abs((w * (z**2).T) @ z**2 - 1 - 2 * np.eye(count)).mean() > 1.5 * off
