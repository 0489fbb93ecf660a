"""How the special directions lie by chance: their typical overlaps, and any others.

Random directions in n dimensions overlap by g/√n with g ~ N(0, 1), and at finite n that counts:
‖Σ̄‖ depends on γ₁·γ₂, and labels on ξ·γ and ξ·μ (docs/book/fixed-point.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onegrad.compute.randomness import Streams
from onegrad.data.base import DataModel
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.directions.arrangement import Arrangement
from onegrad.theory.directions.closed import Closure, closed_geometry, typical_closed
from onegrad.theory.directions.geometry import (
    Geometry,
    drawn_geometry,
)


def geometry_of(
    problem: Problem, overlaps: str = "auto", seed: int | Streams = 0, spectra: bool = False
) -> Geometry:
    """The special directions of a problem: of one draw, or typical ones.

    overlaps : "drawn": spikes, means and teacher of the simulation's first repetition with that
        seed; "typical": the typical ones; "auto": drawn where directions are fixed or orthogonal.
        A drawn geometry knows its `basis`, and problems with the same typical one share the object
    seed : or the streams of another draw
    spectra : with leading eigenvectors of a bulk that is not flat among the axes (`Closure`)
    """
    data: Any = problem.data  # data of a known law are a mixture, or have no structure
    if not data.known:
        raise AssumptionError(
            f'the conditional theory needs a known population; data.model = "{data.model}" has '
            'the methods "semi-parametric" and "surrogate"'
        )
    bulk, closure = data.bulk_eigenvalues is not None, Closure.of(problem.trained, spectra)
    given = problem.directions == "fixed" or (problem.directions != "random" and not bulk)
    given = given or not _placed(data)
    if overlaps == "drawn" or (overlaps == "auto" and given):
        streams = seed
        if isinstance(seed, int):  # "drawn" asks for the simulation's population by name
            streams = Streams(seed, 0, theory=overlaps != "drawn")
        instance = problem.instance(streams)
        labelled = problem.links is not None or problem.joint_link is not None
        teacher = instance.teacher.direction if labelled else None
        own = problem.gaussian_teacher and drawn_length(problem, overlaps)
        if bulk and not own:
            return closed_geometry(instance.population, teacher, closure)
        if not bulk:
            return drawn_geometry(instance.population, teacher, own)
    if bulk and data.bulk_alone and not (problem.joint_link or problem.gaussian_teacher):
        return typical_closed(problem.draw_instance(np.random.default_rng(0)).population, closure)
    return arrangement_of(problem).geometry()


def drawn_length(problem: Problem, overlaps: str) -> bool:
    """Whether a Gaussian teacher has the norm of one draw, not of their law."""
    return overlaps == "drawn" or problem.directions == "fixed"


def _placed(data: DataModel) -> bool:
    """Whether the law by which spikes and means are placed is known."""
    return data.bulk_alone or data.relative_strengths is not None


def _check_flat(problem: Problem) -> None:
    if problem.data.bulk_eigenvalues is not None:
        raise AssumptionError(
            "spikes, means or several indices have no typical places on a bulk that is not flat "
            '(data.spectrum); use overlaps = "drawn" or method = "layer"'
        )
    if not _placed(problem.data):
        raise AssumptionError(
            f'data.model = "{problem.data.model}" does not state the law of its spikes and means, '
            'so that nothing is typical; use overlaps = "drawn"'
        )


def arrangement_of(problem: Problem) -> Arrangement:
    """The law of the directions of a known population."""
    _check_flat(problem)
    data: Any = problem.data
    relative = None if data.isotropic else data.relative_strengths
    along: Any = getattr(problem.labels, "direction", None)
    along = "random" if problem.gaussian_teacher else along
    cosine = getattr(problem.labels, "cosine", None)
    along = along if cosine is None else cosine
    indices, cosines = getattr(problem.labels, "indices", 0), getattr(problem.labels, "cosines", ())
    if relative is None:
        return Arrangement(problem.dim, (1.0,), ((),), teacher=along, indices=indices)
    strengths = tuple(tuple((problem.spread * s).tolist()) for s in relative)
    return Arrangement(
        problem.dim, data.weights, strengths, data.alignment,
        data.mean, along, problem.directions != "orthogonal", indices, cosines or (),
        data.centres or (),
    )  # fmt: skip
