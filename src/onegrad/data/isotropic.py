"""Isotropic inputs, x ~ N(0, I_n)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from onegrad.data.population import Population
from onegrad.sections import Count, Section


class Isotropic(Section):
    """Standard Gaussian inputs: the setting of Moniri et al. (2024)."""

    table: ClassVar[str] = "data"
    model: Literal["isotropic"] = "isotropic"
    dim: Count = Field(description="number of inputs n", examples=[1000])

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        none = np.zeros((self.dim, 0))
        return Population(np.ones(1), np.zeros((1, self.dim)), (none,), (np.zeros(0),))

    @property
    def fixed_counts(self) -> bool:
        return False
