"""Rules of integration: the moments that they must have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import onegrad as og
from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.quadrature import piecewise_gauss
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.designs import quasi_gaussian, two_level
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel, standard_nodes


def test_half_range_rule_is_exact_on_each_side() -> None:
    x, w = piecewise_gauss((0.3,), 4)
    z = np.linspace(-12, 12, 400_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    for power in range(8):
        exact = (np.maximum(z - 0.3, 0) ** power * density)[z > 0.3].sum()
        mine = w[x > 0.3] @ (x[x > 0.3] - 0.3) ** power
        assert mine == pytest.approx(exact, rel=2e-4 if power == 0 else 1e-6)


def test_two_level_design_has_gaussian_moments_up_to_three() -> None:
    x, w = two_level(6)
    assert np.allclose(w @ x, 0) and np.allclose((x.T * w) @ x, np.eye(6))
    assert np.allclose(np.einsum("s,si,sj,sk->ijk", w, x, x, x), 0)
    assert len(w) == 16


def test_quasi_gaussian_has_exact_second_moments() -> None:
    x, w = quasi_gaussian(20, 256)
    assert np.allclose(w @ x, 0) and np.allclose((x.T * w) @ x, np.eye(20))


def test_component_nodes_have_the_right_mean_and_covariance() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((4, 4))
    root, mean = root + root.T, rng.standard_normal(4)
    covariance = root @ root
    integrand = Integrand(0.1 * np.eye(4), rng.standard_normal(4), get_activation("relu"))
    x, w = component_nodes(mean, root, integrand, QuadratureLevel.at(1))
    assert w @ x == pytest.approx(mean)
    assert np.allclose(((x - mean).T * w) @ (x - mean), covariance)


def test_shortened_rules_stay_below_their_limit() -> None:
    level = QuadratureLevel.draft()
    z, w = standard_nodes(np.full(8, 5.0), level)
    assert len(w) <= level.most
    assert np.allclose(w @ z, 0) and np.allclose((z.T * w) @ z, np.eye(8))


def test_quasi_random_points_are_even_along_the_labels() -> None:
    """Labels jump there: the share of points above a level is right to one point on each side."""
    problem = og.Problem(
        data={"model": "mixture", "dim": 60, "spread": 9.0}, labels={"link": "sign"},
        network={"width": 40}, training={"samples": 50, "rate": 1.0},
    )  # fmt: skip
    geometry = geometry_of(problem, "drawn", 0)
    nodes = quasi_nodes(geometry, 512, geometry.rank, QuadratureLevel.at(1))
    for c in range(2):
        mine = nodes.component == c
        t = nodes.kappa[mine] @ geometry.teacher
        scale = np.sqrt(geometry.teacher @ geometry.covariances[c] @ geometry.teacher)
        for level in (0.0, 0.4, 1.1):
            assert np.mean(t > level * scale) == pytest.approx(ndtr(-level), abs=3 / mine.sum())
