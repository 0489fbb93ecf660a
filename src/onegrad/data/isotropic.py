"""Gaussian inputs without special directions: x ~ N(0, I_n), or N(0, Λ)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from onegrad.data.bulk import ExponentField, LevelsField, ShareField, SpectrumField, WithBulk
from onegrad.data.population import Population
from onegrad.spec.fields import Count


class Isotropic(WithBulk):
    """Standard Gaussian inputs, the setting of Moniri et al. (2024); with a `spectrum` N(0, Λ)."""

    model: Literal["isotropic"] = "isotropic"
    dim: Count = Field(description="number of inputs n", examples=[1000])
    spectrum: SpectrumField = None
    exponent: ExponentField = None
    levels: LevelsField = None
    share: ShareField = None

    @property
    def isotropic(self) -> bool:
        return self.bulk_eigenvalues is None

    @property
    def bulk_alone(self) -> bool:
        return True

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """N(0, Λ): nothing is drawn."""
        none = np.zeros((self.dim, 0))
        return Population(
            np.ones(1), np.zeros((1, self.dim)), (none,), (np.zeros(0),), self.bulk_eigenvalues
        )
