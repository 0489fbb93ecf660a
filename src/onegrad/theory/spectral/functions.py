"""Functions of the samples that singular vectors of features are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.polynomials import orthonormal_hermite
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.geometry import Geometry
from onegrad.theory.nodes.population import Nodes

DEGREES = 3  # Hermite polynomials of a projection that outliers are compared with
_ORDER = DEGREES + 1  # nodes of a Gauss rule that knows products of two of them
_SAME = 1e-10  # squared singular values of functions that are combinations of others

Moments = Mapping[str, tuple[float, float]]  # mean and standard deviation of projections


def sample_functions(
    projections: Mapping[str, Array], components: Mapping[str, Array], weights: Array
) -> dict[str, Array]:
    """The constant, the components and Hermite polynomials of the standardised projections, each
    less its mean, at nodes or samples with `weights` (S,) that sum to one: "constant",
    "component 1", "teacher", "teacher H2", …"""
    found = _functions(projections, components, _moments(projections, weights))
    constant = found.pop("constant", np.ones(len(weights)))
    return {"constant": constant} | {name: f - weights @ f for name, f in found.items()}


@dataclass(frozen=True)
class ProjectionLaw:
    """Projections κ·v_f of a mixture, Gaussian in each component.

    directions : (F, r') v_f by name; weights : (C,) of the components
    means : (C, F); roots : (C, F, r') with covariances R Rᵀ
    """

    directions: Mapping[str, Array]
    weights: Array
    means: Array
    roots: Array

    @classmethod
    def of(cls, geometry: Geometry, directions: Mapping[str, Array]) -> ProjectionLaw:
        """Of directions along the axes of `geometry`, and others beside them with variance one."""
        along, rank = np.array(list(directions.values())), geometry.rank
        roots = np.tile(along, (len(geometry.weights), 1, 1))
        roots[:, :, :rank] = along[:, :rank] @ geometry.roots
        return cls(directions, geometry.weights, geometry.means @ along[:, :rank].T, roots)

    def units(self, where: Nodes) -> tuple[list[str], Array]:
        """Names, and rows u (F, S) with Σ_s u_fs √ω_s q_s = E ψ_f q/√E ψ_f² of functions q at
        nodes.

        Nodes know products of the ψ roughly: with 512 quasi-random points H₁ and H₃ of one
        projection have a cosine of .07. So q is written as Σ_g c_g ψ_g and a rest, by least squares
        at the nodes, and products of the ψ are those of the law: rows of C Ĝ⁺ψ, Ĝ and C the means
        of ψ_fψ_g at the nodes and over the law.
        """
        moments, present = self._moments(), np.flatnonzero(self.weights)
        members = {f"component {c + 1}": where.component == c for c in present}
        along = {name: where.kappa @ v for name, v in self.directions.items()}
        at_nodes = _functions(along, members, moments)
        names, table = list(at_nodes), np.array(list(at_nodes.values())) * np.sqrt(where.weights)
        products = self._products(names, moments)
        centre = np.eye(len(names))
        centre[1:, 0] = -products[1:, 0]  # the constant comes first
        exact = centre @ products
        size = np.sqrt(np.maximum(np.diag(exact @ centre.T), 1e-300))
        known = np.linalg.pinv(table @ table.T, rcond=_SAME, hermitian=True)
        return names, (exact / size[:, None]) @ known @ table

    def _moments(self) -> Moments:
        mean = self.weights @ self.means
        square = np.sum(self.roots**2, axis=2) + (self.means - mean) ** 2
        spread = np.sqrt(self.weights @ square)
        return dict(zip(self.directions, zip(mean, spread, strict=True), strict=True))

    def _products(self, names: list[str], moments: Moments) -> Array:
        """E f g of all functions: each needs two projections at most, and a Gauss rule in these is
        exact."""
        place = {name: i for i, name in enumerate(names)}
        found = np.zeros((len(names), len(names)))
        for pair in combinations_with_replacement(range(len(self.directions)), 2):
            table, weights = self._on_rule(list(dict.fromkeys(pair)), moments)
            at = [place[name] for name in table]
            values = np.array(list(table.values()))
            found[np.ix_(at, at)] = (values * weights) @ values.T
        return found

    def _on_rule(self, which: list[int], moments: Moments) -> tuple[dict[str, Array], Array]:
        """The functions of one or two projections at nodes of a Gauss rule, and its weights."""
        x, w = gauss_hermite(_ORDER)
        grid = np.array(np.meshgrid(*[x] * len(which))).reshape(len(which), -1)
        mass = np.prod(np.array(np.meshgrid(*[w] * len(which))).reshape(len(which), -1), axis=0)
        present = np.flatnonzero(self.weights)
        parts = []
        for c in present:
            rows = self.roots[c, which]
            values, turn = np.linalg.eigh(rows @ rows.T)
            root = turn * np.sqrt(np.maximum(values, 0.0))
            parts.append(self.means[c, which][:, None] + root @ grid)
        weights = np.concatenate([self.weights[c] * mass for c in present])
        owner = np.repeat(present, len(mass))
        members = {f"component {c + 1}": owner == c for c in present}
        t = np.concatenate(parts, axis=1)
        names = list(self.directions)
        named = {names[f]: t[i] for i, f in enumerate(which)}
        return _functions(named, members, moments), weights


def _moments(projections: Mapping[str, Array], weights: Array) -> Moments:
    found = {}
    for name, t in projections.items():
        mean = float(weights @ t)
        found[name] = mean, math.sqrt(float(weights @ (t - mean) ** 2))
    return found


def _functions(
    projections: Mapping[str, Array], components: Mapping[str, Array], moments: Moments
) -> dict[str, Array]:
    """Not centred."""
    found = {}
    if len(components) > 1:
        found = {name: np.asarray(member, float) for name, member in components.items()}
    for name, t in projections.items():
        mean, spread = moments[name]
        if spread == 0:
            continue
        table = orthonormal_hermite(DEGREES, (t - mean) / spread)
        for degree in range(1, DEGREES + 1):
            found[name if degree == 1 else f"{name} H{degree}"] = table[degree]
    size = len(next(iter([*projections.values(), *components.values()])))
    return {"constant": np.ones(size)} | found
