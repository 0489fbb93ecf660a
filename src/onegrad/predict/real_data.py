"""The semi-parametric theory of a problem: first layers are drawn, the data give the nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.linalg import leading_direction, outlying_directions
from onegrad.compute.randomness import Streams
from onegrad.data.base import DataNodes
from onegrad.data.labels import ComponentLabels
from onegrad.data.mixture_fit import fit_mixture
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.layers.matrix import DrawnLayer
from onegrad.theory.layers.semi_parametric import SemiParametric, predict_from_layers
from onegrad.theory.options import Theory

_METHODS = ("semi-parametric", "surrogate")
_MOST_NODES = 6000


@dataclass(frozen=True)
class RealPrediction:
    """What the theory found, its name, what it assumes, and Var y over its nodes."""

    result: SemiParametric
    name: str
    assumptions: tuple[str, ...]
    numerics: tuple[str, ...]
    label_variance: float


def is_real(problem: Problem, method: str) -> bool:
    """Whether `predict_real` is to answer: it takes or refuses the problem."""
    by_default = problem.data.own_nodes and method == "auto"
    return not problem.data.known or by_default or method in _METHODS


def predict_real(problem: Problem, theory: Theory, seed: int) -> RealPrediction:
    """The semi-parametric theory of images, arrays and files, or of a mixture fitted to them.

    theory : method "auto" or "semi-parametric", or "surrogate" for a mixture fitted first; accuracy
    seed : of the first layers, none of which is a simulation's; the nodes are samples that the step
        has not seen
    """
    if not problem.data.own_nodes:
        raise AssumptionError(
            f"the {theory.method} theory is for images, arrays and files; "
            'use method = "conditional"'
        )
    if theory.method not in ("auto", *_METHODS):
        raise AssumptionError(
            f"the {theory.method} theory needs a known population; "
            f'data.model = "{problem.data.model}" has the methods "semi-parametric" and "surrogate"'
        )
    name = "semi-parametric theory"
    if theory.method == "surrogate" and not problem.data.known:
        problem, name = surrogate_of(problem, seed), "Gaussian surrogate"
    count = _MOST_NODES // 3 if theory.draft else _MOST_NODES
    label_variances = []

    def draw(i: int) -> tuple[DrawnLayer, DataNodes]:
        layer, nodes = draw_layer(problem, Streams(seed, i, theory=True), count)
        label_variances.append(float(np.var(nodes.y)) + nodes.label_noise)
        return layer, nodes

    result = predict_from_layers(problem, draw, theory, seed)
    given = f"Features are Gaussian given the projections on {result.rank} principal directions of "
    given += "each class and on the gradient."
    if result.rank >= problem.dim:
        given = "Features are taken as they are."
    moves = f" Taking more directions moves the answer by more than {50 * theory.accuracy:g} %."
    return RealPrediction(
        result, name,
        (
            f"Method: {result.nodes} rows of {problem.data.source} stand for the law of the data; "
            f"first layers are drawn and trained (seed {seed}), and errors are means over "
            f"{result.draws} of them, in the limit of large k and m.",
            given + ("" if result.settled else moves),
        ),
        ("Numerics: extrapolated (Richardson) in the number of nodes.",),
        float(np.mean(label_variances)),
    )  # fmt: skip


def rows_as_nodes(problem: Problem, theory: Theory, seed: int) -> DataNodes:
    """Rows of finite data, in an order of that seed: all, or as many as are quick."""
    count = _MOST_NODES // 3 if theory.draft else _MOST_NODES
    return problem.row_nodes(problem.data.split(Streams(seed, 0, theory=True).rng("split"))[:count])


def draw_layer(problem: Problem, streams: Streams, count: int) -> tuple[DrawnLayer, DataNodes]:
    """The first layer of a repetition, and at most `count` nodes that its step has not seen.

    Conditioned on are the directions of Σ (y − ȳ)x over the step's samples and of the step itself.
    """
    trial = Trial(problem, streams)
    batch = trial.step_batch
    nodes = _drawn_nodes(trial, count) if problem.data.known else _unseen_rows(trial, count)
    directions = [batch.x.T @ (batch.y - batch.y.mean())]
    weights = trial.updated_weights
    if problem.trained and problem.one_step:
        directions.append(leading_direction(weights - trial.weights))
    elif problem.trained:
        directions += list(outlying_directions(weights - trial.weights).T)
    return DrawnLayer(weights, np.stack(directions, axis=1)), nodes


def _unseen_rows(trial: Trial, count: int) -> DataNodes:
    return trial.problem.row_nodes(trial.draw.rows[trial.problem.step_rows :][:count])


def _drawn_nodes(trial: Trial, count: int) -> DataNodes:
    """Nodes drawn from a fitted mixture: it has too many spikes for a grid of them."""
    blocks = list(trial.test_batches(count))
    x, y, component = (
        np.concatenate([getattr(b, name) for b in blocks]) for name in ("x", "y", "component")
    )
    return DataNodes(x, y, component, label_noise=trial.label_noise_variance)


def surrogate_of(problem: Problem, seed: int) -> Problem:
    """The same network on a Gaussian mixture fitted to the data: means, spikes and weights.

    Fitted on up to 6000 samples that the first step of draw 0 has not seen. Where the noise
    has a variance v other than 1, the mixture is that of x/√v and the rate η·v: the same network
    in the mixture convention.
    """
    trial = Trial(problem, Streams(seed, 0, theory=True))
    nodes = _unseen_rows(trial, _MOST_NODES)
    if nodes.groups == 1:
        raise AssumptionError(
            "the Gaussian surrogate needs labels that are classes; these look like numbers. Use "
            'method = "semi-parametric"'
        )
    x = nodes.x
    if nodes.noise:
        x = x + np.sqrt(nodes.noise) * trial.streams.rng("test-data").standard_normal(x.shape)
    fit = fit_mixture(x, nodes.y)
    if problem.network.convention == "isotropic" and abs(fit.scale - 1) > 0.05:
        raise AssumptionError(
            f"the noise in these data has a standard deviation of {fit.scale:.3g}; in the "
            'isotropic convention the surrogate needs 1. Divide the inputs by it, or use "mixture"'
        )
    assert fit.labels is not None
    if problem.training.optimiser != "gd" and abs(fit.scale - 1) > 0.05:
        raise AssumptionError(
            f"the noise in these data has a standard deviation of {fit.scale:.3g}; with optimiser "
            f'= "{problem.training.optimiser}" the surrogate needs 1. Divide the inputs by it'
        )
    rates = tuple(rate * fit.scale**2 for rate in problem.rates)
    rate = rates[0] if len(rates) == 1 else rates
    return Problem(
        data=fit.mixture,
        labels=ComponentLabels(
            values=tuple(v / problem.label_kept for v in fit.labels),
            noise=problem.label_noise,
            flip=problem.label_flip,
        ),
        network=problem.network,
        training=problem.training.model_copy(update={"rate": rate}),
    )
