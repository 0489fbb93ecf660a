"""How the special directions lie by chance: their typical overlaps, and any others.

Random directions in n dimensions overlap by g/√n with g ~ N(0, 1), and at finite n that counts:
‖Σ̄‖ depends on γ₁·γ₂, and labels on ξ·γ and ξ·μ (docs/theory.md, section 5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.base import DataModel
from onegrad.data.multi_index import in_order, spike_order, tilted
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.theory.closed import Closure, closed_geometry, typical_closed
from onegrad.theory.geometry import (
    RANK_TOLERANCE,
    Geometry,
    assemble,
    drawn_geometry,
    reduced,
    teacher_names,
)


def geometry_of(
    problem: Problem, overlaps: str = "auto", seed: int = 0, spectra: bool = False
) -> Geometry:
    """The special directions of a problem: those of a draw, or typical ones.

    overlaps : "drawn": spikes, means and teacher of the simulation's first repetition with that
        seed; "typical": `typical_geometry`; "auto": drawn where directions are fixed or orthogonal.
        A drawn geometry knows its `basis`, and problems with the same typical one share the object
    spectra : with leading eigenvectors of a bulk that is not flat among the axes (`Closure`)
    """
    data: Any = problem.data  # what is known is a mixture, or has no structure at all
    if not data.known:
        raise AssumptionError(
            f'the conditional theory needs a known population; data.model = "{data.model}" has '
            'the methods "semi-parametric" and "surrogate"'
        )
    bulk, closure = data.bulk_eigenvalues is not None, Closure.of(problem.trained, spectra)
    given = problem.directions == "fixed" or (problem.directions != "random" and not bulk)
    given = given or not _placed(data)
    if overlaps == "drawn" or (overlaps == "auto" and given):
        instance = problem.instance(Streams(seed, 0))
        labelled = problem.links is not None or problem.joint_link is not None
        teacher = instance.teacher.direction if labelled else None
        own = problem.gaussian_teacher and drawn_length(problem, overlaps)
        if bulk and not own:
            return closed_geometry(instance.population, teacher, closure)
        if not bulk:
            return drawn_geometry(instance.population, teacher, own)
    if bulk and data.bulk_alone and not (problem.joint_link or problem.gaussian_teacher):
        return typical_closed(problem.instance(0).population, closure)
    return arrangement_of(problem).geometry()


def drawn_length(problem: Problem, overlaps: str) -> bool:
    """Whether a Gaussian teacher has the norm of one draw, not of their law."""
    return overlaps == "drawn" or problem.directions == "fixed"


def _placed(data: DataModel) -> bool:
    """Whether the law by which spikes and means are placed is known."""
    return data.bulk_alone or data.relative_strengths is not None


def _check_flat(problem: Problem) -> None:
    if problem.data.bulk_eigenvalues is not None:
        raise AssumptionError(
            "spikes, means or several indices have no typical places on a bulk that is not flat "
            '(data.spectrum); use overlaps = "drawn" or method = "layer"'
        )
    if not _placed(problem.data):
        raise AssumptionError(
            f'data.model = "{problem.data.model}" does not state the law of its spikes and means, '
            'so that nothing is typical; use overlaps = "drawn"'
        )


def geometry_with(problem: Problem, relative: Sequence[Array] | None) -> Geometry:
    """Typical directions of a known population, with these strengths over θ of its spikes."""
    return _arrangement_with(problem, relative).geometry()


def arrangement_of(problem: Problem) -> Arrangement:
    """The law of the directions of a known population."""
    _check_flat(problem)
    data: Any = problem.data
    return _arrangement_with(problem, None if data.isotropic else data.relative_strengths)


def _arrangement_with(problem: Problem, relative: Sequence[Array] | None) -> Arrangement:
    data: Any = problem.data
    along: Any = getattr(problem.labels, "direction", None)
    along = "random" if problem.gaussian_teacher else along
    cosine = getattr(problem.labels, "cosine", None)
    along = along if cosine is None else cosine
    indices, cosines = getattr(problem.labels, "indices", 0), getattr(problem.labels, "cosines", ())
    if relative is None:
        return Arrangement(problem.dim, (1.0,), ((),), teacher=along, indices=indices)
    strengths = tuple(tuple((problem.spread * s).tolist()) for s in relative)
    return Arrangement(
        problem.dim, data.weights, strengths, data.alignment,
        data.mean, along, problem.directions != "orthogonal", indices, cosines or (),
        data.centres or (),
    )  # fmt: skip


@dataclass(frozen=True)
class Arrangement:
    """How spikes, means and teacher lie relative to each other, up to chance.

    Spikes are orthonormal within a component; `strengths` has a tuple for each. The components'
    leading spikes have the cosine `alignment` before chance. Component means have norm `mean` and
    point to the corners of a regular simplex, ±μ for two components: `corners` directions span
    them. The teacher is random, along the sum of the leading spikes, or
    at a given cosine to the first of them and otherwise random. Labels of several `indices` have as
    many orthogonal directions: random, along the first spikes, or at `cosines` to them.
    `chance=False`: random directions are orthogonal. Means may be placed freely instead, at these
    coordinates along as many orthonormal directions: a row of `places` for each component.

    Random directions overlap by about g/√n, g ~ N(0, 1) independent. An arrangement lists those
    g as blocks of a vector, in the order of `blocks`; `geometry` makes the mixture that has them.
    """

    dim: int
    weights: tuple[float, ...]
    strengths: tuple[tuple[float, ...], ...]
    alignment: float = 0.0
    mean: float = 0.0
    teacher: Literal["random", "spikes"] | float | None = "random"
    chance: bool = True
    indices: int = 0
    cosines: tuple[float, ...] = ()
    places: tuple[tuple[float, ...], ...] = ()

    @property
    def spikes(self) -> int:
        return sum(len(t) for t in self.strengths)

    @property
    def corners(self) -> int:
        """Directions that the means span: one for one component, else one fewer than there are;
        as many as there are coordinates where they are placed freely."""
        if self.places:
            return len(self.places[0])
        return max(1, len(self.weights) - 1) if self.mean else 0

    @property
    def drawn_teacher(self) -> bool:
        """Whether a direction of the teacher's own is drawn."""
        return self.teacher == "random" or isinstance(self.teacher, float)

    @property
    def tied(self) -> int | None:
        """The spike to which the teacher has a given cosine, if it has one."""
        return 0 if isinstance(self.teacher, float) and self.spikes else None

    @property
    def leading(self) -> bool:
        """Whether the leading spikes are special: aligned, or the teacher's."""
        return bool(self.alignment) or self.teacher == "spikes"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of components (c, d < c) whose spikes overlap by chance."""
        sizes = [len(t) for t in self.strengths]
        return [(c, d) for c in range(len(sizes)) for d in range(c) if sizes[c] and sizes[d]]

    @property
    def _rows(self) -> int:
        """Directions of labels that are drawn."""
        return max(1, self.indices) if self.drawn_teacher else 0

    @cached_property
    def blocks(self) -> dict[str, tuple[int, ...]]:
        """Shapes of g: a matrix for each pair of components, means × spikes, the teacher's row."""
        sizes = [len(t) for t in self.strengths]
        found: dict[str, tuple[int, ...]] = {
            f"pair {c}.{d}": (sizes[c], sizes[d]) for c, d in self.pairs
        }
        found["means"] = (self.corners, self.spikes)
        found["teacher"] = (self._rows, self.spikes + self.corners)
        return found

    def split(self, g: Array) -> dict[str, Array]:
        """g block by block."""
        ends = np.cumsum([math.prod(shape) for shape in self.blocks.values()])
        parts = np.split(g, ends[:-1])
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.blocks.items(), parts, strict=True)
        }

    @cached_property
    def typical(self) -> Array:
        """One typical g: 1, the root mean square, because E y² depends on squares.

        Between spikes of two components E|N(0,1)| = √(2/π), because ‖Σ̄‖ depends on the size; or
        where there are several a matrix with the singular values of a typical one
        (`_chance_overlaps`). Between leading spikes that are aligned or make up the teacher 0:
        there the sign counts. Patterns of means and teacher over several spikes of a component
        are orthogonal: all of one sign they would add up.
        """
        if not self.chance:
            return np.zeros(sum(math.prod(shape) for shape in self.blocks.values()))
        found = [
            _chance_overlaps(
                (len(self.strengths[c]), len(self.strengths[d])), pair=c * (c - 1) // 2 + d
            ).ravel()
            for c, d in self.pairs
        ]
        if self.leading:
            for pair in found:
                pair[0] = 0.0
        patterns = [_patterns(len(t), self.corners + 1) for t in self.strengths if t]
        rows = np.concatenate(patterns, axis=1) if patterns else np.ones((self.corners + 1, 0))
        found.append(rows[1:].ravel())
        if self.indices and self.drawn_teacher:
            found.append(self._typical_rows.ravel())
        elif self.drawn_teacher:
            found += [rows[0], np.ones(self.corners)]
        return np.concatenate(found)

    @property
    def _typical_rows(self) -> Array:
        """Of several indices: ±1 with spikes and means, in patterns that are as good as orthogonal,
        because labels depend on the overlaps' products, which have either sign."""
        count = self.spikes + self.corners
        rows = np.array([[(-1.0) ** (i & j).bit_count() for j in range(count)]
                         for i in range(self.indices)])  # fmt: skip
        if self.cosines:
            rows[:, list(self._tied_spikes)] = 0.0
        return rows.reshape(self.indices, count)

    @property
    def _tied_spikes(self) -> list[int]:
        """Places of the spikes that the indices have to do with."""
        sizes = [len(t) for t in self.strengths]
        starts = np.cumsum([0, *sizes])
        return [int(starts[c] + i) for c, i in spike_order(sizes)[: self.indices]]

    def index_vectors(self, unit: Array) -> Array:
        """The label's directions (indices, ·), from the unit vectors of all that was drawn."""
        spikes = unit[self._tied_spikes].T
        if self.teacher == "spikes":
            return in_order(spikes).T
        raw = unit[len(unit) - self.indices :].T
        if self.cosines:
            raw = tilted(raw, spikes, np.array(self.cosines))
        return in_order(raw).T

    def geometry(self, g: Array | None = None) -> Geometry:
        """The mixture with these overlaps, typical ones by default."""
        return _arranged(self, tuple((self.typical if g is None else g).tolist()))


@lru_cache(maxsize=256)
def _arranged(setting: Arrangement, g: tuple[float, ...]) -> Geometry:
    """Unit vectors with the Gram matrix of the arrangement, and the mixture that they make."""
    dim, rho = setting.dim, np.array(setting.weights)
    theta = [np.array(t, float) for t in setting.strengths]
    parts = setting.split(np.array(g))
    starts = np.cumsum([0, *(t.size for t in theta)])
    own = [slice(a, b) for a, b in itertools.pairwise(starts)]
    gram = np.eye(setting.spikes)
    for c, d in setting.pairs:
        block = parts[f"pair {c}.{d}"]
        block = block / np.sqrt(dim - 1 + block**2)
        gram[own[c], own[d]], gram[own[d], own[c]] = block, block.T
    if setting.alignment:
        gram = _aligned(gram, starts[:-1][[t.size > 0 for t in theta]], setting.alignment)
    # Each further random vector has the coordinates g/√(n − p + |g|²) in an orthonormal basis of
    # the p earlier ones; the symmetric root of their Gram matrix is one that treats them alike.
    corners = setting.corners
    gram = _appended(gram, parts["means"], dim)
    if corners > 1:
        gram[-corners:, -corners:] = np.eye(corners)
    if setting.drawn_teacher:
        gram = _appended(gram, parts["teacher"], dim)
        if setting.indices:
            gram[-setting.indices :, -setting.indices :] = np.eye(setting.indices)
        if setting.tied is not None:  # what is drawn is orthogonal to it
            gram[-1, setting.tied] = gram[setting.tied, -1] = 0.0
    unit = _unit_vectors(gram, dim)
    owners = [(c, i) for c, t in enumerate(theta) for i in range(t.size)]
    named = {f"spike {c + 1}.{i + 1}": unit[p] for p, (c, i) in enumerate(owners)}
    if setting.indices:
        named |= teacher_names(setting.index_vectors(unit).T)
    elif setting.tied is not None and isinstance(setting.teacher, float):
        cosine = setting.teacher
        named["teacher"] = cosine * unit[setting.tied] + math.sqrt(1 - cosine**2) * unit[-1]
    elif setting.drawn_teacher:
        named["teacher"] = unit[-1]
    elif setting.teacher == "spikes":
        named["teacher"] = np.sum([unit[p] for p, (_, i) in enumerate(owners) if i == 0], axis=0)
    mu = np.zeros((rho.size, unit.shape[1]))
    if setting.places:
        mu = np.array(setting.places) @ unit[len(owners) : len(owners) + corners]
    elif corners:
        mu = _simplex(rho.size) @ unit[len(owners) : len(owners) + corners]
        mu *= setting.mean / np.linalg.norm(mu, axis=1, keepdims=True)
    gammas = [unit[mine].T for mine in own]
    return reduced(assemble(dim, rho, mu, gammas, theta, named, None))


def typical_geometry(
    dim: int,
    weights: tuple[float, ...],
    strengths: tuple[tuple[float, ...], ...],
    *,
    alignment: float = 0.0,
    mean: float = 0.0,
    teacher: Literal["random", "spikes"] | float | None = "random",
    chance: bool = True,
) -> Geometry:
    """The geometry of an `Arrangement` at typical overlaps: one point of their law.

    The mean over draws is another thing where overlaps count: chance.py averages over them.
    """
    return Arrangement(dim, weights, strengths, alignment, mean, teacher, chance).geometry()


def _aligned(gram: Array, leading: np.ndarray, alignment: float) -> Array:
    """The Gram matrix of the spikes once the leading ones, raw with this Gram matrix, are mixed.

    As `Mixture.population` draws them: leading spikes are mixed by the symmetric root of the
    matrix with `alignment` off its diagonal, and the others made orthogonal to their own leading
    one, which leaves them √(1 − cos²) of an overlap with another component's.
    """
    count = len(leading)
    mixing = np.full((count, count), alignment)
    np.fill_diagonal(mixing, 1.0)
    values, vectors = np.linalg.eigh(mixing)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    mixed = root @ gram[np.ix_(leading, leading)] @ root
    scale = np.sqrt(np.maximum(mixed.diagonal(), 1e-300))
    result = gram.copy()
    result[leading] *= math.sqrt(1 - alignment**2)
    result[:, leading] *= math.sqrt(1 - alignment**2)
    result[np.ix_(leading, leading)] = mixed / np.outer(scale, scale)
    np.fill_diagonal(result, 1.0)
    return result


def _appended(gram: Array, g: Array, dim: int) -> Array:
    """The Gram matrix with further unit vectors, rows of g for each of them."""
    lengths = np.sqrt(max(1, dim - len(gram)) + (g**2).sum(axis=1, keepdims=True))
    coordinates = g / lengths
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    across = coordinates @ root
    return np.block([[gram, across.T], [across, np.eye(len(coordinates))]])


def _unit_vectors(gram: Array, dim: int) -> Array:
    """Rows with this Gram matrix, in as many coordinates as are needed."""
    values, vectors = np.linalg.eigh(gram)
    _check_room(not len(gram) or values[0] >= -RANK_TOLERANCE, len(gram), dim)
    kept = values > RANK_TOLERANCE
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _check_room(enough: bool, count: int, dim: int) -> None:
    if not enough:
        raise AssumptionError(
            f"no {count} directions in dimension {dim} have these typical overlaps. Use "
            'directions = "orthogonal", a larger dim, or the overlaps of an actual draw.'
        )


def _simplex(components: int) -> Array:
    """Corners of a regular simplex (components × dimensions of its span), any length."""
    if components < 3:
        return np.array([[1.0], [-1.0]][:components])
    values, vectors = np.linalg.eigh(np.eye(components) - 1.0 / components)
    return np.asarray(vectors[:, values > 0.5])


def _patterns(size: int, count: int) -> Array:
    """`count` rows over `size` spikes, of mean square 1 and orthogonal as far as there is room."""
    if size == 1:
        return np.ones((count, 1))
    raw = np.random.default_rng([20250118, size]).standard_normal((size, max(size, count)))
    raw[:, 0] = 1.0
    basis = np.linalg.qr(raw)[0] * math.sqrt(size)
    return np.asarray((basis * np.sign(basis[0])).T[np.arange(count) % size])


def _chance_overlaps(shape: tuple[int, int], pair: int) -> Array:
    """√n·γ_i·γ'_j of two random sets of orthonormal directions: typical, nothing left to chance.

    One of each: the mean √(2/π) of |N(0,1)|. Else the singular vectors of one fixed draw (another
    one for each pair of components) with typical singular values, which decide about ‖Σ̄‖:
    quantiles of the quarter-circle law, within 2 % of their means from 2 × 2 on; q·Q² + p − q
    for the squares of p × q, p > q.
    """
    if shape == (1, 1):
        return np.full(shape, math.sqrt(2 / math.pi))
    few, many = min(shape), max(shape)
    drawn = np.random.default_rng([20250117, pair]).standard_normal(shape)
    left, _, right = np.linalg.svd(drawn, full_matrices=False)
    half = np.linspace(0.0, math.pi / 2, 2001)  # Q = 2 sin(half), probability (2h + sin 2h)/π
    law = (2 * half + np.sin(2 * half)) / math.pi
    quantiles = 2 * np.sin(np.interp(1 - (np.arange(few) + 0.5) / few, law, half))
    return np.asarray((left * np.sqrt(few * quantiles**2 + many - few)) @ right)
