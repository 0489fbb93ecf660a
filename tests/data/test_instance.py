"""Instances: one draw of a population with its labels, and samples of it."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial


def problem(**data):
    return og.Problem(
        data={"model": "mixture", "dim": 20, "weights": (0.25, 0.75), "mean": 1.0, **data},
        labels={"model": "single-index", "noise": 0.3}, network={"width": 10},
        training={"samples": 30}, scaling={"strength": 0.6, "weighting": 0.5},
    )  # fmt: skip


def same(one, other):
    return all(np.array_equal(getattr(one, k), getattr(other, k)) for k in ("x", "y", "component"))


@pytest.mark.parametrize("directions", ["random", "fixed"])
def test_a_seed_gives_what_the_simulation_draws(directions):
    p = problem(directions=directions)
    batch = p.instance(4).sample(30, 4)
    assert batch.x.shape == (30, 20) and batch.y.shape == batch.component.shape == (30,)
    assert same(batch, Trial(p, Streams(4, 0)).train.batch)
    later = p.instance(Streams(4, 2)).sample(30, Streams(4, 2))
    assert same(later, Trial(p, Streams(4, 2)).train.batch)
    assert not same(batch, later)


def test_generators_and_seed_sequences():
    p = problem()
    rng = np.random.default_rng(0)
    instance = p.instance(rng)
    assert not same(instance.sample(9, rng), instance.sample(9, rng))  # it goes on
    sequence = np.random.SeedSequence(1)
    first, again = (p.instance(sequence).sample(9, sequence) for _ in range(2))
    assert same(first, again)


def test_labels_are_those_of_the_teacher_plus_noise():
    instance = problem().instance(0)
    batch = instance.sample(4000, 1)
    noise = batch.y - instance.teacher.mean(batch.x, batch.component)
    assert noise.std() == pytest.approx(0.3, rel=4 / np.sqrt(2 * 4000))
    assert abs(noise.mean()) < 4 * 0.3 / np.sqrt(4000)


def test_proportional_counts():
    assert problem(counts="proportional").instance(0).sample(40, 0).component.sum() == 30
    drawn = [problem().instance(0).sample(40, seed).component.sum() for seed in range(8)]
    assert len(set(drawn)) > 1


def test_real_data_have_no_instance():
    digits = og.Problem(
        data={"model": "digits", "spread": 5.0}, network={"width": 10},
        training={"samples": 30, "rate": 1.0},
    )  # fmt: skip
    with pytest.raises(og.AssumptionError, match="no known population"):
        digits.instance(0)
