"""What fluctuates beside the fields of the free energy: which samples and neurons were drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array


class Second(NamedTuple):
    """A matrix diag(a) M diag(a) + B K Bᵀ that is not formed."""

    matrix: Array
    scale: Array
    seen: Array
    kernel: Array

    @property
    def diagonal(self) -> Array:
        through = np.einsum("sa,sa->s", self.seen @ self.kernel, self.seen)
        return np.asarray(self.scale**2 * self.matrix.diagonal() + through)

    def form(self, vector: Array) -> complex:
        """vᵀ times it times v."""
        scaled, seen = self.scale * vector, vector @ self.seen
        return complex(scaled @ self.matrix @ scaled + seen @ self.kernel @ seen)


@dataclass(frozen=True)
class Resampling:
    """Whose fluctuations count beside the fields: which samples were drawn, and which neurons.

    groups : (S,) nodes with the same number share a fixed number of samples: all of them, or
        those of a component where the counts of the components are fixed
    """

    groups: np.ndarray
    samples: bool = True
    neurons: bool = True

    def over_weights(self, weights: Array, second: Second) -> complex:
        """Tr[second (diag ω − Σ_g ω_g ω_gᵀ/|ω_g|)]: a multinomial draw within each group."""
        total = second.diagonal @ weights
        for group in np.unique(self.groups):
            mine = weights * (self.groups == group)
            total -= second.form(mine) / mine.sum()
        return complex(total)

    @staticmethod
    def over_counts(counts: Array, second: Second) -> complex:
        """Tr[second (diag c − c cᵀ/k)]."""
        return complex(second.diagonal @ counts - second.form(counts) / counts.sum())


def real_product(real: Array, other: Array) -> Array:
    """real @ other, without making complex numbers of the real ones."""
    if not np.iscomplexobj(other):
        return np.asarray(real @ other)
    found = np.empty((real.shape[0], other.shape[1]), complex)
    found.real, found.imag = real @ other.real, real @ other.imag
    return found
