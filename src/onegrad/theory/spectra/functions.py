"""What singular vectors of features are compared with: functions of the samples, and nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.polynomials import orthonormal_hermite
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.directions.eigen import SAME, eigen_axes
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.nodes.designs import scattered, tensor
from onegrad.theory.nodes.population import Nodes
from onegrad.theory.nodes.rules import QuadratureLevel, axis_order, halves, standard_nodes

DEGREES = 3  # highest Hermite polynomial of a projection that outliers are compared with
Moments = Mapping[str, tuple[float, float]]  # mean and standard deviation of projections


def sample_functions(
    projections: Mapping[str, Array], components: Mapping[str, Array], weights: Array
) -> dict[str, Array]:
    """The constant, the components and Hermite polynomials of the standardised projections, each
    less its mean, at nodes or samples with `weights` (S,) that sum to one: "constant",
    "component 1", "teacher", "teacher H2", …"""
    means = {name: float(weights @ t) for name, t in projections.items()}
    moments = {
        name: (means[name], math.sqrt(float(weights @ (t - means[name]) ** 2)))
        for name, t in projections.items()
    }
    found = _functions(projections, components, moments)
    constant = found.pop("constant", np.ones(len(weights)))
    return {"constant": constant} | {name: f - weights @ f for name, f in found.items()}


def _functions(
    projections: Mapping[str, Array], components: Mapping[str, Array], moments: Moments
) -> dict[str, Array]:
    """Not centred; components only where there are several."""
    size = len(next(iter([*projections.values(), *components.values()])))
    found = {"constant": np.ones(size)}
    if len(components) > 1:
        found |= {name: np.asarray(member, float) for name, member in components.items()}
    for name, t in projections.items():
        mean, spread = moments[name]
        if spread:
            table = orthonormal_hermite(DEGREES, (t - mean) / spread)
            found[name] = table[1]
            found |= {f"{name} H{degree}": table[degree] for degree in range(2, DEGREES + 1)}
    return found


def unit_functions(
    geometry: Geometry, directions: Mapping[str, Array], where: Nodes
) -> tuple[list[str], Array]:
    """Names, and rows u (F, S) with Σ_s u_fs √ω_s q_s = E ψ_f q/√E ψ_f² of functions q at nodes.

    directions : (r',) v_f by name, along the axes of `geometry` and others beside them with
        variance one; projections κ·v_f are Gaussian in each component

    Nodes know products of the ψ roughly: with 512 quasi-random points H₁ and H₃ of one projection
    have a cosine of .07. So q is written as Σ_g c_g ψ_g and a rest, by least squares at the nodes,
    and products of the ψ are those of the law: rows of C Ĝ⁺ψ, Ĝ and C the means of ψ_fψ_g at the
    nodes and over the law. Where nodes stand for spheres of directions, Ĝ is what there is.
    """
    present = np.flatnonzero(geometry.weights)
    along = {name: where.kappa @ v for name, v in directions.items()}
    if geometry.groups or not directions:
        members = {f"component {c + 1}": where.component == c for c in np.unique(where.component)}
        functions = sample_functions(along, members, where.weights)
        rows = np.array(list(functions.values())) * np.sqrt(where.weights)
        lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-150)
        return list(functions), rows / lengths
    law = _ProjectionLaw.of(geometry, directions)
    members = {f"component {c + 1}": where.component == c for c in present}
    at_nodes = _functions(along, members, law.moments)
    names, table = list(at_nodes), np.array(list(at_nodes.values())) * np.sqrt(where.weights)
    products = law.products(names)
    centre = np.eye(len(names))
    centre[1:, 0] = -products[1:, 0]  # the constant comes first
    exact = centre @ products
    size = np.sqrt(np.maximum(np.diag(exact @ centre.T), 1e-300))
    known = np.linalg.pinv(table @ table.T, rcond=SAME, hermitian=True)
    return names, (exact / size[:, None]) @ known @ table


@dataclass(frozen=True)
class _ProjectionLaw:
    """Projections κ·v_f of a mixture, Gaussian in each component that is present.

    weights : (C,); means : (C, F); roots : (C, F, r') with covariances R Rᵀ
    """

    names: list[str]
    components: list[str]
    weights: Array
    means: Array
    roots: Array

    @classmethod
    def of(cls, geometry: Geometry, directions: Mapping[str, Array]) -> _ProjectionLaw:
        along, rank = np.array(list(directions.values())), geometry.rank
        present = np.flatnonzero(geometry.weights)
        roots = np.tile(along, (len(present), 1, 1))
        roots[:, :, :rank] = along[:, :rank] @ geometry.roots[present]
        means = geometry.means[present] @ along[:, :rank].T
        components = [f"component {c + 1}" for c in present]
        return cls(list(directions), components, geometry.weights[present], means, roots)

    @property
    def moments(self) -> Moments:
        mean = self.weights @ self.means
        square = np.sum(self.roots**2, axis=2) + (self.means - mean) ** 2
        spread = np.sqrt(self.weights @ square)
        return dict(zip(self.names, zip(mean, spread, strict=True), strict=True))

    def products(self, names: list[str]) -> Array:
        """E f g of all functions: each needs two projections at most, and a Gauss rule in these is
        exact."""
        place, moments = {name: i for i, name in enumerate(names)}, self.moments
        found = np.zeros((len(names), len(names)))
        for pair in combinations_with_replacement(range(len(self.names)), 2):
            which = list(dict.fromkeys(pair))
            grid, mass = tensor([gauss_hermite(DEGREES + 1)] * len(which))
            parts = []
            for mean, rows in zip(self.means[:, which], self.roots[:, which], strict=True):
                values, turn = np.linalg.eigh(rows @ rows.T)
                parts.append(mean + grid @ (turn * np.sqrt(np.maximum(values, 0.0))).T)
            t, weights = np.concatenate(parts), np.kron(self.weights, mass)
            owner = np.repeat(np.arange(len(parts)), len(mass))
            members = {name: owner == c for c, name in enumerate(self.components)}
            table = _functions(
                {self.names[f]: t[:, i] for i, f in enumerate(which)}, members, moments
            )
            at, rows = [place[name] for name in table], np.array(list(table.values()))
            found[np.ix_(at, at)] = (rows * weights) @ rows.T
        return found


def strong_axis_nodes(
    geometry: Geometry, spread: Array, level: QuadratureLevel, points: int = 0
) -> Nodes:
    """Rules for fresh data in the axes of `spread` (r', r'), E[vvᵀ]/E[b²] over neurons.

    Along what neurons see most of, the step's direction, rules are on both sides of where their
    preactivations vanish: outliers of degree three there are 2 % off with 25 Gauss–Hermite nodes,
    and 4 % with 512 quasi-random points, which the weak axes need not have either. Labels have no
    part in spectra, so that no axis is kept for them.

    points : about so many for each component, with quasi-random places along the weak axes:
        singular vectors are compared with polynomials along any of them. 0: rules
    """
    count, single, parts = len(spread), geometry.single, []
    for c in np.flatnonzero(geometry.weights):
        root, mean = np.eye(count), np.zeros(count)
        root[:single, :single] = geometry.roots[c, :single, :single]
        mean[:single] = geometry.means[c, :single]
        values, vectors = eigen_axes(root @ spread @ root)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        bend = -float(vectors[:, 0] @ root @ spread @ mean) / max(float(values[0]), 1e-300)
        # from eight nodes on polynomials of degree six are exact on both sides
        rule = halves(max(axis_order(float(values[0]), level), 8), bend)
        if points:
            z, w = scattered((rule.nodes[0][:, None], rule.nodes[1]), count - 1, points)
        else:
            z, w = standard_nodes(values[1:], level, (rule,))
        parts.append((int(c), mean + z @ (root @ vectors).T, geometry.weights[c] * w))
    return Nodes.join(parts, level)
