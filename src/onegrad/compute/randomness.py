"""Random streams: one seed, and every purpose has its own generator.

The stream of a purpose depends on the root seed, the number of the repetition and the purpose
alone. So models and activations share their draws, whichever of them are computed, in whatever
order and on whatever machine. What a theory draws has streams of its own, which no simulation uses:
chance that both shared would cancel where they are compared.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
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
    "control-teachers",
    "control-instances",
    "later-step-data",
    "class-noise",
)

# What makes a data set: the same in all repetitions if only the network is drawn anew.
DATA_PURPOSES = ("structure", "step-data", "train-data", "test-data", "split")

_THEORY = 1  # last part of the key of a theory's streams; those of a simulation have no such part

Seed = int | np.random.SeedSequence | np.random.Generator


def root_seed(rng: Seed) -> int:
    """The root of all streams: a whole number itself, or one taken from a sequence or generator.

    >>> root_seed(7), root_seed(np.random.SeedSequence(7)) == root_seed(np.random.SeedSequence(7))
    (7, True)
    """
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63 - 1))
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0] >> 1)
    return int(rng)


@dataclass(frozen=True)
class Streams:
    """The generators of one repetition: of the root seed's repetitions 0, 1, …, this one.

    theory : of what a theory draws. What is drawn once and kept (`shared_rng`), such as directions
        that are fixed, belongs to the problem and is the same for the theory and the simulation

    >>> first, again = (Streams(0, 3).rng("weights").integers(1000) for _ in range(2))
    >>> int(first) == int(again)
    True
    """

    root: int
    repetition: int
    shared: tuple[str, ...] = ()  # purposes that all repetitions have in common
    theory: bool = False

    def rng(self, purpose: str) -> np.random.Generator:
        """The generator of a purpose in this repetition, from its beginning."""
        return self._generator(0 if purpose in self.shared else 1 + self.repetition, purpose)

    def shared_rng(self, purpose: str) -> np.random.Generator:
        """Streams that all repetitions of this root share, for what is drawn once and kept."""
        return self._generator(0, purpose)

    def _generator(self, place: int, purpose: str) -> np.random.Generator:
        key: tuple[int, ...] = (place, PURPOSES.index(purpose))
        if self.theory and place > 0:
            key = (*key, _THEORY)
        return np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(self.root, spawn_key=key))
        )


Rng = int | np.random.SeedSequence | np.random.Generator | Streams


def generator(rng: Rng, purpose: str, shared: bool = False) -> np.random.Generator:
    """The generator that an argument `rng` stands for.

    A generator is used as it is and goes on from where it was; a seed sequence makes one. A whole
    number is the root of a simulation: it stands for the stream of `purpose` in repetition 0, so
    that the same number gives the same draw. With `shared`, streams are those that all repetitions
    of a root have in common.

    >>> first, again = generator(7, "weights"), Streams(7, 0).rng("weights")
    >>> int(first.integers(1000)) == int(again.integers(1000))
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence):
        return np.random.Generator(np.random.SFC64(rng))
    streams = rng if isinstance(rng, Streams) else Streams(operator.index(rng), 0)
    return streams.shared_rng(purpose) if shared else streams.rng(purpose)


@contextmanager
def gaussian_rows(rng: np.random.Generator, out: np.ndarray) -> Iterator[np.ndarray]:
    """Standard Gaussian numbers of double precision for `out`, to be worked on in the block.

    They are in `out` itself, or rounded into it at the end where it is of another precision: the
    stream is the same.
    """
    if out.dtype == np.float64:
        rng.standard_normal(out=out)
        yield out
    else:
        drawn = rng.standard_normal(out.shape)
        yield drawn
        out[...] = drawn
