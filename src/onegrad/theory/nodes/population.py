"""Nodes of a known population: points κ of fresh data, their weights and mean labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.directions.symmetry import exact_radius, radial_importance, radius
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.designs import quasi_gaussian
from onegrad.theory.nodes.rules import QuadratureLevel

_FEWEST = 64  # nodes of a component, however many there are


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes of the data: κ, component and weight of each."""

    kappa: Array  # (S, r') with the coordinates of further directions last
    component: np.ndarray  # (S,)
    weights: Array  # (S,)
    level: QuadratureLevel | None = None  # needed where the geometry has groups

    @staticmethod
    def join(parts: list[tuple[int, Array, Array]], level: QuadratureLevel) -> Nodes:
        """Component, nodes (S_c, r') and weights (S_c,), one part after the other."""
        owners = [np.full(len(weights), c) for c, _, weights in parts]
        kappa, weights = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        return Nodes(kappa, np.concatenate(owners), weights, level)


def data_nodes(
    problem: Problem, geometry: Geometry, spread: Array, level: QuadratureLevel
) -> Nodes:
    """Rules for fresh data, component after component.

    spread : (r', r') E[vvᵀ]/E[b²] over neurons (`NeuronTypes.spread`), whose coordinates the nodes
        get: the r of the geometry, then directions on which fresh data are N(0, 1)
    """
    single, axes = geometry.single, single_axes(geometry, len(spread))

    def padded(vector: Array) -> Array:
        none = np.zeros((*vector.shape[:-1], len(axes) - single))
        return np.concatenate([vector[..., :single], none], axis=-1)

    links, separate, joint = problem.links, problem.labels_separate, problem.joint_link
    label = None if links is None and joint is None else padded(geometry.teacher)
    centre = padded(geometry.weights @ geometry.means) if separate else None
    parts = []
    each = replace(level, most=max(level.most // int(np.count_nonzero(geometry.weights)), _FEWEST))
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        root = np.eye(len(axes))
        root[:single, :single] = geometry.roots[c, :single, :single]
        lengths = tuple(
            radial_importance(spread[a, a] / size * geometry.covariances[c, a, a], size, separate)
            for a, size in enumerate(geometry.groups, start=single)
        )
        link = joint if links is None else links[c]
        integrand = Integrand(spread[np.ix_(axes, axes)], label, link, centre, lengths)
        z, w = component_nodes(padded(geometry.means[c]), root, integrand, each)
        parts.append((c, _with_lengths(geometry, c, z, radius), weight * w))
    return Nodes.join(parts, level)


def quasi_nodes(
    geometry: Geometry,
    points: int,
    count: int,
    level: QuadratureLevel,
    slopes: Array | None = None,
) -> Nodes:
    """The same as at least `points` quasi-random points for each component, in `count` axes.

    The first axes of the points, which are the most even ones, go along the labels, then along the
    `slopes` of the outputs (C, count), in standard coordinates: signs jump.
    """
    z, w = quasi_gaussian(count, points)
    single, parts = geometry.single, []
    turned = count if slopes is not None and not geometry.groups else single
    teacher = np.atleast_2d(geometry.teacher)[:, :single]
    for c, weight in enumerate(geometry.weights):
        if weight:
            kappa, root = z.copy(), geometry.roots[c, :single, :single]
            first = np.zeros((len(teacher), turned))
            first[:, :single] = teacher @ root.T
            if turned > single and slopes is not None:
                first = np.concatenate([first[np.any(first, axis=1)], slopes[c, None]])
            turn = np.linalg.qr(first.T, mode="complete")[0]
            kappa[:, :turned] = z[:, :turned] @ turn.T
            kappa[:, :single] = geometry.means[c, :single] + kappa[:, :single] @ root
            parts.append((c, _with_lengths(geometry, c, kappa, exact_radius), weight * w))
    return Nodes.join(parts, level)


def output_slopes(geometry: Geometry, where: Nodes, outputs: Array) -> Array:
    """E[f z] of each component (C, r'), z the standard coordinates of its nodes: by Stein the mean
    slope of f there."""
    single = geometry.single
    found = np.zeros((len(geometry.weights), where.kappa.shape[1]))
    for c in np.unique(where.component):
        mine = where.component == c
        z = where.kappa[mine].copy()
        centred = z[:, :single] - geometry.means[c, :single]
        z[:, :single] = np.linalg.lstsq(geometry.roots[c, :single, :single], centred.T)[0].T
        found[c] = (where.weights[mine] * outputs[mine]) @ z
    return found


def single_axes(geometry: Geometry, count: int) -> list[int]:
    """Those of `count` axes that stand for one direction each: all but the groups' lengths."""
    return [*range(geometry.single), *range(geometry.rank, count)]


def _with_lengths(
    geometry: Geometry, component: int, z: Array, law: Callable[[Array, int], Array]
) -> Array:
    """κ from coordinates along single axes and, last, one Gaussian for each group's length.

    law : |Z_g| as a function of that Gaussian and g
    """
    if not geometry.groups:
        return z
    axes = single_axes(geometry, z.shape[1])
    kappa = np.empty_like(z)
    kappa[:, axes] = z[:, : len(axes)]
    for j, size in enumerate(geometry.groups):
        a = geometry.single + j
        scale = math.sqrt(float(geometry.covariances[component, a, a]))
        kappa[:, a] = scale * law(z[:, len(axes) + j], size)
    return kappa


def label_means(problem: Problem, geometry: Geometry, component: int, kappa: Array) -> Array:
    """ȳ_s = E[y | κ_s, c] = σ*_c(ξ·κ_s), or that of component c: (S,) at κ (S, r')."""
    if problem.joint_link is not None:
        return problem.joint_link(kappa[:, : geometry.rank] @ geometry.teacher.T)
    if problem.links is not None:
        return problem.links[component](kappa[:, : geometry.rank] @ geometry.teacher)
    assert problem.component_values is not None
    return np.full(len(kappa), problem.component_values[component])


def labels_at(problem: Problem, geometry: Geometry, where: Nodes) -> Array:
    """ȳ_s of every node (S,)."""
    labels = np.empty(len(where.weights))
    for c in range(len(geometry.weights)):
        mine = where.component == c
        labels[mine] = label_means(problem, geometry, c, where.kappa[mine])
    return labels


def with_flips(
    problem: Problem, means: Array, nodes: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Labels before Gaussian noise with rows and weights of nodes: ȳ itself, or where labels are
    flipped every row once with either sign, as ±1 has its two probabilities."""
    p = problem.label_flip
    if not p:
        return means, nodes, weights
    clean = means / problem.label_kept
    return (
        np.concatenate([clean, -clean]),
        np.concatenate([nodes, nodes]),
        np.concatenate([(1 - p) * weights, p * weights]),
    )
