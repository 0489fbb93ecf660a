"""A Problem in the theory's own terms: geometry, labels, training, and neurons of a draw."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from onegrad.data.labels import ComponentLabels, SingleIndex
from onegrad.data.mixture import Mixture
from onegrad.equivalents.conditional_gaussian import leading_direction
from onegrad.network.trial import Trial
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.theory.geometry import (
    Geometry,
    Labels,
    Training,
    geometry_from_arrays,
    typical_geometry,
)
from onegrad.theory.neurons import Neurons, drawn_types, initial_output_matters

Kind = Literal["random", "orthogonal"]


def training_of(problem: Problem) -> Training:
    """The problem's sizes and scales in the theory's own terms."""
    constant = problem.network.readout == "constant"
    scale = problem.readout_scale
    return Training(
        activation=problem.activation,
        width=problem.width,
        samples=problem.samples,
        step_samples=problem.step_samples,
        rate=problem.rate,
        ridge=problem.effective_ridge,
        weight_variance=problem.weight_variance,
        readout_std=0.0 if constant else scale,
        readout_mean=scale if constant else 0.0,
        gradient=problem.training.gradient,
    )


def labels_of(problem: Problem) -> Labels:
    """One link or value per component."""
    components = len(problem.data.weights) if isinstance(problem.data, Mixture) else 1
    if isinstance(problem.labels, SingleIndex):
        links = problem.labels.links
        links = links * components if len(links) == 1 else links
        return Labels(links=links, noise=problem.labels.noise)
    assert isinstance(problem.labels, ComponentLabels)
    return Labels(values=problem.labels.values or (1.0, -1.0), noise=problem.labels.noise)


def geometry_of(problem: Problem, overlaps: str, rng: int) -> tuple[Geometry, bool]:
    """The few directions that matter, and whether they come from an actual draw."""
    data = problem.data
    directions = data.directions if isinstance(data, Mixture) else "random"
    if overlaps == "drawn" or (overlaps == "auto" and directions != "random"):
        world = problem.world(Streams(rng, 0))
        population, teacher = world.population, world.teacher
        direction = teacher.direction if teacher.values is None else None
        return geometry_from_arrays(
            population.weights, population.means, population.spikes, population.strengths, direction
        ), True
    teacher_kind = problem.labels.direction if isinstance(problem.labels, SingleIndex) else None
    if not isinstance(data, Mixture):
        return _typical(problem.dim, (1.0,), (), 0.0, 0.0, teacher_kind, "random"), False
    strengths = tuple((problem.spread * data.relative_strengths).tolist())
    kind: Kind = "orthogonal" if directions == "orthogonal" else "random"
    return _typical(
        problem.dim, data.weights, strengths, data.alignment, data.mean, teacher_kind, kind
    ), False


@lru_cache(maxsize=64)
def _typical(
    dim: int,
    weights: tuple[float, ...],
    strengths: tuple[float, ...],
    alignment: float,
    mean: float,
    teacher: Literal["random", "spikes"] | None,
    directions: Kind,
) -> Geometry:
    """Points of a curve that have the same geometry get the same object."""
    return typical_geometry(
        dim, weights, [strengths for _ in weights],
        alignment=alignment, mean=mean, teacher=teacher, directions=directions,
    )  # fmt: skip


def drawn_neurons(problem: Problem, parts: tuple[Geometry, Labels, Training], rng: int) -> Neurons:
    """The neurons of the first step of repetition 0, in the directions the step adds.

    Those are W₀ᵀa where the initial output matters, and the direction e of the gradient. The
    draw fixes W₀ᵀa, so the rest of W₀ is orthogonal to a: `tilt` (docs/theory.md, eq. (24)).
    """
    geometry = parts[0]
    trial = Trial(problem, Streams(rng, 0))
    before, after, readout = trial.weights, trial.updated_weights, trial.readout
    assert geometry.basis is not None
    output = initial_output_matters(*parts)
    added = [before.T @ readout] if output else []
    if problem.rate > 0:
        added.append(leading_direction(after - before))
    basis = geometry.basis
    for direction in added:
        direction = direction - basis @ (basis.T @ direction)
        basis = np.column_stack([basis, direction / np.linalg.norm(direction)])
    if not output:
        return drawn_types(after, basis)
    bulk_before = before - (before @ basis) @ basis.T
    bulk_after = after - (after @ basis) @ basis.T
    overlap = np.einsum("ij,ij->i", bulk_before, bulk_after)
    length = np.sqrt(np.einsum("ij,ij->i", bulk_before, bulk_before))
    return drawn_types(after, basis, overlap / length * readout / np.linalg.norm(readout))
