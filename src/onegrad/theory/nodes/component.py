"""Nodes of one Gaussian component: which axes κ has there, and the rule along each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.joint_rules import JointRule
from onegrad.theory.directions.eigen import SAME, eigen_axes, settled
from onegrad.theory.nodes.designs import scattered, tensor
from onegrad.theory.nodes.rules import (
    FEWEST,
    QuadratureLevel,
    Rule,
    axis_order,
    is_steep,
    label_rule,
    order_on_pieces,
    standard_nodes,
)
from onegrad.theory.nodes.steep import Steepness, sheared

_Nodes = tuple[Array, Array]
_Content = tuple[tuple[int, ...], bytes]  # shape and bytes of an array, as a key
_LABEL, _LABEL_DRAFT = 3e-4, 5e-3  # relative errors of the moments of labels
_LABEL_SHARE = 4  # labels of several indices may take this many times a level's nodes
_ROOM = 2  # a steep axis may multiply a level's nodes by this factor
_FEWEST_STEEP = 2  # fewest nodes on a piece of a steep axis
_SPLIT = 0.6  # nodes on each side of a break, as a share of a rule without breaks


@dataclass(frozen=True)
class Integrand:
    """What a rule over κ has to resolve.

    spread : (r, r) second moment E[vvᵀ]/b² over neurons: what the features see of κ
    label : (r,) direction ξ along which the label varies, or None; its axis comes first, with a
        rule that resolves the `link` (`label_rule`). (p, r) for a link of several indices: their
        axes come first (`joint_rule`)
    centre : (r,) where the components overlap, for labels that name the component: what is
        learned changes fast there, so the strongest axis is split at it
    further : importances of standard Gaussian axes beside κ, whose coordinates come last
    """

    spread: Array
    label: Array | None = None
    link: Activation | JointLink | None = None
    centre: Array | None = None
    further: tuple[float, ...] = ()


def component_nodes(
    mean: Array, root: Array, integrand: Integrand, level: QuadratureLevel
) -> tuple[Array, Array]:
    """Nodes (S, r + further axes) and weights (S,) for κ ~ N(mean, root²), root symmetric.

    Points of a curve and steps of a computation ask for the same ones: the last ones are kept.
    """
    arrays = (mean, root, integrand.spread, integrand.label, integrand.centre)
    return _kept_nodes(tuple(map(_content, arrays)), integrand.link, integrand.further, level)


def _content(array: Array | None) -> _Content | None:
    return None if array is None else (array.shape, np.asarray(array, float).tobytes())


@lru_cache(maxsize=128)
def _kept_nodes(
    arrays: tuple[_Content | None, ...],
    link: Activation | JointLink | None,
    further: tuple[float, ...],
    level: QuadratureLevel,
) -> _Nodes:
    mean, root, spread, label, centre = (
        None if part is None else np.frombuffer(part[1]).reshape(part[0]) for part in arrays
    )
    assert mean is not None and root is not None and spread is not None
    found = _component_nodes(mean, root, Integrand(spread, label, link, centre, further), level)
    for array in found:
        array.flags.writeable = False
    return found


def _component_nodes(
    mean: Array, root: Array, integrand: Integrand, level: QuadratureLevel
) -> _Nodes:
    """The label's axis comes first, then the others by what features see of them; where the
    strongest of these is steep, its rule follows the bend of the neurons (`sheared`)."""
    if isinstance(integrand.link, JointLink):
        return _joint_nodes(mean, root, integrand, level)
    seen, offset = root @ integrand.spread @ root, root @ integrand.spread @ mean
    first = _first_axis(mean, root, integrand, level)
    led = first.shape[1]
    axes, importances = _with_others(first, seen)
    pairs, offsets = axes.T @ seen @ axes, axes.T @ offset

    def leading(order: int) -> _Nodes:
        """Of the first axis, and of the steep one with that many nodes on a piece, 0: left out."""
        nodes: _Nodes = np.zeros((1, 0)), np.ones(1)
        if led:
            along = Steepness(float(pairs[0, 0]), float(offsets[0]))
            if order:
                along = along.beside(Steepness(float(pairs[1, 1]), float(offsets[1])), pairs[0, 1])
            z, w = _first_rule(mean, root, integrand, along, level).nodes
            nodes = z[:, None], w
        if not order:
            return nodes
        where = offsets[led] + nodes[0] @ pairs[:led, led]
        return sheared(nodes, float(pairs[led, led]), where, order)

    steep = level.label_nodes if _first_is_steep(importances, level) else 0
    nodes = leading(steep)
    others = np.concatenate([importances[1:], integrand.further])
    fewest = len(standard_nodes(others, replace(level, most=1))[1]) if steep else 1
    while steep and len(nodes[1]) * fewest > _ROOM * level.most:
        steep = steep - 1 if steep > _FEWEST_STEEP else 0
        nodes = leading(steep)
    importances = np.concatenate([importances[int(steep > 0) :], integrand.further])
    z, weights = _beside(nodes, importances, level, int(not steep))
    return _placed(mean, root @ axes, z), weights


def _with_others(first: Array, seen: Array) -> tuple[Array, Array]:
    """Axes (r, r) that begin with the `first`, the others by decreasing importance, and theirs."""
    count = first.shape[1]
    whole = np.linalg.svd(first)[0] if count else np.eye(len(first))
    beside = whole[:, count:]
    inner, rotation = np.linalg.eigh(beside.T @ seen @ beside)
    inner, others = settled(inner, beside @ rotation)
    axes = np.concatenate([first, others[:, ::-1]], axis=1)
    return axes, np.maximum(inner[::-1], 0.0)


def _beside(first: _Nodes, importances: Array, level: QuadratureLevel, quick: int) -> _Nodes:
    """Nodes of `first`, each with a rule along further axes."""
    if level.quasi:
        return scattered(first, len(importances), level.most)
    left = replace(level, most=max(level.most // len(first[1]), 1))
    return tensor([first, standard_nodes(importances, left, quick=quick)])


def _placed(mean: Array, axes: Array, z: Array) -> Array:
    """κ from standard coordinates along the axes; those of further axes stay."""
    mine, further = z[:, : len(mean)], z[:, len(mean) :]
    return np.concatenate([mean + mine @ axes.T, further], axis=1)


def _first_is_steep(importances: Array, level: QuadratureLevel) -> bool:
    return bool(len(importances)) and is_steep(float(importances[0]), level)


def _first_axis(mean: Array, root: Array, integrand: Integrand, level: QuadratureLevel) -> Array:
    """The axis along which labels vary or components are separated: (r, 1), or (r, 0) if none."""
    if integrand.label is not None and (scale := _label_scale(root, integrand)) > SAME:
        return np.asarray(root @ integrand.label / scale)[:, None]
    if integrand.centre is not None and len(mean):
        values, vectors = eigen_axes(root @ integrand.spread @ root)
        if axis_order(float(values[-1]), level) > 4:
            return np.asarray(vectors[:, -1:])
    return np.zeros((len(mean), 0))


def _label_scale(root: Array, integrand: Integrand) -> float:
    return 0.0 if integrand.label is None else float(np.linalg.norm(root @ integrand.label))


def _first_rule(
    mean: Array, root: Array, integrand: Integrand, along: Steepness, level: QuadratureLevel
) -> Rule:
    """Resolves labels, or where components meet, and features along that axis."""
    steep = is_steep(along.importance, level)
    further = along.breaks if steep else ()
    scale, more = _label_scale(root, integrand), level.label_nodes - FEWEST
    if scale > SAME:
        assert integrand.label is not None and isinstance(integrand.link, Activation)
        offset = float(integrand.label @ mean)
        tolerance = _LABEL if level.points else _LABEL_DRAFT
        rule = label_rule(integrand.link, offset, scale, tolerance, further)
        if level.split and not rule.breaks:
            rule = rule._replace(breaks=(round(-offset / scale, 12),))
    else:
        assert integrand.centre is not None
        first = _first_axis(mean, root, integrand, level)[:, 0]
        away = round(float(first @ np.linalg.solve(root, integrand.centre - mean)), 12)
        rule = Rule(2 + level.number, (away, *further))
    if steep:
        return rule._replace(order=max(rule.order, FEWEST) + more)
    needed = order_on_pieces(along.importance, _SPLIT if rule.breaks else 1.0, level)
    return rule._replace(order=max(rule.order + more, needed, 1))


def _joint_nodes(
    mean: Array, root: Array, integrand: Integrand, level: QuadratureLevel
) -> tuple[Array, Array]:
    """The same with an axis for each index of the label first."""
    assert integrand.label is not None and isinstance(integrand.link, JointLink)
    seen = root @ integrand.spread @ root
    tolerance = _LABEL if level.points else _LABEL_DRAFT
    rule = JointRule.of(integrand.link, integrand.label @ mean, integrand.label @ root, tolerance)
    rule = replace(rule, split=rule.split or level.split)
    importance = np.einsum("pi,ij,pj->p", rule.axes, seen, rule.axes)
    needs = [order_on_pieces(i, rule.part, level) for i in importance.tolist()]
    most = level.most * (_LABEL_SHARE if level.points else 1)
    first, share = rule.nodes(needs, level.label_nodes - FEWEST, most)
    axes, importances = _with_others(rule.axes.T, seen)
    importances = np.concatenate([importances, integrand.further])
    z, weights = _beside((first, share), importances, level, 1)
    return _placed(mean, root @ axes, z), weights
