"""One draw of a population together with its labels, to take samples from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Rng, generator
from onegrad.data.label_base import Teacher, flipped
from onegrad.data.label_power import label_variance
from onegrad.data.population import Batch, Population
from onegrad.text.display import brief


@dataclass(frozen=True)
class Instance:
    """One draw of what is random about the population itself: directions and teacher.

    fixed_counts : every sample has exactly the components' shares, instead of drawn ones
    """

    __repr__ = brief

    population: Population
    teacher: Teacher
    fixed_counts: bool = False

    @cached_property
    def label_variance(self) -> float:
        """Var y, exactly: the test error of the best constant."""
        return label_variance(self.population, self.teacher)

    def sample(self, count: int, rng: Rng, out: Array | None = None) -> Batch:
        """`count` samples: inputs x (m × n, in `out` if given), noisy labels y (m), component (m).

        The seed of a simulation gives the training samples of its first repetition.
        """
        rng = generator(rng, "train-data")
        ((x, component),) = self.population.sample(count, rng, self.fixed_counts, out=out)
        outputs = self.teacher.outputs
        noise = rng.standard_normal(count if outputs == 1 else (count, outputs))
        flip = self.teacher.flip
        signs = flipped(np.ones(count), flip, rng) if flip else 1.0
        return Batch(x, self.teacher.labels(x, component, noise, signs), component)
