"""What the first step has by chance along the strongest eigenvector of a bulk that is not flat.

Sampling noise and the initial output push all neurons together, from draw to draw by another
amount; outliers of the weights and features follow it (docs/structure.md, section 3).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.smoothing import smoothed
from onegrad.problem import Problem
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.block_types import residual_sample
from onegrad.theory.layers.step import StepChance
from onegrad.theory.layers.types import NeuronTypes
from onegrad.theory.nodes.rules import QuadratureLevel

_COUNTS = 0.02  # as for errors: k times what it adds to the variance of preactivations over b₀²


def bulk_chances(problem: Problem, geometry: Geometry) -> list[StepChance]:
    """ζ of either sign along the axis where it counts most, one standard deviation; nothing where
    it counts nowhere. With κ whitened, λ the axis' eigenvalue and d̄ the slope of a neuron,

        Var ζ = (E[u²d̄²κ²] − E[u d̄ κ]²)/m̃ + λ k E a² s_w² (E d̄²κ²)²                       (13)

    the last of the initial output, with the exact gradient.
    """
    levels = geometry.levels
    if levels is None or not problem.trained:
        return []
    sample = residual_sample(problem, geometry, QuadratureLevel.at(1))
    variance, kappa = problem.weight_variance, sample.kappa
    bulk = variance * levels.trace
    scale = np.sqrt(bulk + variance * (kappa**2 @ levels.axes))
    table = smoothed(problem.activation, np.zeros((len(scale), 1)), scale[:, None])
    slope = table.slope[:, 0]
    pushed = (sample.residual * slope)[:, None] * kappa
    square = sample.weights @ pushed**2 - (sample.weights @ pushed) ** 2
    square = square / problem.step_samples
    if problem.training.gradient == "exact":
        felt = sample.weights @ (slope[:, None] * kappa) ** 2
        square = square + levels.axes * felt**2 * variance * problem.width * problem.readout_square
    effect = problem.width * problem.rate**2 * problem.readout_square * levels.axes**2 * square
    axis = int(np.argmax(effect))
    if effect[axis] <= _COUNTS * bulk:
        return []
    noise = np.zeros(len(square))
    noise[axis] = np.sqrt(square[axis])
    return [StepChance(0 * noise, sign * noise, 0) for sign in (1.0, -1.0)]


def moved_by_chance(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, chance: StepChance
) -> NeuronTypes:
    """v_i + h_i Λζ."""
    assert geometry.levels is not None and neurons.readout is not None
    vectors = neurons.vectors.copy()
    push: Array = geometry.levels.axes * chance.noise
    vectors[:, : len(push)] += problem.rate * neurons.readout[:, None] * push
    return replace(neurons, vectors=vectors)
