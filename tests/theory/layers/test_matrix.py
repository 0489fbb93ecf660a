"""A first layer given the nodes' projections: its features against dense sums."""

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation
from tests.theory.spiked_nodes import conditioned, spiked_nodes

rng = np.random.default_rng


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_features_of_gaussian_groups(activation, noise):
    """For truly Gaussian groups the conditioned moments are those of the features themselves."""
    # many inputs: what the remainders share beyond first order is of order 1/n
    nodes = spiked_nodes(20_000, dim=400, noise=noise)
    layer, weights = conditioned(nodes, activation)
    moments = layer.moments()
    x = nodes.x + np.sqrt(noise) * rng(9).standard_normal(nodes.x.shape)
    phi = get_activation(activation)(x @ weights.T)
    products = phi[:, :, None] * phi[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(nodes))
    # the nodes share the x of the check, so the difference is less than independent errors
    assert np.max(np.abs(products.mean(axis=0) - moments.second) / error) < 4
    crossed = phi * nodes.y[:, None]
    error = crossed.std(axis=0) / np.sqrt(len(nodes))
    assert np.max(np.abs(crossed.mean(axis=0) - moments.cross) / error) < 4


def test_the_coupling_counts():
    """Negative control: without the correlations of the remainders the moments are wrong."""
    nodes = spiked_nodes(20_000)
    layer, weights = conditioned(nodes)
    right = layer.moments().second
    for part in layer.parts:
        part.coupling[:] = 0.0
    wrong = layer.moments().second
    phi = np.tanh(nodes.x @ weights.T)
    true = phi.T @ phi / len(phi)
    assert np.linalg.norm(wrong - true) > 10 * np.linalg.norm(right - true)


def test_quadratics_against_dense_matrices():
    nodes = spiked_nodes(30)
    layer, _ = conditioned(nodes)
    q = layer.rule(np.arange(30))
    dense = []
    for block in q.blocks:
        coupling = layer.parts[block.group].coupling
        pairs = zip(block.mean.table.T, block.slope.table.T, block.variance.T, strict=True)
        for mean, slope, variance in pairs:
            inner = coupling * np.outer(slope, slope) + np.diag(variance)
            dense.append(np.outer(mean, mean) + inner)
    dense = np.array(dense)
    u = rng(3).random(30)
    matrix = rng(4).standard_normal((15, 15))
    matrix = matrix + matrix.T
    np.testing.assert_allclose(q.total(u), np.einsum("s,sij->ij", u, dense), atol=1e-12)
    np.testing.assert_allclose(q.traces(matrix), np.einsum("sij,ji->s", dense, matrix), atol=1e-11)
    total = layer.moments().second
    np.testing.assert_allclose(total, dense.mean(axis=0), atol=1e-12)
