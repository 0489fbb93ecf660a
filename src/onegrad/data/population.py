"""A concrete population: Gaussian components with a covariance of bulk plus spikes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array, like
from onegrad.compute.randomness import gaussian_rows
from onegrad.text.display import brief

_CACHED = 1 << 17  # numbers drawn at once: means and spikes are added while they are in the cache


@dataclass(frozen=True)
class Batch:
    """Some samples: inputs (m × n), labels (m), component of each (m)."""

    __repr__ = brief

    x: Array
    y: Array
    component: np.ndarray

    def __len__(self) -> int:
        return int(self.y.shape[0])


@dataclass(frozen=True)
class Population:
    """x ~ Σ_c weights[c]·N(means[c], Λ + Σ_i strengths[c][i]·γ_{c,i}γ_{c,i}ᵀ)  [demir2025, eq. 2]
    (eq. mixture).

    `spikes[c]` is n × r_c with columns γ_{c,i}, orthonormal unless the population is a whitened
    one. Λ = diag(bulk), the identity where `bulk` is None. Memory is O(n·Σ r_c): no n × n matrix
    exists anywhere.
    """

    __repr__ = brief

    weights: Array
    means: Array
    spikes: tuple[Array, ...]
    strengths: tuple[Array, ...]
    bulk: Array | None = None

    @property
    def dim(self) -> int:
        """n: number of inputs."""
        return int(self.means.shape[1])

    @property
    def components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @cached_property
    def _plain(self) -> bool:
        """Neither spikes nor means."""
        flat = all(not np.any(strengths) for strengths in self.strengths)
        return flat and not np.any(self.means)

    @cached_property
    def whitened(self) -> Population:
        """The law of u = Λ^{−½}x, whose bulk is the identity: spikes Λ^{−½}γ, means Λ^{−½}μ
        (eq. whitening).

        A projection wᵀx is (Λ^{½}w)ᵀu (`seen`), so whatever is known about mixtures with the
        identity holds for all others.
        """
        if self.bulk is None:
            return self
        spikes = tuple(spikes / self._root[:, None] for spikes in self.spikes)
        return Population(self.weights, self.means / self._root, spikes, self.strengths)

    def seen(self, rows: Array) -> Array:
        """Λ^{½}w of a direction or of each row (…, n): that direction for the whitened inputs."""
        return rows if self.bulk is None else rows * like(self._root, rows)

    def beside(self, columns: Array) -> Array:
        """What is left of a vector or of columns without spikes and means: no chance overlaps."""
        return outside(np.hstack([*self.spikes, self.means.T]), columns)

    def covariance_times(self, c: int, v: Array) -> Array:
        """Σ_c v of a vector."""
        spikes, strengths = self.spikes[c], self.strengths[c]
        bulk = v if self.bulk is None else self.bulk * v
        return np.asarray(bulk + spikes @ (strengths * (spikes.T @ v)))

    @cached_property
    def _root(self) -> Array:
        """Λ^{½} (n,)."""
        return np.ones(self.dim) if self.bulk is None else np.sqrt(self.bulk)

    @cached_property
    def mean_trace(self) -> float:
        """tr Σ̄ = Σ_c ρ_c tr Σ_c."""
        structure = [float(strengths.sum()) for strengths in self.strengths]
        bulk = self.dim if self.bulk is None else float(self.bulk.sum())
        return bulk + float(self.weights @ structure)

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
        top = 1.0 if self.bulk is None else float(self.bulk.max())
        if stacked.shape[1] == 0 or not np.any(stacked):
            return top
        if self.bulk is None:
            return top + float(np.linalg.eigvalsh(stacked.T @ stacked)[-1])
        return _largest_eigenvalue(self.bulk, stacked)

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

        Cost O(n·rank) per sample; memory one block. The numbers do not depend on the block size;
        they are rounded where `out` is of single precision.
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
                with gaussian_rows(rng, x[part]) as white:
                    if self.bulk is not None:
                        white *= self._root
                    self._add_structure(white, c[part], g[part])
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
        if self._plain:
            return np.zeros((0, self.dim)), []
        parts = [np.vstack([s.T, mean]) for s, mean in zip(self.spikes, self.means, strict=True)]
        return np.vstack(parts), [np.sqrt(strengths) for strengths in self.strengths]


def orthonormal(columns: Array) -> Array:
    """Gram–Schmidt from the left by a thin QR; the first column keeps its direction."""
    q, r = np.linalg.qr(columns)
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.asarray(q * signs[..., None, :])


def outside(span: Array, columns: Array) -> Array:
    """The part of a vector or of columns that is orthogonal to the columns of `span`."""
    basis = np.linalg.qr(span)[0]
    return np.asarray(columns - basis @ (basis.T @ columns))


def _largest_eigenvalue(bulk: Array, structure: Array) -> float:
    """The largest eigenvalue of diag(bulk) + SSᵀ, S = `structure` (n × r): the largest root μ of
    the secular equation ‖Sᵀ(μ − Λ)⁻¹S‖ = 1, whose left side falls in μ."""
    from scipy.optimize import brentq  # slow to import, and needed here alone

    top = float(bulk.max())
    below = top - bulk
    size = float(np.linalg.eigvalsh(structure.T @ structure)[-1])

    def excess(above: float) -> float:
        inner = structure.T @ (structure / (below + above)[:, None])
        return float(np.linalg.eigvalsh(inner)[-1]) - 1.0

    low = 1e-13 * top
    return top if excess(low) <= 0 else top + float(brentq(excess, low, size * (1 + 1e-9) + low))
