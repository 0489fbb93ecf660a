"""What differs between draws of one problem, as a few standard variables, and rules for their law.

Chance overlaps of the directions, g/√n (arrangement.py), and along strong directions the chance
parts of the first step: c = VᵀW₀ᵀa of the initial output, and the sampling noise ζ (docs/theory.md,
sections 4 and 9). A point of the law makes a Task; averages.py takes means over them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import roots_genlaguerre

from onegrad.compute.backend import Array
from onegrad.gaussian.piecewise import piecewise_gauss
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.arrangement import Arrangement
from onegrad.theory.geometry import Geometry, stretched
from onegrad.theory.losses.label_surplus import surplus_deviation
from onegrad.theory.nodes.designs import tensor, two_level
from onegrad.theory.overlaps import arrangement_of, drawn_length, geometry_of
from onegrad.theory.step_chance import shares_that_count, step_chance, strong_directions
from onegrad.theory.task import Task

_MOST_SETS = 4  # different strengths of a component, beyond which its spikes count together
_RAW_NODES = 1500  # of a rule before equal problems are merged
_MOST_NODES, _FEWER_NODES = 60, 24  # of them after that; of losses that are iterated over
_MOST_GENERATORS = 6  # of the group of symmetries
_SAME = 1e-9
_INDEX_SPREAD = 0.5  # part of θ/n that typical overlaps of several indices may cost

_MOST_STEP = 5  # order along the step's quantities
ORDERS = (3, 5, 9)  # of Gauss rules, one after the other
Kind = Literal["sign", "size", "centred", "length", "balance"]


@dataclass(frozen=True)
class Variable:
    """One chance quantity of a draw.

    kind : "sign", a standard Gaussian on which errors depend smoothly; "size", one on whose modulus
        they depend, with a kink at zero; "centred", the same with 0 as its typical value because
        its sign decides; "length" of a standard Gaussian vector; "balance", a standard Gaussian on
        which errors depend smoothly and that is typically zero
    between : names of the two directions that overlap ("spike 1.1", "mean 1", "teacher"), or "step"
        and the strong direction along which the step has it; "labels", whose surplus it is
    positions : entries of g that it sets, in the pattern of the typical ones; none for the step's
    """

    kind: Kind
    between: tuple[str, str]
    positions: tuple[int, ...] = ()

    @property
    def of_norm(self) -> bool:
        """Whether it is the norm of a Gaussian teacher."""
        return self == NORM

    @property
    def of_step(self) -> bool:
        return self.between[0] == "step"

    @property
    def size(self) -> float:
        """A typical modulus."""
        if self.of_step or self.kind in ("sign", "balance"):
            return 1.0
        return math.sqrt(len(self.positions)) if self.kind == "length" else math.sqrt(2 / math.pi)

    @property
    def typical(self) -> float:
        return 0.0 if self.kind in ("centred", "balance") else self.size

    @property
    def low(self) -> float:
        """What shows by comparison how much a typical one does: none, or a short length."""
        count = len(self.positions)
        short = math.sqrt(max(0.0, count - math.sqrt(2 * count)))
        return short if self.kind == "length" else 0.0

    def rule(self, order: int) -> tuple[Array, Array]:
        """Nodes and weights: 1 typical value, 2 signs of it, then Gauss rules that grow."""
        if order == 1 or (order == 2 and self.kind == "length"):
            return np.array([self.typical]), np.ones(1)
        if order == 2:
            return np.array([1.0, -1.0]) * self.size, np.full(2, 0.5)
        if self.kind in ("sign", "balance"):
            return gauss_hermite(order)
        few = (order + 1) // 2  # of the size, or the length
        if self.kind != "length":
            return piecewise_gauss((0.0,), few)
        x, w = roots_genlaguerre(few, 0.5 * len(self.positions) - 1)
        return np.sqrt(2 * x), w / w.sum()


NORM = Variable("centred", ("teacher", "norm"))


@dataclass(frozen=True)
class Law:
    """The draws of a problem: points are values of the `variables`.

    arrangement : of the directions, or None where they are given
    strong : names of the directions along which the step's chance counts
    symmetries : permutations and signs of the variables that leave the problem the same
    importance : Q of the step's chance, eq. (33), where it is averaged over, else 0
    left_out : relative effect of the step's chance where it cannot be averaged over
    """

    problem: Problem
    fixed: Geometry
    arrangement: Arrangement | None
    variables: tuple[Variable, ...]
    strong: tuple[str, ...]
    symmetries: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    importance: float = 0.0
    left_out: float = 0.0

    @classmethod
    def fixed_at(cls, problem: Problem, geometry: Geometry) -> Law:
        """Nothing left to chance."""
        return cls(problem, geometry, None, (), ())

    @property
    def typical(self) -> Array:
        return np.array([variable.typical for variable in self.variables])

    @property
    def exchangeable(self) -> bool:
        """Whether components may change places: then their mean errors are equal."""
        return any(order != tuple(sorted(order)) for order, _ in self.symmetries)

    @property
    def low(self) -> Array:
        return np.array([variable.low for variable in self.variables])

    @property
    def screen(self) -> Array:
        """Points that show whether chance counts: typical sizes with either sign, and low ones."""
        size = np.array([variable.size for variable in self.variables])
        lengths = np.array([variable.kind == "length" for variable in self.variables])
        return np.stack([size, np.where(lengths, size, -size), self.low])

    def task(self, values: Array) -> Task:
        """The problem at one point of the law."""
        geometry, along, surplus = self.fixed, np.zeros(len(self.strong)), 0.0
        norm = None
        g = None if self.arrangement is None else self.arrangement.typical.copy()
        for variable, value in zip(self.variables, values.tolist(), strict=True):
            where = list(variable.positions)
            if variable.of_step:
                along[self.strong.index(variable.between[1])] = value
            elif variable.kind == "balance":
                surplus = value * surplus_deviation(self.problem, self.fixed)
            elif variable.of_norm:
                norm = _norm(value, self.problem.dim)
            elif g is not None:
                g[where] = value if len(where) == 1 else g[where] * (value / variable.size)
        if self.arrangement is not None:
            geometry = self.arrangement.geometry(g)
        if norm is not None:
            geometry = stretched(geometry, norm)
        chance = None
        if self.strong:
            chance = step_chance(self.problem, geometry, self.strong, along)
        return Task(self.problem, geometry, chance=chance, surplus=surplus)

    def canonical(self, points: Array) -> list[tuple[float, ...]]:
        """A name for each point, the same for points that symmetries map onto each other."""
        best, rows = points, np.arange(len(points))
        for order, signs in self.symmetries:
            image = points[:, list(order)] * signs
            change = image - best
            first = np.argmax(np.abs(change) > _SAME, axis=1)
            best = np.where(change[rows, first, None] > _SAME, image, best)
        return [tuple(row) for row in np.round(best + 0.0, 9).tolist()]

    def nodes(self, orders: Sequence[int]) -> tuple[Array, Array]:
        """A rule with these orders: variables of order two share a two-level design."""
        pairs = list(zip(self.variables, orders, strict=True))
        weak = [j for j, (v, o) in enumerate(pairs) if o == 2 and v.kind != "length"]
        rest = [j for j in range(len(pairs)) if j not in weak]
        signs, w = two_level(len(weak))
        magnitude = np.array([self.variables[j].size for j in weak])
        rules = [self.variables[j].rule(orders[j]) for j in rest]
        nodes, weights = tensor([*rules, (signs * magnitude, w)])
        placed = np.empty_like(nodes)
        placed[:, rest + weak] = nodes
        return placed, weights

    def affordable(self, order: int, active: Sequence[int]) -> list[int]:
        """Orders up to that one for the `active` variables, the most important first, as far as
        there is room; one for the rest."""
        most = _MOST_NODES if self.problem.loss.name == "squared" else _FEWER_NODES
        orders = [1] * len(self.variables)
        for j in active:
            orders[j] = 2
        for raised, j in itertools.product([o for o in ORDERS if o <= order], active):
            if self.variables[j].of_step and raised > _MOST_STEP:
                continue
            tried = orders.copy()
            tried[j] = raised
            nodes = self.nodes(tried)[0]
            if len(nodes) <= _RAW_NODES and len(set(self.canonical(nodes))) <= most:
                orders = tried
        return orders


def law_of(problem: Problem, overlaps: str, seed: int, finite_size: bool = False) -> Law:
    """What is left to chance in a problem with these `overlaps` (`geometry_of`).

    finite_size : the labels of a training set too, which a limit of large sizes does not know
    """
    fixed = geometry_of(problem, overlaps, seed)
    if fixed.levels is not None:  # placements.py knows what chance there is
        return Law.fixed_at(problem, fixed)
    arrangement, variables = None, []
    if fixed.basis is None and problem.directions == "random":
        arrangement = arrangement_of(problem)
        variables = _overlap_variables(arrangement)
    if problem.gaussian_teacher and not drawn_length(problem, overlaps):
        variables.append(NORM)
    shares = shares_that_count(problem, fixed)
    strong, left_out = strong_directions(problem, fixed, shares)
    variables += [Variable("size", ("step", name)) for name in strong]
    if finite_size and surplus_deviation(problem, fixed) > 0:
        variables.append(Variable("balance", ("labels", "samples")))
    symmetries: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    if variables and problem.joint_link is None:
        symmetries = _symmetries(problem, fixed, arrangement, variables)
    if arrangement is not None and arrangement.indices:
        left_out += _overlap_effect(arrangement)
    return Law(
        problem, fixed, arrangement, tuple(variables), strong, symmetries,
        sum(shares.values()) if strong else 0.0, left_out,
    )  # fmt: skip


def _norm(value: float, dim: int) -> float:
    """|g|/√n of a standard Gaussian vector as a function of a standard Gaussian number: the
    approximation of its square by the cube of a Gaussian (Wilson and Hilferty)."""
    share = 2 / (9 * dim)
    return max(0.0, 1 - share + math.sqrt(share) * value) ** 1.5


def _overlap_effect(setting: Arrangement) -> float:
    """What chance overlaps of several indices with spikes may change of the errors, relative: they
    stay at typical values. A spike of strength θ changes the variance of a projection by
    θg²/n, whose mean is right; its spread and its correlations with others are not."""
    if not setting.drawn_teacher:
        return 0.0
    strongest = max((t for own in setting.strengths for t in own), default=0.0)
    return _INDEX_SPREAD * strongest / setting.dim


def _overlap_variables(setting: Arrangement) -> list[Variable]:
    """Overlaps that a draw may have otherwise than typical.

    Of a matrix of overlaps between several spikes of two components only the leading pair, and
    that where the leading spikes are special. Of the teacher's with spikes of equal strength, or
    of many strengths, only their length; of the means' with them nothing.
    """
    lengths = [math.prod(shape) for shape in setting.blocks.values()]
    starts = dict(zip(setting.blocks, itertools.accumulate([0, *lengths]), strict=False))
    leading, found = setting.leading, []
    for c, d in setting.pairs:
        name = f"pair {c}.{d}"
        if leading or setting.blocks[name] == (1, 1):
            names = f"spike {c + 1}.1", f"spike {d + 1}.1"
            found.append(Variable("centred" if leading else "size", names, (starts[name],)))
    sets, first = [], 0  # spikes of equal strength: the name of the first, places of all
    for c, t in enumerate(setting.strengths):
        counts = [len(list(same)) for _, same in itertools.groupby(t)]
        if leading and counts and counts[0] > 1:
            counts = [1, counts[0] - 1, *counts[1:]]
        if len(counts) > _MOST_SETS:
            counts = [1, len(t) - 1] if leading else [len(t)]
        for start, size in zip(itertools.accumulate([0, *counts]), counts, strict=False):
            places = tuple(range(first + start, first + start + size))
            sets.append((f"spike {c + 1}.{start + 1}", places))
        first += len(t)
    for corner in range(setting.corners):
        start = starts["means"] + corner * setting.spikes
        found += [
            Variable("sign", (f"mean {corner + 1}", name), (start + places[0],))
            for name, places in sets
            if len(places) == 1
        ]
    if setting.drawn_teacher and not setting.indices:
        start = starts["teacher"]
        for name, places in sets:
            if setting.tied is not None:  # fixed: not left to chance
                places = tuple(j for j in places if j != setting.tied)
            if not places:
                continue
            kind: Kind = "sign" if len(places) == 1 else "length"
            found.append(Variable(kind, ("teacher", name), tuple(start + j for j in places)))
        found += [
            Variable("sign", ("teacher", f"mean {j + 1}"), (start + setting.spikes + j,))
            for j in range(setting.corners)
        ]
    return found


def _symmetries(
    problem: Problem,
    fixed: Geometry,
    arrangement: Arrangement | None,
    variables: Sequence[Variable],
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Permutations and signs of the variables under which the problem stays what it is.

    The sign of a spike is no part of the problem, unless it is tied to another by an alignment or
    a teacher; where directions are given, unless it overlaps with something. Two components that
    differ in nothing may change places, and their antipodal means with them.
    """
    spikes = [name for name in fixed.directions if name.startswith("spike")]
    flips = [{name} for name in spikes if _is_free(name, fixed, arrangement)]
    together = arrangement is not None and arrangement.teacher in ("random", None)
    if arrangement is not None and arrangement.alignment and together:
        flips.append({name for name in spikes if name.endswith(".1")})
    count = len(variables)
    generators = []
    for flipped in flips:
        odd = [v.kind != "length" and len(flipped & set(v.between)) == 1 for v in variables]
        generators.append((tuple(range(count)), tuple(-1 if o else 1 for o in odd)))
    labels = problem.component_values or problem.links or ()
    alike = (
        problem.components == 2 and len(set(zip(fixed.weights.tolist(), labels, strict=True))) == 1
    )
    if arrangement is None or arrangement.tied is not None or arrangement.places:
        alike = False
    if alike and arrangement is not None and len(set(arrangement.strengths)) == 1:
        places = {frozenset(v.between): j for j, v in enumerate(variables)}
        swapped = [frozenset(_other_component(n) for n in v.between) for v in variables]
        if all(names in places for names in swapped):
            signs = tuple(-1 if any("mean" in n for n in v.between) else 1 for v in variables)
            generators.append((tuple(places[names] for names in swapped), signs))
    group = [(tuple(range(count)), (1,) * count)]
    for order, signs in generators[:_MOST_GENERATORS]:
        group += [
            (tuple(o[j] for j in order), tuple(t[j] * s for j, s in zip(order, signs, strict=True)))
            for o, t in group
        ]
    return tuple(group)


def _is_free(name: str, fixed: Geometry, arrangement: Arrangement | None) -> bool:
    """Whether a spike may change its sign alone."""
    if arrangement is not None:
        tied = arrangement.tied is not None and name == next(iter(fixed.directions))
        return not (tied or (arrangement.leading and name.endswith(".1")))
    unit = fixed.directions[name]
    others = [v for other, v in fixed.directions.items() if other != name]
    overlaps = np.stack([*others, *fixed.means]) @ unit
    return bool(np.abs(overlaps).max(initial=0.0) < _SAME)


def _other_component(name: str) -> str:
    if name.startswith("spike"):
        component, _, index = name.removeprefix("spike ").partition(".")
        return f"spike {3 - int(component)}.{index}"
    return name
