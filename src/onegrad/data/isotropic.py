"""Isotropic inputs, x ~ N(0, I_n)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from onegrad.data.base import DataModel
from onegrad.data.population import Population
from onegrad.declared import Count


class Isotropic(DataModel):
    """Standard Gaussian inputs: the setting of Moniri et al. (2024)."""

    isotropic: ClassVar[bool] = True
    model: Literal["isotropic"] = "isotropic"
    dim: Count = Field(description="number of inputs n", examples=[1000])

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """N(0, I): nothing is drawn."""
        none = np.zeros((self.dim, 0))
        return Population(np.ones(1), np.zeros((1, self.dim)), (none,), (np.zeros(0),))
