"""Whether problems have the same nodes, neurons and labels, so that tables can be shared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from onegrad.problem import Problem
from onegrad.theory.neurons.step import spike_strength


def same_layers(one: Problem, other: Problem) -> bool:
    """Whether two problems differ in nothing but samples of the readout, and its ridge by little,
    at the same geometry."""
    return one.width == other.width and _before_readout(one) == _before_readout(other)


def _before_readout(problem: Problem) -> tuple[object, ...]:
    """What nodes, neurons and labels depend on, beside the geometry."""
    return (
        problem.activation, problem.width, problem.step_samples, problem.rates,
        spike_strength(problem),
        problem.weight_variance, problem.readout_mean, problem.readout_std,
        problem.training.gradient, problem.links, problem.joint_link, problem.component_values,
        problem.label_noise, problem.label_flip, problem.loss,
    )  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    """Whether two records of arrays have the same numbers."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if is_dataclass(one):
        return all(alike(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)
