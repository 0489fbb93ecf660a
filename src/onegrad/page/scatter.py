"""A picture of the data: a few samples in the plane of two directions, with their labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.instance import Instance
from onegrad.errors import AssumptionError
from onegrad.neurons.report import special_directions
from onegrad.problem import Problem

_SAMPLES = 260
_SIZE = 5000  # inputs up to which samples are drawn for a picture
_WORDS = re.compile(r"(spike|mean) (\d+)(\.\d+)?")
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
    """Two orthonormal directions (n × 2): special ones first, teachers before spikes and means."""
    dim = instance.population.dim
    others = np.random.default_rng(0).standard_normal((2, dim))
    named = special_directions(instance).items()
    special = sorted(
        named, key=lambda item: (item[0].startswith("mean"), item[0].partition(".")[2])
    )
    found = [*special, *(("another direction", v) for v in others)]
    names: list[str] = []
    plane: list[Array] = []
    for name, direction in found:
        rest = direction - sum((one @ direction * one for one in plane), np.zeros(dim))
        if np.linalg.norm(rest) > _FLAT and len(plane) < 2:
            name = "the teacher" if name == "teacher" else name
            names.append(_WORDS.sub(r"\1 of component \2", name))
            plane.append(rest / np.linalg.norm(rest))
    return names, np.column_stack(plane)
