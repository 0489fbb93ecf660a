"""First layers that are drawn and trained, in the terms of the theory."""

from __future__ import annotations

import numpy as np

from onegrad.compute.linalg import leading_direction
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.step import initial_output_matters
from onegrad.theory.neurons.types import NeuronTypes, drawn_types


def drawn_neurons(problem: Problem, geometry: Geometry, seed: int) -> NeuronTypes:
    """The neurons of the first step of repetition 0, in the directions the step adds.

    Those are W₀ᵀa where the initial output matters, and the direction e of the gradient. The
    draw fixes W₀ᵀa, so the rest of W₀ is orthogonal to a: `tilt` (eq. tilt).
    geometry : of the same draw, `geometry_of(problem, "drawn", seed)`
    """
    trial = Trial(problem, Streams(seed, 0))
    before, after, readout = trial.weights, trial.updated_weights, trial.readout
    assert geometry.basis is not None
    output = initial_output_matters(problem, geometry)
    added = [before.T @ readout] if output else []
    if problem.trained:
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
