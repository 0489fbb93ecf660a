"""Labels of several indices: directions, refusals, the power of labels."""

import numpy as np
import pytest

import onegrad as og
from onegrad.data.mixture import Mixture
from onegrad.errors import SpecError

rng = np.random.default_rng


def teacher(orthogonal=False, rank=2, **labels):
    population = Mixture(dim=60, rank=rank).population(20.0, rng(0))
    return population, og.MultiIndex(**labels).teacher(population, rng(2), orthogonal)


@pytest.mark.parametrize(
    "labels",
    [{"indices": 3}, {"direction": "spikes", "indices": 4}, {"cosines": [0.6, -0.2]}],
)
def test_directions_are_orthogonal_with_the_norm_of_a_single_one(labels):
    population, found = teacher(**labels)
    count = labels.get("indices", 2)
    want = np.eye(count) / population.mean_covariance_norm
    np.testing.assert_allclose(found.direction.T @ found.direction, want, atol=1e-12)


def test_cosines_and_spikes():
    population, found = teacher(cosines=[0.6, -0.2])
    unit = found.direction / np.linalg.norm(found.direction, axis=0)
    spikes = [s[:, 0] for s in population.spikes]
    assert unit[:, 0] @ spikes[0] == pytest.approx(0.6)
    assert unit[:, 1] @ spikes[1] == pytest.approx(-0.2, abs=0.1)  # the spikes overlap by chance
    _, along = teacher(direction="spikes")
    assert abs(along.direction[:, 0] @ spikes[0]) == pytest.approx(
        np.linalg.norm(along.direction[:, 0])
    )


def test_without_chance_overlaps():
    population, found = teacher(orthogonal=True, indices=3)
    assert np.abs(population.spikes[0].T @ found.direction).max() < 1e-12


def test_variance_of_labels():
    problem = og.Problem(
        data={"model": "mixture", "dim": 60, "spread": 9.0, "mean": 1.0},
        labels={"model": "multi-index", "link": "max", "noise": 0.3},
        network={"width": 20}, training={"samples": 30, "rate": 1.0},
    )  # fmt: skip
    instance = problem.instance(0)
    y = instance.sample(40_000, 1).y
    assert instance.label_variance == pytest.approx(y.var(), rel=0.03)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ({"indices": 5}, r"labels\.indices = 5"),
        ({"indices": "two"}, r"labels\.indices"),
        ({"link": "produkt"}, r"labels\.link = 'produkt'.*product"),
        ({"flip": 0.1}, r"labels\.flip"),
        ({"cosines": [0.1]}, r"labels\.cosines.*each of the 2"),
        ({"cosines": [0.1, 2.0]}, r"labels\.cosines"),
        ({"direction": "spikes"}, r"labels\.direction.*spikes"),
    ],
)
def test_bad_settings(labels, match):
    with pytest.raises(SpecError, match=match):
        og.Problem(
            data={"model": "isotropic", "dim": 60}, labels={"model": "multi-index", **labels},
            network={"width": 20}, training={"samples": 30, "rate": 1.0},
        )  # fmt: skip


def test_more_indices_than_spikes():
    with pytest.raises(SpecError, match=r"labels\.indices = 3.*2 spikes"):
        teacher(direction="spikes", indices=3, rank=1)


def test_more_directions_than_inputs_are_refused():
    tables = {
        "data": {"model": "isotropic", "dim": 2}, "labels": {"model": "multi-index", "indices": 3},
        "network": {"width": 5}, "training": {"samples": 9, "rate": 1.0},
    }  # fmt: skip
    with pytest.raises(SpecError, match=r"labels\.indices = 3: must be at most data\.dim = 2"):
        og.Problem.from_spec(tables)
