"""What differs between draws of one problem, as independent standard Gaussian variables.

Overlaps of the directions, g/√n (arrangement.py), the norm of a Gaussian teacher, strengths of
spikes that are drawn, a teacher's parts along the leading eigenvectors of a bulk that is not flat,
the chance parts of the first step along strong spikes, and the surplus of labels of one sign
(docs/book/what-the-step-writes.md). Values of them make a Task; draws.py takes means over them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from onegrad.compute.backend import Array
from onegrad.data.multi_index import spike_order
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.directions.arrangement import Arrangement
from onegrad.theory.directions.closed import Closure, leading_eigenvectors, typical_closed
from onegrad.theory.directions.geometry import Geometry, stretched
from onegrad.theory.directions.overlaps import arrangement_of, drawn_length, geometry_of
from onegrad.theory.neurons.step_chance import step_chance, strong_directions
from onegrad.theory.nodes.designs import tensor, two_level
from onegrad.theory.policy import Policy
from onegrad.theory.readout.label_surplus import surplus_deviation
from onegrad.theory.task import Task

Kind = Literal["overlap", "length", "norm", "strength", "part", "step", "labels"]


@dataclass(frozen=True)
class Variable:
    """One standard Gaussian variable.

    kind : "overlap" of two directions, an entry of g; "length" of several entries of g, which keep
        their proportions; "norm" of a Gaussian teacher; "strength" of a spike; "part" of the
        teacher along an eigenvector; "step": c and ζ along a strong direction; "labels": their
        surplus
    places : entries of g that it sets; the place of the spike, eigenvector or strong direction
    """

    kind: Kind
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chance:
    """What is left to chance in a problem: values of the `variables` make a task.

    fixed : the directions at typical overlaps, or as they are given
    arrangement : of the directions, or None where they are given
    strong : names of the directions along which the step's chance counts
    groups : whether directions that are alike are taken together
    policy : the numbers that decide
    """

    problem: Problem
    fixed: Geometry
    arrangement: Arrangement | None = None
    variables: tuple[Variable, ...] = ()
    strong: tuple[str, ...] = ()
    groups: bool = False
    policy: Policy = field(default=Policy(), repr=False)

    @property
    def typical(self) -> Task:
        """Typical overlaps and strengths, the step's chance at its root mean square."""
        return self._task(self.fixed, np.ones(len(self.strong)))

    @property
    def near(self) -> bool:
        """Whether the typical point is near the mean: it is not where strengths are drawn, or the
        step moves neurons along strong directions by chance."""
        return all(variable.kind not in ("strength", "step") for variable in self.variables)

    @property
    def exchangeable(self) -> bool:
        """Whether components differ in nothing: then their errors have equal means."""
        problem, setting = self.problem, self.arrangement
        if setting is None or setting.tied is not None or setting.places or setting.indices:
            return False
        labels = problem.component_values or problem.links or ()
        return all(len(set(own)) == 1 for own in (setting.weights, setting.strengths, labels))

    @property
    def of_labels(self) -> bool:
        """Whether training sets differ in how many labels are of one sign."""
        return any(variable.kind == "labels" for variable in self.variables)

    def task(self, values: Array) -> Task:
        """The problem at these values of the variables."""
        along, surplus, norm = np.ones(len(self.strong)), 0.0, None
        setting = self.arrangement
        g = None if setting is None else setting.typical.copy()
        uniform, parts = [], []
        for variable, value in zip(self.variables, values.tolist(), strict=True):
            where = list(variable.places)
            match variable.kind:
                case "overlap" if g is not None:
                    g[where] = value
                case "length" if g is not None:
                    g[where] *= _length(value, len(where))
                case "norm":
                    norm = _length(value, self.problem.dim)
                case "strength":
                    uniform.append(float(ndtr(value)))
                case "part":
                    parts.append(abs(value))
                case "step":
                    along[where] = value
                case "labels":
                    surplus = value * surplus_deviation(self.problem, self.fixed)
        geometry = self.fixed
        if uniform and setting is not None:
            setting = _with_strengths(setting, self.problem, uniform)
        if setting is not None:
            geometry = setting.geometry(g)
        if parts:
            population = self.problem.draw_instance(np.random.default_rng(0)).population
            geometry = typical_closed(population, _closure(self.problem), np.array(parts))
        if norm is not None:
            geometry = stretched(geometry, norm)
        return self._task(geometry, along, surplus)

    def steps(self) -> tuple[list[Task], Array]:
        """Tasks and weights over the step's chance alone, all else typical: a Gauss rule along one
        strong direction, signs along several."""
        if len(self.strong) == 1:
            points, weights = tensor([gauss_hermite(3)])
        else:
            points, weights = two_level(len(self.strong))
        return [self._task(self.fixed, point) for point in points], weights

    def _task(self, geometry: Geometry, along: Array, surplus: float = 0.0) -> Task:
        chance = step_chance(self.problem, geometry, self.strong, along) if self.strong else None
        return Task(self.problem, geometry, chance=chance, surplus=surplus, policy=self.policy)


def chance_of(
    problem: Problem, overlaps: str, seed: int, finite_size: bool = False,
    policy: Policy = Policy(),
) -> Chance:  # fmt: skip
    """What is left to chance in a problem with these `overlaps` (`geometry_of`).

    finite_size : the labels of a training set too, which a limit of large sizes does not know
    """
    fixed = geometry_of(problem, overlaps, seed)
    many = fixed.special >= policy.many_directions
    variables: list[Variable] = []
    if fixed.levels is not None:
        if fixed.basis is None and problem.links is not None:
            bulk, closure = problem.data.bulk_eigenvalues, _closure(problem)
            assert bulk is not None
            count = leading_eigenvectors(bulk, closure.leading, closure.share)
            variables = [Variable("part", (a,)) for a in range(count)]
        return Chance(problem, fixed, None, tuple(variables), policy=policy)
    arrangement = None
    if fixed.basis is None and problem.directions == "random":
        arrangement = arrangement_of(problem)
        data: Any = problem.data
        if getattr(data, "random_strengths", False):
            variables = [Variable("strength", (j,)) for j in range(arrangement.spikes)]
        variables += (
            _lengths(arrangement, policy.grouped_directions) if many else _overlaps(arrangement)
        )
    if problem.gaussian_teacher and not drawn_length(problem, overlaps):
        variables.append(Variable("norm"))
    strong = strong_directions(problem, fixed, many, policy)
    variables += [Variable("step", (j,)) for j in range(len(strong))]
    if finite_size and surplus_deviation(problem, fixed) > 0:
        variables.append(Variable("labels"))
    return Chance(problem, fixed, arrangement, tuple(variables), strong, many, policy)


def _closure(problem: Problem) -> Closure:
    return Closure.of(problem.trained, spectra=False)


def _length(value: float, count: int) -> float:
    """|g|/√n of n = `count` standard Gaussian numbers as a function of one: the approximation of
    its square by the cube of a Gaussian (Wilson and Hilferty)."""
    share = 2 / (9 * count)
    return max(0.0, 1 - share + math.sqrt(share) * value) ** 1.5


def _with_strengths(setting: Arrangement, problem: Problem, uniform: list[float]) -> Arrangement:
    data: Any = problem.data
    ends = np.cumsum([len(own) for own in setting.strengths])[:-1]
    drawn = data.strengths_at(np.split(np.array(uniform), ends))
    strengths = tuple(tuple((problem.spread * s).tolist()) for s in drawn)
    return replace(setting, strengths=strengths)


def _overlaps(setting: Arrangement) -> list[Variable]:
    """All entries of g, but for those that play no part because labels are tied to spikes."""
    if not setting.chance:
        return []
    unused: set[int] = set()
    rows = setting.blocks["teacher"][0]
    width = setting.spikes + setting.corners
    start = len(setting.typical) - rows * width
    tied: Sequence[int] = () if setting.tied is None else (setting.tied,)
    if setting.indices and setting.cosines:
        sizes = [len(t) for t in setting.strengths]
        firsts = [0, *itertools.accumulate(sizes)]
        tied = [firsts[c] + i for c, i in spike_order(sizes)[: setting.indices]]
    for row, place in itertools.product(range(rows), tied):
        unused.add(start + row * width + place)
    return [Variable("overlap", (j,)) for j in range(len(setting.typical)) if j not in unused]


def _lengths(setting: Arrangement, sets: int) -> list[Variable]:
    """Of many directions the overlaps of the teacher with the means, and the length of those with
    spikes of equal strength, so that these stay alike; all others are typical."""
    if not setting.chance or not setting.drawn_teacher or setting.indices:
        return []
    found, first = [], len(setting.typical) - setting.spikes - setting.corners
    places = first
    for own in setting.strengths:
        counts = [len(list(same)) for _, same in itertools.groupby(own)]
        if setting.leading and counts and counts[0] > 1:
            counts = [1, counts[0] - 1, *counts[1:]]
        if len(counts) > sets:
            counts = [len(own)]
        for count in counts:
            mine = [first + j for j in range(places - first, places - first + count)]
            if setting.tied is not None:
                mine = [j for j in mine if j != first + setting.tied]
            if mine:
                found.append(Variable("length" if len(mine) > 1 else "overlap", tuple(mine)))
            places += count
    last = len(setting.typical)
    return found + [Variable("overlap", (last - 1 - j,)) for j in range(setting.corners)]
