"""Special directions closed under a bulk Λ that is not flat: the theory of types by blocks.

For the whitened inputs Λ^{−½}x weights are Λ^{½}w, whose entries have the variances λ_a s_w². What
a neuron has along a direction q then says something about the rest of it, along Λq − (qᵀΛq)q,
unless directions are closed under Λ (docs/book/structure.md). They are closed here by a
rational Krylov space: q and (Λ + σ)⁻¹q for some shifts σ > 0, in the basis in which Λ is diagonal
(Ritz vectors). What the theory asks of Λ are resolvents at negative arguments, so few are enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.theory.directions.eigen import settled
from onegrad.theory.directions.geometry import BulkLevels, Geometry, assemble, drawn_geometry

_FEWEST = 3  # axes for each direction; errors are 1 % off with fewer
_MOST_AXES = 9
_LEADING = 0.01  # share of the trace from which on an eigenvector of Λ has an outlier of its own
_STRONG = 0.04  # the same share for errors: the rest of the bulk must have many coordinates
_FAINT = 0.01  # share of the trace in the smallest eigenvalues, which shifts need not resolve
_NEW = 1e-5  # part of a vector that is new to a Krylov space, over its length


class Closure(NamedTuple):
    """How finely directions are closed under Λ.

    order : axes for each direction; 1 leaves them as they are, which is wrong (the negative
        control)
    blocks : of the rest of the inputs, at most; a step has a direction in each of them
    leading : eigenvectors of Λ as axes of their own, at most: spectra have an outlier for each,
        and errors need the strongest, without which the rest of a preactivation would be the sum
        of a few terms and no Gaussian number
    share : of the trace that an eigenvector has to have for that
    """

    order: int = 4
    blocks: int = 6
    leading: int = 0
    share: float = _LEADING

    @classmethod
    def of(cls, trained: bool, spectra: bool) -> Closure:
        """Of a problem with or without a step."""
        if spectra:
            return cls(3, 4, 6) if trained else cls(3, 6, 6)
        return cls(3, 4, 2, _STRONG) if trained else cls(4, 6, 2, _STRONG)

    def room(self, directions: int) -> Closure:
        """For so many special directions; an error where there would be too many axes."""
        order = min(self.order, _MOST_AXES // max(directions, 1))
        if order < min(_FEWEST, self.order):
            raise AssumptionError(
                f"{directions} special directions on a bulk that is not flat (data.spectrum) are "
                "too many for types of neurons"
            )
        return self._replace(
            order=order, leading=min(self.leading, _MOST_AXES - order * directions)
        )


def closed_geometry(
    population: Population, teacher: Array | None, closure: Closure = Closure()
) -> Geometry:
    """The geometry of explicit vectors with axes that Λ maps to multiples of themselves.

    teacher : (n,), any length
    O(n·axes²); no n × n matrix.
    """
    plain = drawn_geometry(population, teacher)
    closure = closure.room(plain.rank)
    found = _closed(population, plain, closure)
    assert found.levels is not None
    less = []
    if closure.order > 1:
        less.append(closure._replace(order=closure.order - 1))
    if (fewer := closure.blocks - max(1, closure.blocks // 3)) < len(found.levels.values):
        less.append(closure._replace(blocks=max(fewer, 1)))
    coarser = tuple(_closed(population, plain, one) for one in less)
    return replace(found, levels=replace(found.levels, coarser=coarser))


def leading_eigenvectors(bulk: Array, most: int = _MOST_AXES, share: float = _LEADING) -> int:
    """How many of them may be axes of their own."""
    return min(most, int(np.sum(bulk > share * bulk.sum())))


def _closed(population: Population, plain: Geometry, closure: Closure) -> Geometry:
    """The `plain` geometry of the same population, closed."""
    bulk = population.bulk
    assert bulk is not None and plain.basis is not None
    count = leading_eigenvectors(bulk, closure.leading, closure.share)
    own = np.eye(population.dim, count)
    basis = _extended(own, plain.basis)
    for shift in _shifts(bulk[count:], closure.order - 1):
        basis = _extended(basis, plain.basis / (bulk + shift)[:, None])
    values, rotation = np.linalg.eigh(basis.T @ (bulk[:, None] * basis))
    values, basis = settled(values, basis @ rotation)
    white = population.whitened
    named = {name: basis.T @ (plain.basis @ v) for name, v in plain.directions.items()}
    named |= {f"eigenvector {a + 1}": basis[a] for a in range(own.shape[1])}
    found = assemble(
        population.dim, population.weights, white.means @ basis,
        [basis.T @ spikes for spikes in white.spikes], white.strengths, named, basis,
    )  # fmt: skip
    outside = np.maximum(1.0 - np.sum(basis**2, axis=1), 0.0)
    levels = BulkLevels(values, *_blocks(bulk, outside, closure.blocks))
    return replace(found, teacher=basis.T @ (plain.basis @ plain.teacher), levels=levels)


def typical_closed(
    population: Population, closure: Closure = Closure(), parts: Array | None = None
) -> Geometry:
    """The same for a teacher with equal parts along every eigenvector of Λ, √n|ξ_a| = 1, or with
    the given ones along the first; no spikes, no means."""
    xi = np.ones(population.dim)
    if parts is not None:
        xi[: len(parts)] = parts
    return replace(closed_geometry(population, xi, closure), basis=None)


def _shifts(bulk: Array, count: int) -> Array:
    """Geometrically between the eigenvalues that matter; none where all of them have axes."""
    if not bulk.size:
        return np.zeros(0)
    ascending = np.sort(bulk)
    low = ascending[int(np.searchsorted(np.cumsum(ascending), _FAINT * ascending.sum()))]
    return np.asarray(low * (ascending[-1] / low) ** (np.arange(1, count + 1) / (count + 1)))


def _extended(basis: Array, vectors: Array) -> Array:
    """An orthonormal basis with what the vectors add to its span, twice orthogonalised."""
    for vector in vectors.T:
        rest = vector
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > _NEW * np.linalg.norm(vector):
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return basis


def _blocks(bulk: Array, outside: Array, count: int) -> tuple[Array, Array]:
    """λ_j and p_j of the rest: the Gauss rule in λ^⅓. Numbers of coordinates and tr Λ are exact,
    with four blocks or more also tr Λ²; resolvents of spectra over many decades need the small
    eigenvalues, of which a rule in λ itself knows nothing."""
    if count == 1:  # one block: its eigenvalue is the mean
        return _gauss(bulk, outside, count)
    roots, counts = _gauss(np.cbrt(bulk), outside, count)
    return roots**3, counts


def _gauss(values: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Values and weights of the Gauss rule for Σ_a weights_a f(values_a), by Lanczos: exact for
    polynomials of degree 2·count − 1; fewer where there are no more different values."""
    total = float(weights.sum())
    vector = np.sqrt(weights / total)
    basis, diagonal, beside = [vector], [], []
    for _ in range(count):
        image = values * basis[-1]
        diagonal.append(float(image @ basis[-1]))
        for one in (*basis, *basis):
            image = image - (image @ one) * one
        size = float(np.linalg.norm(image))
        if len(diagonal) == count or size < _NEW * values.max():
            break
        beside.append(size)
        basis.append(image / size)
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes[::-1], total * vectors[0, ::-1] ** 2
