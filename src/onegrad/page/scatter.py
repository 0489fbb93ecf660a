"""A picture of the data: a few samples in the plane of two directions, with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.instance import Instance
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.problem import Problem

_SAMPLES = 260
_SIZE = 5000  # inputs up to which samples are drawn for a picture
_FLAT = 1e-6  # shorter components orthogonal to the first direction span no plane


def scatter(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Samples x (projections on two unit directions), their labels and components.

    One seed for all settings: samples move with a setting instead of being drawn anew.
    """
    problem = Problem.from_spec(tables)
    if problem.dim > _SIZE:
        raise AssumptionError(f"no picture of the data above {_SIZE} inputs")
    instance = problem.instance(0)
    batch = instance.sample(_SAMPLES, 0)
    names, plane = _plane(instance)
    places = batch.x @ plane
    labels = batch.y if batch.y.ndim == 1 else np.argmax(batch.y, axis=1)
    return {
        "names": names,
        "x": places[:, 0],
        "y": places[:, 1],
        "label": labels,
        "component": batch.component,
    }


def _plane(instance: Instance) -> tuple[list[str], Array]:
    """Two orthonormal directions (n × 2): the teacher's, then spikes and means, else any."""
    population, teacher = instance.population, instance.teacher
    columns = [] if teacher.values is not None else list(np.atleast_2d(teacher.direction.T))
    several = len(columns) > 1
    found = [(f"teacher {j}" if several else "the teacher", c) for j, c in enumerate(columns, 1)]
    found += [(f"spike of component {c + 1}", s) for c, s in _spikes(population)]
    found += [("the means", mean) for mean in population.means]
    any_other = np.random.default_rng(0).standard_normal((2, population.dim))
    found += [("another direction", direction) for direction in any_other]
    names: list[str] = []
    plane: list[Array] = []
    for name, direction in found:
        rest = direction - sum((one @ direction * one for one in plane), np.zeros(population.dim))
        if np.linalg.norm(rest) > _FLAT * max(1.0, float(np.linalg.norm(direction))):
            names.append(name)
            plane.append(rest / np.linalg.norm(rest))
        if len(plane) == 2:
            break
    return names, np.column_stack(plane)


def _spikes(population: Population) -> list[tuple[int, Array]]:
    """Component and direction of every spike, the strongest ones of all components first."""
    listed = [
        (float(strengths[i]), c, spikes[:, i])
        for c, (spikes, strengths) in enumerate(
            zip(population.spikes, population.strengths, strict=True)
        )
        for i in range(len(strengths))
        if strengths[i] > 0
    ]
    listed.sort(key=lambda one: -one[0])
    return [(c, direction) for _, c, direction in listed]
