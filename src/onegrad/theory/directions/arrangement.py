"""How spikes, means and teacher lie relative to each other by chance, and what they make."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.multi_index import spike_order, tilted
from onegrad.data.population import orthonormal
from onegrad.theory.directions.geometry import Geometry, assemble, reduced, stretched, teacher_names
from onegrad.theory.directions.gram import (
    aligned,
    appended,
    chance_overlaps,
    drawn_frames,
    largest_of_mean,
    sign_patterns,
    simplex,
    unit_vectors,
)

# Random frames that are drawn; a quarter of them above this number of spikes
_DRAWS, _FEW_SPIKES = 512, 16


@dataclass(frozen=True)
class Arrangement:
    """How spikes, means and teacher lie relative to each other, up to chance
    (eq. random-direction).

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
        """Number of label directions that are drawn at random."""
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
        (`chance_overlaps`). Between leading spikes that are aligned or make up the teacher 0:
        there the sign counts. Patterns of means and teacher over several spikes of a component
        are orthogonal: all of one sign they would add up.
        """
        if not self.chance:
            return np.zeros(sum(math.prod(shape) for shape in self.blocks.values()))
        found = [
            chance_overlaps(
                (len(self.strengths[c]), len(self.strengths[d])), pair=c * (c - 1) // 2 + d
            ).ravel()
            for c, d in self.pairs
        ]
        if self.leading:
            for pair in found:
                pair[0] = 0.0
        patterns = [sign_patterns(len(t), self.corners + 1) for t in self.strengths if t]
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
            return orthonormal(spikes).T
        raw = unit[len(unit) - self.indices :].T
        if self.cosines:
            raw = tilted(raw, spikes, np.array(self.cosines))
        return orthonormal(raw).T

    @cached_property
    def owners(self) -> list[slice]:
        """Places of each component's spikes."""
        starts = itertools.accumulate([0, *(len(t) for t in self.strengths)])
        return [slice(a, b) for a, b in itertools.pairwise(starts)]

    @cached_property
    def free(self) -> np.ndarray:
        """(spikes, spikes): overlaps for which nothing but a typical value stands, all of those
        between several spikes of two components, but for the leading ones where they are special
        (chance.py has variables for the others)."""
        found = np.zeros((self.spikes, self.spikes), bool)
        for c, d in self.pairs:
            if self.blocks[f"pair {c}.{d}"] != (1, 1):
                found[self.owners[c], self.owners[d]] = True
                found[self.owners[c].start, self.owners[d].start] = not self.leading
        return found | found.T

    def raw_gram(self, parts: Mapping[str, Array]) -> Array:
        """(spikes, spikes) Gram matrix of the spikes with these g, before any is aligned."""
        gram = np.eye(self.spikes)
        for c, d in self.pairs:
            block = parts[f"pair {c}.{d}"]
            block = block / np.sqrt(self.dim - 1 + block**2)
            gram[self.owners[c], self.owners[d]] = block
            gram[self.owners[d], self.owners[c]] = block.T
        return gram

    def mixed(self, gram: Array) -> Array:
        """The Gram matrix after the leading spikes have been aligned."""
        if not self.alignment:
            return gram
        leading = [own.start for own in self.owners if own.stop > own.start]
        return aligned(gram, np.array(leading, dtype=int), self.alignment)

    def geometry(self, g: Array | None = None) -> Geometry:
        """The mixture with these overlaps, typical ones by default."""
        return _arranged(self, tuple((self.typical if g is None else g).tolist()))


def _teacher_length(setting: Arrangement, raw: Array) -> float:
    """√(E 1/‖Σ̄‖) over the free overlaps of spikes, in units of 1/√‖Σ̄‖ where they are typical.

    Label power is proportional to 1/‖Σ̄‖, about which the overlap of the strongest spikes decides:
    at typical overlaps of several spikes of unequal strength it is up to 5 % off. Overlaps that
    are not typical stand for themselves.
    """
    if setting.teacher is None or not (setting.chance and setting.free.any()):
        return 1.0
    typical_raw = setting.raw_gram(setting.split(setting.typical))
    if not np.array_equal(raw[setting.free], typical_raw[setting.free]):
        return 1.0
    given = np.where(setting.free, 0.0, raw)
    typical = float(largest_of_mean(setting.mixed(raw), _shares(setting)))
    return math.sqrt(typical * _mean_inverse(setting, tuple(given.ravel().tolist())))


@lru_cache(maxsize=64)
def _mean_inverse(setting: Arrangement, given: tuple[float, ...]) -> float:
    """E 1/‖Σ̄‖ over the free overlaps of spikes, with the `given` others."""
    sizes = tuple(len(t) for t in setting.strengths)
    draws = _DRAWS if setting.spikes <= _FEW_SPIKES else _DRAWS // 4
    fixed = np.reshape(given, (setting.spikes, setting.spikes))
    frames = np.where(setting.free, drawn_frames(setting.dim, sizes, draws), fixed)
    if setting.alignment:
        frames = np.stack([setting.mixed(frame) for frame in frames])
    return float((1.0 / largest_of_mean(frames, _shares(setting))).mean())


def _shares(setting: Arrangement) -> Array:
    """(spikes,) ρ_cθ_{c,i}."""
    return np.concatenate(
        [rho * np.array(t) for rho, t in zip(setting.weights, setting.strengths, strict=True)]
    )


@lru_cache(maxsize=256)
def _arranged(setting: Arrangement, g: tuple[float, ...]) -> Geometry:
    """Unit vectors with the Gram matrix of the arrangement, and the mixture that they make."""
    dim, rho = setting.dim, np.array(setting.weights)
    theta = [np.array(t, float) for t in setting.strengths]
    parts = setting.split(np.array(g))
    raw = setting.raw_gram(parts)
    gram = setting.mixed(raw)
    # Each further random vector has the coordinates g/√(n − p + |g|²) in an orthonormal basis of
    # the p earlier ones; the symmetric root of their Gram matrix is one that treats them alike.
    corners = setting.corners
    gram = appended(gram, parts["means"], dim)
    if corners > 1:
        gram[-corners:, -corners:] = np.eye(corners)
    if setting.drawn_teacher:
        gram = appended(gram, parts["teacher"], dim)
        if setting.indices:
            gram[-setting.indices :, -setting.indices :] = np.eye(setting.indices)
        if setting.tied is not None:  # drawn directions are orthogonal to it
            gram[-1, setting.tied] = gram[setting.tied, -1] = 0.0
    unit = unit_vectors(gram, dim)
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
        mu = simplex(rho.size) @ unit[len(owners) : len(owners) + corners]
        mu *= setting.mean / np.linalg.norm(mu, axis=1, keepdims=True)
    gammas = [unit[own].T for own in setting.owners]
    found = reduced(assemble(dim, rho, mu, gammas, theta, named, None))
    return stretched(found, _teacher_length(setting, raw))
