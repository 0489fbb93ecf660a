"""A concrete population: Gaussian components with covariance identity plus spikes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array

_CACHED = 1 << 16  # numbers drawn at once, so that means and spikes are added in the cache


@dataclass(frozen=True)
class Batch:
    """Some samples: inputs (m × n), labels (m), component of each (m)."""

    x: Array
    y: Array
    component: np.ndarray

    def __len__(self) -> int:
        return int(self.y.shape[0])


@dataclass(frozen=True)
class Population:
    """x ~ Σ_c weights[c]·N(means[c], I + Σ_i strengths[c][i]·γ_{c,i}γ_{c,i}ᵀ)  [demir2025, eq. 2].

    `spikes[c]` is n × r_c with orthonormal columns γ_{c,i}. Memory is O(n·Σ r_c): no n × n
    matrix exists anywhere.
    """

    weights: Array
    means: Array
    spikes: tuple[Array, ...]
    strengths: tuple[Array, ...]

    @property
    def dim(self) -> int:
        """n: number of inputs."""
        return int(self.means.shape[1])

    @property
    def components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def isotropic(self) -> bool:
        """Every component is N(0, I)."""
        flat = all(not np.any(strengths) for strengths in self.strengths)
        return flat and not np.any(self.means)

    @cached_property
    def mean_trace(self) -> float:
        """tr Σ̄ = Σ_c ρ_c tr Σ_c."""
        structure = [float(strengths.sum()) for strengths in self.strengths]
        return self.dim + float(self.weights @ structure)

    @cached_property
    def mean_covariance_norm(self) -> float:
        """‖Σ̄‖ (largest eigenvalue) of Σ̄ = Σ_c ρ_c Σ_c, from the small Gram matrix of the spikes."""
        scaled = [
            spikes * np.sqrt(weight * strengths)
            for weight, spikes, strengths in zip(
                self.weights, self.spikes, self.strengths, strict=True
            )
        ]
        stacked = np.hstack(scaled)
        if stacked.shape[1] == 0:
            return 1.0
        return 1.0 + float(np.linalg.eigvalsh(stacked.T @ stacked)[-1])

    def draw_components(self, count: int, rng: np.random.Generator, fixed: bool) -> np.ndarray:
        """Component of each sample: drawn, or in the exact proportions (rounded) and shuffled."""
        if not fixed:
            return rng.choice(self.components, size=count, p=self.weights)
        # largest remainders, so that the counts add up
        ideal = self.weights * count
        counts = np.floor(ideal).astype(int)
        order = np.argsort(counts - ideal, kind="stable")
        counts[order[: count - counts.sum()]] += 1
        return rng.permutation(np.repeat(np.arange(self.components), counts))

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        fixed: bool = False,
        block: int = 0,
        out: Array | None = None,
    ) -> Iterator[tuple[Array, np.ndarray]]:
        """Blocks (x, component) of `block` rows (all in one by default, which may go to `out`).

        Cost O(n·rank) per sample; memory one block. The numbers do not depend on the block size.
        """
        component = self.draw_components(count, rng, fixed)
        rank = max(spikes.shape[1] for spikes in self.spikes)
        along = rng.standard_normal((count, rank))
        step = max(1, _CACHED // max(1, self.dim))
        for start in range(0, count, block or max(count, 1)):
            rows = slice(start, start + (block or count))
            c, g = component[rows], along[rows]
            x = np.empty((len(c), self.dim)) if out is None else out[rows]
            for low in range(0, len(c), step):
                part = slice(low, low + step)
                rng.standard_normal(out=x[part])
                self._add_structure(x[part], c[part], g[part])
            yield x, c

    def _add_structure(self, x: Array, component: np.ndarray, along: Array) -> None:
        """Means and spikes on top of white rows: one product with all directions."""
        directions, roots = self._directions
        if not len(directions):
            return
        factors = np.zeros((len(x), len(directions)))
        start = 0
        for j, root in enumerate(roots):
            members = component == j
            stop = start + len(root)
            factors[members, start:stop] = along[members, : len(root)] * root
            factors[members, stop] = 1.0
            start = stop + 1
        x += factors @ directions

    @cached_property
    def _directions(self) -> tuple[Array, list[Array]]:
        """The spikes and the mean of each component, one after the other; roots of strengths."""
        if self.isotropic:
            return np.zeros((0, self.dim)), []
        parts = [np.vstack([s.T, mean]) for s, mean in zip(self.spikes, self.means, strict=True)]
        return np.vstack(parts), [np.sqrt(strengths) for strengths in self.strengths]
