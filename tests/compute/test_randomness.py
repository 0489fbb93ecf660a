"""Random streams, and what an argument `rng` may be."""

import numpy as np
import pytest

from onegrad.compute.randomness import PURPOSES, Streams, generator


def test_streams_are_distinct():
    firsts = {
        (seed, purpose): Streams(0, seed).rng(purpose).integers(2**60)
        for seed in range(3)
        for purpose in PURPOSES
    }
    shared = {Streams(0, 0).shared_rng(p).integers(2**60) for p in PURPOSES}
    assert len(set(firsts.values()) | shared) == len(firsts) + len(shared)


def first(rng):
    return int(rng.integers(2**60))


def test_a_number_is_the_root_of_a_simulation():
    assert first(generator(5, "weights")) == first(Streams(5, 0).rng("weights"))
    assert first(generator(np.int64(5), "weights")) == first(Streams(5, 0).rng("weights"))
    assert first(generator(Streams(5, 2), "weights")) == first(Streams(5, 2).rng("weights"))
    shared = first(generator(Streams(5, 2), "weights", shared=True))
    assert shared == first(Streams(5, 9).shared_rng("weights")) != first(generator(5, "weights"))


def test_a_generator_is_used_as_it_is_and_goes_on():
    given = np.random.default_rng(0)
    assert generator(given, "weights") is given
    sequence = np.random.SeedSequence(3)
    made, again = (first(generator(sequence, purpose)) for purpose in ("weights", "readout"))
    assert made == again


@pytest.mark.parametrize("bad", ["0", 0.5, None])
def test_anything_else_is_refused(bad):
    with pytest.raises(TypeError):
        generator(bad, "weights")
