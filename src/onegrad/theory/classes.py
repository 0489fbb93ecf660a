"""Several classes, one output for each: errors add up, and the largest output is the class.

Outputs share the features, and with them the fixed point; each has a problem of its own with the
labels 1 and 0. Given κ they are jointly Gaussian, N(f_s, Q_s), and q is quadratic in the labels:
Q^{cc'} = ½[q(y_c + y_c') − q(y_c) − q(y_c')] (docs/theory.md, section 10).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.labels import ComponentLabels
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.conditional import simplified
from onegrad.theory.errors import errors_of
from onegrad.theory.fixed_point import solve_fixed_point
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.features import features_at
from onegrad.theory.layers.recursion import trained_types
from onegrad.theory.layers.types import NeuronTypes
from onegrad.theory.nodes.designs import quasi_gaussian
from onegrad.theory.nodes.population import Nodes, data_nodes, quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import Task, level_for, strata

_LEVEL = 1  # of the nodes; of the many types of a drawn layer one less
_POINTS = 256  # of N(f_s, Q_s)
_SCALED = (0.8, 1.25)  # what finite size may change of Q


def with_values(problem: Problem, values: Sequence[float]) -> Problem:
    """The same problem with one output, and these labels of its components."""
    labels = ComponentLabels(values=tuple(values), noise=problem.label_noise)
    return Problem(
        data=problem.data, labels=labels, network=problem.network, training=problem.training,
        scaling=problem.scaling,
    )  # fmt: skip


def class_problems(problem: Problem) -> list[Problem]:
    """One problem for each output: 1 for its class, 0 for the others. A softmax has no such."""
    if problem.softmax:
        raise AssumptionError(
            f'no theory is known of training.loss = "logistic" with {problem.outputs} classes: in '
            "a softmax the response of a sample is a matrix. Simulate it, or predict loss = "
            '"squared", whose largest output is a class too'
        )
    return [with_values(problem, row) for row in np.eye(problem.outputs).tolist()]


def argmax_error(
    problem: Problem,
    geometry: Geometry,
    test_error: float,
    neurons: NeuronTypes | None = None,
) -> float:
    """P(argmax_c f_c(x) ≠ class of x), from N(f_s, Q_s) at nodes of its own.

    test_error : what a finer theory says about it; Q is scaled by one number to have it
    neurons : those of a first layer that was drawn; by default those before any step
    """
    prediction, covariance, where = output_laws(problem, geometry, neurons)
    missed = np.eye(problem.outputs)[where.component] - prediction
    fixed = problem.outputs * problem.label_noise_variance
    fixed += float(where.weights @ np.sum(missed**2, axis=1))
    spread = float(where.weights @ np.trace(covariance, axis1=1, axis2=2))
    if spread > 0:
        covariance = covariance * float(np.clip((test_error - fixed) / spread, *_SCALED))
    return wrong_class(prediction, covariance, where.component, where.weights)


def output_laws(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes | None = None
) -> tuple[Array, Array, Nodes]:
    """f (S, K), Q (S, K, K) and the nodes, quasi-random ones of each component."""
    classes = problem.outputs
    unit = np.eye(classes)
    pairs = list(itertools.combinations(range(classes), 2))
    one = with_values(problem, unit[0].tolist())
    geometry = simplified(Task(one, geometry, neurons)).geometry
    level = level_for(one, geometry, QuadratureLevel.at(_LEVEL if neurons is None else 0))
    types = neurons or trained_types(one, geometry, level)
    nodes = data_nodes(one, geometry, types.spread, level)
    features = features_at(one, geometry, types, nodes)
    point = solve_fixed_point(features, float(problem.samples), problem.effective_ridge)
    where = quasi_nodes(geometry, level.points, types.vectors.shape[1], level)
    there = features_at(one, geometry, types, where)
    means, squares = [], []
    for values in [*unit, *(unit[i] + unit[j] for i, j in pairs)]:
        labelled = replace(features, labels=values[nodes.component])
        result = errors_of(replace(point, features=labelled))
        means.append(result.readout @ there.mean)
        fluctuation = result.mean_fluctuation(there, strata(problem, nodes), neurons is not None)
        squares.append(result.response.variance_at(there) + fluctuation)
    covariance = np.empty((len(where.weights), classes, classes))
    for c in range(classes):
        covariance[:, c, c] = squares[c]
    for (i, j), both in zip(pairs, squares[classes:], strict=True):
        covariance[:, i, j] = covariance[:, j, i] = 0.5 * (both - squares[i] - squares[j])
    return np.stack(means[:classes], axis=1), covariance, where


def wrong_class(prediction: Array, covariance: Array, owner: np.ndarray, weights: Array) -> float:
    """Σ_s ω_s P(argmax N(f_s, Q_s) ≠ class of s)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    z, w = quasi_gaussian(prediction.shape[1], _POINTS)
    drawn = prediction[:, None, :] + np.einsum("sij,pj->spi", root, z)
    wrong = (drawn.argmax(axis=2) != owner[:, None]) @ w
    return float(weights @ wrong)
