"""The semi-parametric theory of a problem: first layers are drawn, the data give the nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.compute.linalg import leading_direction, outlying_directions
from onegrad.compute.randomness import Streams
from onegrad.data.base import DataNodes
from onegrad.data.labels import ComponentLabels
from onegrad.data.mixture_fit import fit_mixture
from onegrad.errors import AssumptionError, ConvergenceError, OnegradError
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import of_drawn_rows, of_rows
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.layers.matrix import DrawnLayer
from onegrad.theory.layers.semi_parametric import predict_from_layers
from onegrad.theory.options import ACCURATE, OF_DATA, Theory


def predict_real(problem: Problem, theory: Theory, seed: int) -> Prediction:
    """The semi-parametric theory of images, arrays and files, or of a mixture fitted to them.

    theory : method "auto" or "semi-parametric", or "surrogate" for a mixture fitted first; accuracy
    seed : of the first layers, none of which is a simulation's; the nodes are samples that the step
        has not seen
    """
    _check(problem, theory)
    name = "semi-parametric theory"
    try:
        if theory.method == "surrogate" and not problem.data.known:
            problem, name = surrogate_of(problem, theory, seed), "Gaussian surrogate"
        powers = []

        def draw(i: int) -> tuple[DrawnLayer, DataNodes]:
            layer, nodes = draw_layer(problem, Streams(seed, i, theory=True), _rows(theory))
            powers.append(float(np.var(nodes.y)) + nodes.label_noise)
            return layer, nodes

        found = predict_from_layers(problem, draw, theory, seed)
    except OnegradError:
        raise
    except (np.linalg.LinAlgError, ValueError, ArithmeticError) as error:
        # somebody's own rows may be degenerate in ways that nobody has thought of
        raise ConvergenceError(f"the numerics of the theory fail on these data ({error})") from None
    answer = of_rows(found, name, of_drawn_rows(found, problem, theory, seed))
    return replace(answer, label_variance=float(np.mean(powers)))


def _check(problem: Problem, theory: Theory) -> None:
    if theory.overlaps == "typical":
        raise AssumptionError("real data have no typical overlaps")
    if not problem.data.own_nodes:
        raise AssumptionError(
            f"the {theory.method} theory is for images, arrays and files; "
            'use method = "conditional"'
        )
    if theory.method not in ("auto", *OF_DATA):
        raise AssumptionError(
            f"the {theory.method} theory needs a known population; "
            f'data.model = "{problem.data.model}" has the methods "semi-parametric" and "surrogate"'
        )


def rows_as_nodes(problem: Problem, theory: Theory, seed: int) -> DataNodes:
    """Rows of finite data, in an order of that seed: all, or as many as are quick."""
    rows = problem.data.split(Streams(seed, 0, theory=True).rng("split"))
    return problem.row_nodes(rows[: _rows(theory)])


def _rows(theory: Theory) -> int:
    return theory.policy.rows // 3 if theory.draft else theory.policy.rows


def draw_layer(problem: Problem, streams: Streams, count: int) -> tuple[DrawnLayer, DataNodes]:
    """The first layer of a repetition, and at most `count` nodes that its step has not seen.

    The theory conditions on two directions: Σ (y − ȳ)x over the step's samples, and the step.
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


def surrogate_of(problem: Problem, theory: Theory, seed: int) -> Problem:
    """The same network on a Gaussian mixture fitted to the data: means, spikes and weights.

    Fitted on up to `Policy.rows` samples that the first step of draw 0 has not seen. Where noise
    has a variance v other than 1, the mixture is that of x/√v and the rate η·v: the same network
    in the mixture convention.
    """
    trial = Trial(problem, Streams(seed, 0, theory=True))
    nodes = _unseen_rows(trial, theory.policy.rows)
    if nodes.groups == 1:
        raise AssumptionError(
            "the Gaussian surrogate needs labels that are classes; these look like numbers. Use "
            'method = "semi-parametric"'
        )
    x = nodes.x
    if nodes.noise:
        x = x + np.sqrt(nodes.noise) * trial.streams.rng("test-data").standard_normal(x.shape)
    fit = fit_mixture(x, nodes.y)
    fixed = {
        "in the isotropic convention": problem.network.convention == "isotropic",
        f'with optimiser = "{problem.training.optimiser}"': problem.training.optimiser != "gd",
    }
    where = [words for words, applies in fixed.items() if applies]
    if where and abs(fit.scale - 1) > theory.policy.tolerable * ACCURATE:
        raise AssumptionError(
            f"the noise in these data has a standard deviation of {fit.scale:.3g}; {where[0]} the "
            "surrogate needs 1. Divide the inputs by it"
        )
    assert fit.labels is not None
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
