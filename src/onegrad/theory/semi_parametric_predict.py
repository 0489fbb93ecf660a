"""The semi-parametric theory with its accuracy: rank, number of nodes and draws of the first layer.

Equation numbers are those of docs/real-data.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.hermite import Array
from onegrad.theory.sample_nodes import Conditioned, Prepared, Sample
from onegrad.theory.semi_parametric import (
    Errors,
    FeatureMoments,
    Ridge,
    common_errors,
    feature_moments,
)
from onegrad.theory.semi_parametric_nodes import Quadratics, node_errors

_FIRST_RANK = 10
_LARGEST_RANK = 160
_PER_NODE = 1 << 20  # entries of the tables of the nodes with a response of their own
_FEWEST_NODES = 20


@dataclass(frozen=True)
class Layer:
    """A trained first layer and samples that it has not seen.

    weights : (k, n), directions : (n, q) what to condition on beside principal directions
    """

    weights: Array
    directions: Array
    sample: Sample


@dataclass(frozen=True)
class SemiParametric:
    """Errors of the network, and how they were obtained.

    error_estimate : relative; rank, halves of the nodes and draws together
    rank : principal directions of each group in κ; settled: doubling it moved the errors by less
        than half the accuracy
    nodes, draws : samples and first layers averaged over
    """

    errors: Errors
    error_estimate: float
    rank: int
    settled: bool
    nodes: int
    draws: int


def predict_from_layers(
    draw: Callable[[int], Layer],
    activation: Activation,
    problem: Ridge,
    fewest_draws: int = 3,
    most_draws: int = 8,
    accuracy: float = 0.01,
    seed: int = 0,
) -> SemiParametric:
    """Errors of ridge regression on the features of drawn first layers (`draw(0)`, `draw(1)`, …).

    All layers have samples of one population, equally many.

    On the first layer the rank is doubled until it does not matter, the nodes are halved for
    Richardson's extrapolation in 1/S (eq. (13)), and responses of their own are given to some
    nodes (eq. (14)); more layers are averaged until the mean is known to half the accuracy (two
    layers say little about their scatter).
    Cost of a layer: O(S·k² + k³), about ten times that for the first one.
    """
    layer = draw(0)
    if len(layer.sample) < _FEWEST_NODES:
        raise AssumptionError(
            f"the semi-parametric theory needs at least {_FEWEST_NODES} samples beside those of "
            f"the step; there are {len(layer.sample)}. Use fewer training.step_samples."
        )
    prepared = Prepared.of(layer.sample, np.random.default_rng(seed))
    first = _first_layer(layer, prepared, activation, problem, accuracy, seed)
    found = [np.array(first.errors)]
    correction = found[0] / first.plain
    scatter = 0.0
    for i in range(1, most_draws):
        layer = draw(i)
        if layer.sample is not prepared.sample:
            prepared = prepared.like(layer.sample)
        nodes = _condition(layer, prepared, activation, first.rank)
        plain, _, _ = common_errors(feature_moments(nodes, np.arange(len(nodes.sample))), problem)
        found.append(np.array(plain) * correction)
        values = np.array(found)
        scatter = float(np.max(values.std(axis=0, ddof=1) / values.mean(axis=0))) / math.sqrt(i + 1)
        if i + 1 >= fewest_draws and scatter < accuracy / 2:
            break
    if len(found) == 1:
        scatter = first.between
    estimate = math.hypot(first.between, first.by_rank, scatter)
    mean = np.mean(found, axis=0)
    return SemiParametric(
        Errors(*(float(value) for value in mean)), estimate, first.rank,
        first.by_rank < accuracy / 2, first.nodes, len(found),
    )  # fmt: skip


@dataclass(frozen=True)
class _First:
    errors: Errors
    plain: Array
    rank: int
    nodes: int
    by_rank: float
    between: float


def _first_layer(
    layer: Layer,
    prepared: Prepared,
    activation: Activation,
    problem: Ridge,
    accuracy: float,
    seed: int,
) -> _First:
    halves = _halves(layer.sample.group, np.random.default_rng(seed))
    dim = layer.weights.shape[1]
    # labels that are numbers may depend on any direction: nothing is averaged out then
    rank, previous = _FIRST_RANK if layer.sample.groups > 1 else dim, None
    largest = dim if dim <= 2 * _LARGEST_RANK else _LARGEST_RANK
    while True:
        nodes = _condition(layer, prepared, activation, rank)
        parts = [feature_moments(nodes, rows) for rows in halves]
        plain, chi, _ = common_errors(FeatureMoments.mean(parts), problem)
        change = np.inf if previous is None else float(np.max(np.abs(_log(plain) - previous)))
        if change < accuracy / 2 or rank >= largest:
            break
        rank, previous = min(2 * rank, largest), _log(plain)
    change = 0.0 if not math.isfinite(change) else change
    if rank < dim and not layer.sample.noise:  # that the rest is Gaussian is a guess: try without
        whole = feature_moments(
            _condition(layer, prepared, activation, dim), np.arange(len(layer.sample))
        )
        change = max(
            change, float(np.max(np.abs(_log(plain) - _log(common_errors(whole, problem)[0]))))
        )
    of_halves = [np.array(common_errors(part, problem)[0]) for part in parts]
    extrapolated = 2 * np.array(plain) - np.mean(of_halves, axis=0)
    between = float(np.max(np.abs(of_halves[0] / of_halves[1] - 1))) / 2
    ratio = _node_ratio(nodes, problem, chi)
    return _First(
        Errors(*(extrapolated * ratio)), np.array(plain), rank, len(layer.sample), change, between
    )


def _condition(layer: Layer, prepared: Prepared, activation: Activation, rank: int) -> Conditioned:
    return Conditioned.of(prepared, layer.weights, activation, layer.directions, rank)


def _node_ratio(nodes: Conditioned, problem: Ridge, chi: float) -> Array:
    """Errors with χ_s per node over those with one χ, on as many nodes as are quick."""
    count = min(len(nodes.sample), max(300, _PER_NODE // nodes.width))
    rows = np.linspace(0, len(nodes.sample) - 1, count).astype(int)
    plain, _, _ = common_errors(feature_moments(nodes, rows), problem)
    noise = nodes.sample.label_noise
    own = node_errors(Quadratics(nodes, rows), problem, chi, noise)
    return np.array(own) / np.array(plain)


def _halves(group: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the nodes with the same share of each group."""
    halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for c in range(int(group.max()) + 1):
        members = rng.permutation(np.flatnonzero(group == c))
        halves[c % 2].append(members[::2])
        halves[1 - c % 2].append(members[1::2])
    return np.concatenate(halves[0]), np.concatenate(halves[1])


def _log(errors: Errors) -> Array:
    return np.log(np.maximum(np.array(errors), 1e-300))
