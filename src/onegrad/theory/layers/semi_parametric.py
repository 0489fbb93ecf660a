"""The semi-parametric theory with its accuracy: rank, number of nodes and draws of the first layer.

Equations are named as in docs/book/real-data.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.base import DataNodes
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.layers.matrix import ConditionedLayer, DrawnLayer
from onegrad.theory.layers.matrix_errors import (
    FeatureMoments,
    MatrixErrors,
    common_errors,
)
from onegrad.theory.layers.matrix_responses import solve_nodes
from onegrad.theory.nodes.sample import PreparedNodes
from onegrad.theory.open import Open
from onegrad.theory.options import Theory

_PER_NODE = 1 << 20  # most table entries of the nodes with a response of their own

Draw = Callable[[int], tuple[DrawnLayer, DataNodes]]


@dataclass(frozen=True)
class SemiParametric:
    """Errors of the network, and how they were obtained.

    open : rank and halves of the nodes (rules), and draws
    rank : principal directions of each group in κ; settled: doubling it moved the errors by less
        than half the accuracy
    nodes, draws : samples and first layers averaged over
    """

    errors: MatrixErrors
    open: Open
    rank: int
    settled: bool
    nodes: int
    draws: int


def predict_from_layers(
    problem: Problem,
    draw: Draw,
    theory: Theory | None = None,
    seed: int = 0,
    draws: tuple[int, int] | None = None,
) -> SemiParametric:
    """Errors of the problem's readout on drawn first layers, given samples they have not seen.

    draw : `draw(0)`, `draw(1)`, … are first layers with their nodes, all of one population and
        equally many
    theory : its accuracy counts, a relative one
    seed : seed of the nodes' noise and of their halves
    draws : fewest and most first layers; 3 and 8 by default, fewer in a draft

    On the first layer the rank is doubled until it does not matter, the nodes are halved for
    Richardson's extrapolation in 1/S (eq. halves), and responses of their own are given to some
    nodes (eq. response-ratio); more layers are averaged until the mean is known to half the
    accuracy (two layers say little about their scatter).
    Cost of a layer: O(S·k² + k³), about ten times that for the first one.
    """
    theory = theory or Theory()
    policy, enough = theory.policy, theory.policy.mean_known * theory.accuracy
    few = policy.real_layers if problem.width < policy.layers_width else 1
    fewest, most = draws or (policy.real_layers, few if theory.draft else 2 * policy.layers)
    layer, nodes = draw(0)
    least = round(2 * policy.fewest_degrees)  # in halves of the nodes, too
    if len(nodes) < least:
        raise AssumptionError(
            f"the semi-parametric theory needs at least {least} samples beside those of the step; "
            f"there are {len(nodes)}. Use fewer training.step_samples."
        )
    prepared = PreparedNodes.of(nodes, np.random.default_rng(seed))
    first = _first_layer(problem, layer, prepared, theory, seed)
    found = [np.array(first.errors)]
    correction = found[0] / first.plain
    scatter = 0.0
    for i in range(1, most):
        layer, nodes = draw(i)
        if nodes is not prepared.nodes:
            prepared = prepared.like(nodes)
        plain, _ = _common(problem, _moments(problem, layer, prepared, first.rank))
        found.append(plain * correction)
        values = np.array(found)
        scatter = float(np.max(values.std(axis=0, ddof=1) / values.mean(axis=0))) / math.sqrt(i + 1)
        if i + 1 >= fewest and scatter < enough:
            break
    if len(found) == 1:
        scatter = first.between
    mean = np.mean(found, axis=0)
    return SemiParametric(
        MatrixErrors(*(float(value) for value in mean)),
        Open(rules=first.between + first.by_rank, draws=scatter), first.rank,
        first.by_rank < enough, first.nodes, len(found),
    )  # fmt: skip


@dataclass(frozen=True)
class _First:
    """Errors (3) of the first layer with χ_s, plain ones with one χ, and their relative doubts."""

    errors: Array
    plain: Array
    rank: int
    nodes: int
    by_rank: float
    between: float


def _first_layer(
    problem: Problem, layer: DrawnLayer, prepared: PreparedNodes, theory: Theory, seed: int
) -> _First:
    nodes, policy = prepared.nodes, theory.policy
    halves = _halves(nodes.group, np.random.default_rng(seed))
    dim = problem.dim
    # numeric labels may depend on any direction: average over none
    rank, previous = policy.rank if nodes.groups > 1 else dim, None
    largest = dim if dim <= 32 * policy.rank else 16 * policy.rank
    while True:
        conditioned = ConditionedLayer.of(prepared, layer, problem.activation, rank)
        parts = [conditioned.moments(rows) for rows in halves]
        plain, chi = _common(problem, FeatureMoments.mean(parts))
        change = np.inf if previous is None else _distance(plain, previous)
        if change < policy.mean_known * theory.accuracy or rank >= largest:
            break
        rank, previous = min(2 * rank, largest), plain
    change = 0.0 if not math.isfinite(change) else change
    if rank < dim and not nodes.noise:  # the rest may not be Gaussian: compare with full rank
        whole, _ = _common(problem, _moments(problem, layer, prepared, dim))
        change = max(change, _distance(plain, whole))
    of_halves = [_common(problem, part)[0] for part in parts]
    extrapolated = 2 * plain - np.mean(of_halves, axis=0)
    between = float(np.max(np.abs(of_halves[0] / of_halves[1] - 1))) / 2
    errors = extrapolated * response_ratio(problem, conditioned, chi)
    return _First(errors, plain, rank, len(nodes), change, between)


def response_ratio(problem: Problem, layer: ConditionedLayer, chi: float) -> Array:
    """Errors (3) with χ_s per node over those with one χ, on as many nodes as are quick
    (eq. response-ratio).

    chi : the common χ, as a first guess
    """
    count = min(len(layer.nodes), max(300, _PER_NODE // layer.width))
    rows = np.linspace(0, len(layer.nodes) - 1, count).astype(int)
    plain, _ = _common(problem, layer.moments(rows))
    own = solve_nodes(layer.rule(rows), problem.samples, problem.effective_ridge, chi)
    return np.array(own.errors) / plain


def _moments(
    problem: Problem, layer: DrawnLayer, prepared: PreparedNodes, rank: int
) -> FeatureMoments:
    """Those of all nodes, given their projections on `rank` directions of each group."""
    return ConditionedLayer.of(prepared, layer, problem.activation, rank).moments()


def _common(problem: Problem, moments: FeatureMoments) -> tuple[Array, float]:
    """Errors (3) with one χ for all nodes, and χ."""
    errors, chi = common_errors(moments, problem.samples, problem.effective_ridge)
    return np.array(errors), chi


def _halves(group: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the nodes with the same share of each group."""
    halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for c in range(int(group.max()) + 1):
        members = rng.permutation(np.flatnonzero(group == c))
        halves[c % 2].append(members[::2])
        halves[1 - c % 2].append(members[1::2])
    return np.concatenate(halves[0]), np.concatenate(halves[1])


def _distance(errors: Array, others: Array) -> float:
    """The largest difference of the logarithms."""
    logs = np.log(np.maximum([errors, others], 1e-300))
    return float(np.max(np.abs(logs[0] - logs[1])))
