"""Images, arrays and files in the terms of the semi-parametric theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.data.arrays import Arrays, File
from onegrad.data.fit import FittedMixture, fit_mixture
from onegrad.data.images import Images
from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import ComponentLabels
from onegrad.data.mixture import Mixture
from onegrad.equivalents.conditional_gaussian import leading_direction
from onegrad.errors import AssumptionError
from onegrad.hermite import Array
from onegrad.network.trial import Trial
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.theory.sample_nodes import Sample
from onegrad.theory.semi_parametric import Ridge
from onegrad.theory.semi_parametric_predict import (
    Layer,
    SemiParametric,
    predict_from_layers,
)

_MOST_NODES = 6000
_DRAFT = 0.03  # from this accuracy on: fewer nodes and draws
_WIDE = 1000  # neurons from which on a draft draws one first layer
_MOST_CLASSES = 20  # more distinct labels than this are numbers, not classes
_FEWEST_IN_CLASS = 10


@dataclass(frozen=True)
class RealPrediction:
    """The theory's answer, its name and what it assumes."""

    result: SemiParametric
    name: str
    assumptions: tuple[str, ...]


def is_real(problem: Problem, method: str) -> bool:
    """Whether the semi-parametric theory is the one to ask."""
    if isinstance(problem.data, FittedMixture):
        return method in ("auto", "semi-parametric", "surrogate")
    known = isinstance(problem.data, Isotropic | Mixture)
    return not known or method in ("semi-parametric", "surrogate")


def predict_real(problem: Problem, method: str, accuracy: float, seed: int) -> RealPrediction:
    """The semi-parametric theory of images, arrays and files, or of a mixture fitted to them.

    First layers are those of the simulation's repetitions 0, 1, … with this seed; the nodes are
    samples that the step has not seen.
    """
    _check(problem, method)
    name, nodes = "semi-parametric theory", "Real data"
    if method == "surrogate" and not isinstance(problem.data, FittedMixture):
        problem, name = surrogate_of(problem, seed), "Gaussian surrogate"
    if isinstance(problem.data, FittedMixture):
        ranks = ", ".join(str(rank) for rank in problem.data.ranks)
        nodes = f"Gaussian mixture fitted to the data ({ranks} spikes)"
    draft = accuracy >= _DRAFT
    count = _MOST_NODES // 3 if draft else _MOST_NODES
    said = predict_from_layers(
        lambda i: _layer(problem, seed, i, count),
        problem.activation,
        Ridge(problem.samples, problem.effective_ridge),
        most_draws=(3 if problem.width < _WIDE else 1) if draft else 8,
        accuracy=accuracy,
        seed=seed,
    )
    given = f"Gaussian given their projections on {said.rank} principal directions of each class "
    given += "and on the gradient"
    if said.rank >= problem.dim:
        given = "their features as they are"
    settled = "" if said.settled else f" A higher rank moves it by more than {50 * accuracy:g} %."
    return RealPrediction(
        said, name,
        (
            f"{nodes}: {said.nodes} samples as nodes, {given}.{settled}",
            f"Mean over {said.draws} first steps, drawn with seed {seed}; k, m large.",
            "Richardson in the number of nodes; a response of its own for every node.",
        ),
    )  # fmt: skip


def _check(problem: Problem, method: str) -> None:
    fitted = isinstance(problem.data, FittedMixture)
    if isinstance(problem.data, Isotropic | Mixture) and not fitted:
        raise AssumptionError(
            f'the {method} theory is for images, arrays and files; use method = "conditional"'
        )
    if method not in ("auto", "semi-parametric", "surrogate"):
        raise AssumptionError(
            f'the {method} theory needs a known population; data.model = "{problem.data.model}" '
            'has the methods "semi-parametric" and "surrogate"'
        )


def _layer(problem: Problem, seed: int, repetition: int, count: int) -> Layer:
    trial = Trial(problem, Streams(seed, repetition))
    batch = trial.step_batch
    if isinstance(problem.data, FittedMixture):
        sample = _gaussian_sample(problem, trial, count)
    else:
        sample = sample_of(problem, trial.draw.rows[problem.step_samples :][:count])
    directions = [batch.x.T @ (batch.y - batch.y.mean())]
    weights = trial.updated_weights
    if problem.rate > 0:
        directions.append(leading_direction(weights - trial.weights))
    return Layer(weights, np.stack(directions, axis=1), sample)


def sample_of(problem: Problem, rows: np.ndarray) -> Sample:
    """Those rows of the problem's data as nodes."""
    data = problem.data
    label_noise = float(getattr(problem.labels, "noise", 0.0)) ** 2
    if isinstance(data, Images):
        population = data.population()
        component = population.components(rows)
        x = np.sqrt(problem.spread) * population.structure(rows)
        return Sample(x, problem.class_labels[component], component, 1.0, label_noise)
    assert isinstance(data, Arrays | File)
    x, y = data.load()
    return Sample(x[rows].astype(float), y[rows].astype(float), label_groups(y[rows]))


def _gaussian_sample(problem: Problem, trial: Trial, count: int) -> Sample:
    """Nodes drawn from a fitted mixture: it has too many spikes for a grid of them."""
    blocks = list(trial.test_batches(count))
    x, y = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("x", "y"))
    component = np.concatenate([b.component for b in blocks])
    return Sample(x, y, component, 0.0, float(getattr(problem.labels, "noise", 0.0)) ** 2)


def surrogate_of(problem: Problem, seed: int) -> Problem:
    """The same network on a Gaussian mixture fitted to the data: means, spikes and weights.

    Fitted on up to 6000 samples that the first step of repetition 0 has not seen. Where the noise
    has a variance v other than 1, the mixture is that of x/√v and the rate η·v: the same network
    in the mixture convention.
    """
    trial = Trial(problem, Streams(seed, 0))
    sample = sample_of(problem, trial.draw.rows[problem.step_samples :][:_MOST_NODES])
    if int(sample.group.max()) == 0:
        raise AssumptionError(
            "the Gaussian surrogate needs labels that are classes; these look like numbers. Use "
            'method = "semi-parametric"'
        )
    x = sample.x
    if sample.noise:
        x = x + np.sqrt(sample.noise) * trial.streams.rng("test-data").standard_normal(x.shape)
    fit = fit_mixture(x, sample.y)
    if problem.network.convention == "isotropic" and abs(fit.scale - 1) > 0.05:
        raise AssumptionError(
            f"the noise in these data has a standard deviation of {fit.scale:.3g}; in the "
            'isotropic convention the surrogate needs 1. Divide the inputs by it, or use "mixture"'
        )
    assert fit.labels is not None
    noise = float(getattr(problem.labels, "noise", 0.0))
    tables = {name: getattr(problem, name) for name in ("network", "training")}
    tables["training"] = problem.training.model_copy(update={"rate": problem.rate * fit.scale**2})
    labels = ComponentLabels(values=fit.labels, noise=noise)
    return Problem(data=fit.mixture, labels=labels, **tables)


def label_groups(y: Array) -> np.ndarray:
    """The class of each sample where labels are classes, else one group for all."""
    values, group = np.unique(y, return_inverse=True)
    few = len(values) <= _MOST_CLASSES
    if few and np.bincount(group).min() >= _FEWEST_IN_CLASS:
        return np.asarray(group)
    return np.zeros(len(y), dtype=int)
