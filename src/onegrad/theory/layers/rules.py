"""Rules for κ on a given first layer: the features at their nodes, and how fine they have to be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.problem import Problem
from onegrad.theory.layers.given import GivenLayer, twice
from onegrad.theory.layers.low_rank import table_of
from onegrad.theory.layers.matrix_errors import MatrixErrors, common_errors
from onegrad.theory.layers.matrix_responses import NodeBlock, Quadratics
from onegrad.theory.nodes.population import Nodes, data_nodes, labels_at
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for

_CLOSE = 0.01  # relative difference of errors by two rules at which no finer one is tried
_FINEST = 4  # number of the finest rule that is tried
_LARGEST_RULE = 6e6  # neurons × nodes of a rule beyond the second, at most
# A table has a form of low rank where its sides are this many times longer: for the squared loss,
# and for others, whose ten to thirty iterations use it
_WORTH = 3.0, 1.4
_CURVED = 10.0  # quadratic parts are corrections: they may lose this many times `_LEFT_OUT`
# A shorter rule is used if its errors, with one χ for all nodes, are this near the finest rule's
RESOLVED = 0.05
SCATTERED = replace(QuadratureLevel.at(0), most=600, quasi=True)  # points for responses
# The 1/n correction costs the cube of the nodes
_SHORTEST = replace(QuadratureLevel.draft(), most=128)
MOST_NODES = 400  # nodes of the correction's rule, each there with either length
_EVEN = replace(_SHORTEST, points=512, quasi=True)  # as short, for any number of weak axes
_LEFT_OUT = 1e-3  # part of Σ ω|T_s|² that low rank may lose, in units of the ridge


class Tried(NamedTuple):
    """The errors that the rule of a level gives, with one χ for all nodes, and that χ."""

    level: QuadratureLevel
    errors: MatrixErrors
    chi: float


def rules_tried(problem: Problem, layer: GivenLayer, first: Tried) -> list[Tried]:
    """Finer and finer rules until one more changes little; the last one is the finest.

    Products of rules along many strong axes are cut short, and then two levels of them may both be
    10 % off. Where the first two differ quasi-random points are tried as well; it goes on with
    whichever changes less from one level to the next.
    """
    tried = [first, tried_at(problem, layer, QuadratureLevel.at(2))]
    if last_apart(tried) <= _CLOSE:
        return tried
    points = [tried_at(problem, layer, quasi_level(number)) for number in (0, 1)]
    quasi = last_apart(points) < last_apart(tried)
    tried += points if quasi else []
    for number in range(3, _FINEST + 1):
        level = quasi_level(number - 1) if quasi else QuadratureLevel.at(number)
        large = len(nodes_of(problem, layer, level).weights) * problem.width > _LARGEST_RULE
        if last_apart(tried) <= _CLOSE or large:
            break
        tried.append(tried_at(problem, layer, level))
    return tried


def quasi_level(number: int) -> QuadratureLevel:
    """Of about 1200 quasi-random points, and of twice as many at every next level."""
    return replace(QuadratureLevel.at(number + 1), quasi=True)


def tried_at(problem: Problem, layer: GivenLayer, level: QuadratureLevel) -> Tried:
    """Without lengths of samples and quadratic parts."""
    return Tried(level, *common(problem, rule_of(problem, layer, level, lengths=False)))


def last_apart(tried: Sequence[Tried]) -> float:
    """Relative difference of the last two, the larger of test and train."""
    return apart(tried[-2].errors[:2], tried[-1].errors[:2])


def apart(coarse: Sequence[float], fine: Sequence[float]) -> float:
    """The largest relative difference."""
    return max((abs(a / b - 1) for a, b in zip(coarse, fine, strict=True) if b), default=0.0)


def common(problem: Problem, rule: Quadratics) -> tuple[MatrixErrors, float]:
    """Errors with one χ for all nodes, and χ."""
    return common_errors(rule.moments(), problem.samples, problem.effective_ridge)


def nodes_of(problem: Problem, layer: GivenLayer, level: QuadratureLevel) -> Nodes:
    geometry = layer.geometry
    return data_nodes(problem, geometry, layer.spread, level_for(problem, geometry, level))


def rule_of(
    problem: Problem, layer: GivenLayer, level: QuadratureLevel, lengths: bool = True
) -> Quadratics:
    """The features at the nodes of a level."""
    return quadratics(problem, layer, nodes_of(problem, layer, level), lengths)


def quadratics(
    problem: Problem, layer: GivenLayer, where: Nodes, lengths: bool = True
) -> Quadratics:
    """The features at these nodes, of samples of either length; without lengths and quadratic parts
    where rules are compared."""
    tables, nodes = (layer.tables(where), twice(where)) if lengths else (layer.at(where), where)
    left_out = _LEFT_OUT * problem.effective_ridge
    worth = _WORTH[problem.loss.name != "squared"]
    every = np.arange(len(nodes.weights))
    owners = [every] if len(layer.couplings) == 1 else [
        every[nodes.component == c] for c in range(len(layer.parts))
    ]  # fmt: skip
    blocks = []
    for group, mine in enumerate(owners):
        weights = nodes.weights[mine]
        square = max(float(np.mean(layer.parts[group].spread ** 2)), 1e-300)
        curvature = tables.curvature
        if curvature is not None:
            curved = table_of(curvature[:, mine], weights, _CURVED * left_out, worth)
        blocks.append(NodeBlock(
            group, table_of(tables.mean[:, mine], weights, left_out, worth),
            table_of(tables.slope[:, mine], weights, left_out / square, worth),
            tables.variance[:, mine], None if curvature is None else curved,
        ))  # fmt: skip
    labels = labels_at(problem, layer.geometry, nodes)
    order = np.concatenate(owners)
    return Quadratics(
        layer.couplings, blocks, nodes.weights[order], labels[order],
        problem.label_noise_variance, layer.squares if lengths else (),
    )  # fmt: skip


def shortest(
    problem: Problem, layer: GivenLayer, levels: Sequence[QuadratureLevel], finest: MatrixErrors,
    most: float = math.inf,
) -> tuple[Tried, float]:  # fmt: skip
    """The shortest rule whose errors, with one χ for all nodes, are close to the finest ones, or
    the closest; and how far off they are."""
    found: list[tuple[float, Tried]] = []
    nodes = [len(nodes_of(problem, layer, level).weights) for level in levels]
    for place in np.argsort(nodes, kind="stable"):
        if found and nodes[place] > most:
            break
        tried = tried_at(problem, layer, levels[place])
        found.append((apart(tried.errors[:2], finest[:2]), tried))
        if found[-1][0] <= RESOLVED:
            break
    off, tried = min(found, key=lambda one: one[0])
    return tried, off


def level_of_correction(
    problem: Problem, layer: GivenLayer, finest: MatrixErrors
) -> tuple[Tried, float]:
    """The rule for the 1/n correction, and how far off errors are there: strong axes that share a
    design of degree three may leave nothing to learn of a parabola, and a ratio that means
    nothing. Which one is close depends on the weak axes."""
    levels = (_SHORTEST, QuadratureLevel.draft(), QuadratureLevel.at(0), _EVEN)
    return shortest(problem, layer, levels, finest, MOST_NODES)
