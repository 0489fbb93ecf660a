"""The surplus of labels of one sign in a training set, and its effect on other losses.

In a loss like the hinge all samples within the margin pull alike, whatever their output. A surplus
of one sign, of the order of √m labels, shifts all outputs until samples leave the margin: by much
even in large training sets, where few are near it (docs/book/losses.md).
"""

from __future__ import annotations

import math

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry, variance_of_labels

_LARGEST = 0.45  # ε: probabilities stay positive


def surplus_deviation(problem: Problem, geometry: Geometry) -> float:
    """Standard deviation of the surplus, over √(m Var y), its value for independent samples.

    Zero for the squared loss, whose 1/n correction knows it, and where labels are not ±1.
    """
    if problem.loss.name == "squared" or not problem.labels_binary:
        return 0.0
    if not problem.data.fixed_counts or problem.component_values is None:
        return 1.0
    return math.sqrt(problem.label_noise_variance / variance_of_labels(problem, geometry))


def with_surplus(
    weights: Array, labels: Array, samples: Array | float, surplus: Array | float
) -> tuple[Array, Array]:
    """Weights and mean labels of the nodes (…, S) in a training set whose mean label is
    ȳ + z√(Var y/m), z = `surplus`, a number or one for each of a stack.

    p(y|s) ω_s (1 + ε(y − ȳ)) with ε = z/√(m Var y) has

        ω'_s = ω_s (1 + ε(ȳ_s − ȳ)),   ȳ'_s = (ȳ_s + ε(1 − ȳ ȳ_s))/(1 + ε(ȳ_s − ȳ))  (eq. surplus)
    """
    mean = (weights * labels).sum(axis=-1)
    per = np.asarray(surplus / np.sqrt(samples * np.maximum(1 - mean**2, 1e-300)))
    mean, per = mean[..., None], np.clip(per, -_LARGEST, _LARGEST)[..., None]
    share = 1 + per * (labels - mean)
    return weights * share, (labels + per * (1 - mean * labels)) / share
