"""Two Gaussian groups as nodes, and a random first layer: for the tests of the matrix layer."""

import numpy as np

from onegrad.data.base import DataNodes
from onegrad.gaussian.activation import get_activation
from onegrad.theory.layers.matrix import ConditionedLayer, DrawnLayer
from onegrad.theory.nodes.sample import PreparedNodes

rng = np.random.default_rng


def spiked_nodes(count, dim=40, seed=0, **noise):
    """Two Gaussian groups with a strong direction each and means apart."""
    generator = rng(seed)
    group = np.arange(count) % 2
    x = generator.standard_normal((count, dim))
    x[group == 0, 0] *= 4
    x[group == 1, 1] *= 3
    x[:, 2] += 1.5 * (1 - 2 * group)
    return DataNodes(x, 1.0 - 2.0 * group, group, **noise)


def conditioned(nodes, activation="tanh", width=15, rank=3, seed=1):
    """A random layer (its weights too) given the nodes' projections."""
    dim = nodes.x.shape[1]
    layer = DrawnLayer(rng(seed).standard_normal((width, dim)) / np.sqrt(dim), np.eye(dim)[:, 5:6])
    prepared = PreparedNodes.of(nodes, rng(2))
    return ConditionedLayer.of(prepared, layer, get_activation(activation), rank), layer.weights
