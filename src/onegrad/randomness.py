"""Random streams: one seed, and every purpose has its own generator.

The stream of a purpose depends on the root seed, the number of the repetition and the purpose
alone. So models and activations share their draws, whichever of them are computed, in whatever
order and on whatever machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Positions are part of every stored number: append, never reorder.
PURPOSES = (
    "structure",
    "weights",
    "readout",
    "step-data",
    "train-data",
    "test-data",
    "hermite",
    "conditional-gaussian",
    "gaussian",
    "split",
    "companions",
    "companion-worlds",
)


@dataclass(frozen=True)
class Streams:
    """The generators of one repetition.

    >>> first, again = (Streams(0, 3).rng("weights").integers(1000) for _ in range(2))
    >>> int(first) == int(again)
    True
    """

    root: int
    repetition: int

    def rng(self, purpose: str) -> np.random.Generator:
        key = (1 + self.repetition, PURPOSES.index(purpose))
        return np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(self.root, spawn_key=key))
        )

    def shared_rng(self, purpose: str) -> np.random.Generator:
        """The same for every repetition of this root: what is drawn once and kept."""
        key = (0, PURPOSES.index(purpose))
        return np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(self.root, spawn_key=key))
        )
