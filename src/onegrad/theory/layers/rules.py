"""Rules for κ on a given first layer: the features at their nodes, and how fine they have to be."""

from __future__ import annotations

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
SCATTERED = replace(QuadratureLevel.at(0), most=300, quasi=True)  # points for responses
_SHORTER = 0.7  # share of the nodes up to which a shorter rule is tried instead
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
    products = [first, _at(problem, layer, QuadratureLevel.at(2))]
    if last_apart(products) <= _CLOSE:
        return products
    points = [_at(problem, layer, quasi_level(number)) for number in (0, 1)]
    numbers = range(3, _FINEST + 1)
    if last_apart(points) < last_apart(products):
        return products + _refined(problem, layer, points, [quasi_level(j - 1) for j in numbers])
    return _refined(problem, layer, products, [QuadratureLevel.at(j) for j in numbers])


def quasi_level(number: int) -> QuadratureLevel:
    """Of about 1200 quasi-random points, and of twice as many at every next level."""
    return replace(QuadratureLevel.at(number + 1), quasi=True)


def _refined(
    problem: Problem, layer: GivenLayer, tried: list[Tried], levels: Sequence[QuadratureLevel]
) -> list[Tried]:
    for level in levels:
        large = len(nodes_of(problem, layer, level).weights) * problem.width > _LARGEST_RULE
        if last_apart(tried) <= _CLOSE or large:
            break
        tried = [*tried, _at(problem, layer, level)]
    return tried


def _at(problem: Problem, layer: GivenLayer, level: QuadratureLevel) -> Tried:
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


def fewer_points(problem: Problem, layer: GivenLayer, coarse: Tried, finest: MatrixErrors) -> Tried:
    """Few quasi-random points instead of that rule, if they are fewer, and close to the finest."""
    where = nodes_of(problem, layer, SCATTERED)
    if len(where.weights) > _SHORTER * len(nodes_of(problem, layer, coarse.level).weights):
        return coarse
    rule = quadratics(problem, layer, where, lengths=False)
    found = Tried(SCATTERED, *common(problem, rule))
    return found if apart(found.errors[:2], finest[:2]) <= RESOLVED else coarse


def level_of_correction(
    problem: Problem, layer: GivenLayer, finest: MatrixErrors
) -> tuple[QuadratureLevel, float]:
    """The rule for the 1/n correction, and how far off errors are there: strong axes that share a
    design of degree three may leave nothing to learn of a parabola, and a ratio that means
    nothing. The shortest rule that is close; which one that is depends on the weak axes."""
    tried: list[tuple[float, QuadratureLevel]] = []
    levels = (_SHORTEST, QuadratureLevel.draft(), QuadratureLevel.at(0), _EVEN)
    rules = [(nodes_of(problem, layer, level), level) for level in levels]
    for where, level in sorted(rules, key=lambda one: len(one[0].weights)):
        if tried and len(where.weights) > MOST_NODES:
            break
        rule = quadratics(problem, layer, where, lengths=False)
        tried.append((apart(common(problem, rule)[0][:2], finest[:2]), level))
        if tried[-1][0] <= RESOLVED:
            break
    off, level = min(tried, key=lambda one: one[0])
    return level, off
