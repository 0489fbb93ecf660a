"""A teacher of somebody's own: a direction, or any function of the inputs that depends on few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.instance import Instance
from onegrad.data.label_base import Teacher
from onegrad.data.labels import SingleIndex
from onegrad.data.multi_index import MultiIndex
from onegrad.errors import SpecError
from onegrad.problem import Problem

_MOST = 3  # directions that labels may depend on
_PLACES = 16  # inputs at which slopes are taken
_STEP = 1e-4  # step of the finite differences, in units of an input
_SMALL = 1e-4  # singular value of the slopes, relative to the first, that is rounding
_AT_ONCE = 4096  # inputs that a function is given together
_CLOSE = 1e-3  # relative error of the function on its own directions that is let pass


def with_teacher(problem: Problem, instance: Instance, teacher: Any) -> tuple[Problem, Instance]:
    """The problem and the draw of its directions, with labels by this teacher.

    teacher : a direction (n,), whose projection goes through the link of the problem; or a function
        of inputs (m × n) that gives m labels before noise
    """
    if callable(teacher):
        directions, labels = _of_function(problem, instance, teacher)
    else:
        labels, directions = problem.labels, np.asarray(teacher, dtype=float)
        if not isinstance(labels, SingleIndex) or directions.shape != (problem.dim,):
            raise SpecError.of(
                "teacher", getattr(teacher, "shape", teacher),
                f"must be a direction of data.dim = {problem.dim} numbers, for labels of a single "
                "index, or a function of the inputs", "For example lambda x: np.tanh(x @ u)",
            )  # fmt: skip
    problem = problem.replace(labels=labels)
    links, joint = problem.links or (), problem.joint_link
    given = Teacher(directions, links, None, labels.noise, labels.flip, joint)
    return problem, replace(instance, teacher=given)


def _of_function(
    problem: Problem, instance: Instance, function: Callable[[Array], Any]
) -> tuple[Array, Any]:
    """The directions on which a function of the inputs depends, by its slopes, and its labels."""
    rng = np.random.default_rng(0)
    x = instance.sample(_PLACES, rng).x
    slopes = np.stack([_slope(function, one) for one in x])
    _, sizes, rows = np.linalg.svd(slopes, full_matrices=False)
    count = int(np.sum(sizes > _SMALL * sizes[0]))
    basis = rows[:count]
    fresh = instance.sample(500, rng).x
    exact = _called(function, fresh)
    off = np.std(exact - _called(function, fresh @ basis.T @ basis)) if sizes[0] > 0 else np.inf
    if not 0 < count <= _MOST or not off <= _CLOSE * np.std(exact):
        raise SpecError.of(
            "teacher", getattr(function, "__name__", "function"),
            f"must be a smooth function of at most {_MOST} projections of the inputs",
            "For one with jumps give the direction and set labels.link",
        )  # fmt: skip

    def of_projections(*t: Array) -> Array:
        shape = np.broadcast_shapes(*(np.shape(one) for one in t))
        flat = np.stack([np.broadcast_to(one, shape).ravel() for one in t], axis=1)
        return _called(function, flat, basis).reshape(shape)

    noise = problem.label_noise
    if count == 1:
        return basis[0], SingleIndex(link=lambda t: of_projections(t), noise=noise)
    if count == 2:
        return basis.T, MultiIndex(indices=2, link=lambda s, t: of_projections(s, t), noise=noise)
    three = MultiIndex(indices=3, link=lambda s, t, u: of_projections(s, t, u), noise=noise)
    return basis.T, three


def _slope(function: Callable[[Array], Any], x: Array) -> Array:
    """Central differences along every input."""
    n = len(x)
    found = np.empty(n)
    for start in range(0, n, _AT_ONCE):
        these = np.arange(start, min(n, start + _AT_ONCE))
        steps = np.zeros((len(these), n))
        steps[np.arange(len(these)), these] = _STEP
        found[these] = _called(function, x + steps) - _called(function, x - steps)
    return found / (2 * _STEP)


def _called(function: Callable[[Array], Any], x: Array, basis: Array | None = None) -> Array:
    """The function's labels, block by block; of projections on a basis, if one is given."""
    parts = []
    for start in range(0, len(x), _AT_ONCE):
        block = x[start : start + _AT_ONCE]
        y = np.asarray(function(block if basis is None else block @ basis), dtype=float)
        if y.shape != (len(block),):
            raise SpecError.of(
                "teacher", y.shape, f"must give one label for each of {len(block)} inputs",
                "A function of an array (m × n) that returns m numbers",
            )  # fmt: skip
        parts.append(y)
    return np.concatenate(parts)
