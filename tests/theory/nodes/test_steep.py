"""Axes along which features are steep: rules that follow the bend."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.nodes.steep import Steepness

STEEP = 300.0


def outputs(kappa: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Five smoothed features of neurons along one direction, of different lengths and offsets."""
    u = kappa @ direction
    scales, offsets = np.array([0.3, 0.7, 1.0, 1.3, 1.6]), np.array([-1.0, 0.5, 0.0, -0.3, 1.0])
    return np.asarray(ndtr(np.sqrt(STEEP) * scales * u[:, None] + offsets))


def unfitted(kappa: np.ndarray, weights: np.ndarray, direction: np.ndarray) -> float:
    """Of a label along the first axis: what no combination of these features explains."""
    features, label = outputs(kappa, direction), np.tanh(kappa[:, 0])
    gram = (features.T * weights) @ features + 1e-7 * np.eye(features.shape[1])
    seen = features.T @ (weights * label)
    return float(weights @ label**2 - seen @ np.linalg.solve(gram, seen))


def exact(mean: float, direction: np.ndarray) -> float:
    z = np.linspace(-7, 7, 701)
    density = np.exp(-0.5 * z**2)
    first, second = (a.ravel() for a in np.meshgrid(z, z))
    weights = np.outer(density, density).ravel()
    kappa = np.column_stack([first + mean, second])
    return unfitted(kappa, weights / weights.sum(), direction)


@pytest.mark.parametrize("cosine", [1.0, 0.8, 0.3, 0.05])
@pytest.mark.parametrize("mean", [0.0, 0.7])
def test_steep_features_are_resolved_wherever_they_lie(cosine: float, mean: float) -> None:
    """Along the label's axis, beside it, and between the two, where the rule has to be sheared."""
    direction = np.array([cosine, np.sqrt(1 - cosine**2)])
    integrand = Integrand(
        STEEP * np.outer(direction, direction), np.array([1.0, 0.0]), get_activation("tanh")
    )
    truth, found = exact(mean, direction), []
    for number in range(4):
        level = QuadratureLevel.at(number)
        kappa, w = component_nodes(np.array([mean, 0.0]), np.eye(2), integrand, level)
        assert w.sum() == pytest.approx(1) and len(w) <= level.most
        found.append(unfitted(kappa, w, direction) / truth)
    for coarse, fine in itertools.pairwise(found):  # which is what an error estimate compares
        assert abs(fine - 1) <= abs(fine - coarse) + 2e-3
    assert abs(found[2] - 1) < 3e-3


def test_negative_control_gauss_hermite_nodes_miss_the_bend() -> None:
    """And two such rules say nothing of it."""
    direction, found = np.array([1.0, 0.0]), []
    for count in (30, 36):
        z, w = gauss_hermite(count)
        kappa = np.column_stack([z, np.zeros(count)])
        found.append(unfitted(kappa, w, direction) / exact(0.0, direction))
    assert abs(found[1] - 1) > 0.05 > 2 * abs(found[1] - found[0])


def test_pieces_are_shortest_at_the_bend() -> None:
    breaks = np.array(Steepness(400.0, -200.0).breaks) - 0.5
    assert np.allclose(breaks, -breaks[::-1]) and np.abs(breaks).min() == pytest.approx(0.05)
    away = breaks[breaks > 0]
    assert np.allclose(away[1:] / away[:-1], 3) and away[-1] < 1.6


def test_many_strong_axes_do_not_multiply_without_limit() -> None:
    """Six of them made 130,000 nodes: the steep one gives way where there is no room for it."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    spread = (turn * [6000.0, 200.0, 80.0, 0.4, 0.1, 0.01]) @ turn.T
    integrand = Integrand(spread, np.eye(6)[0], get_activation("relu"))
    for number in range(5):
        level = QuadratureLevel.at(number)
        kappa, w = component_nodes(np.zeros(6), np.eye(6), integrand, level)
        assert len(w) <= 3 * level.most
        assert np.allclose((kappa.T * w) @ kappa, np.eye(6), atol=1e-3)
