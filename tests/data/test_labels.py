"""Labels: teachers, components, and what came with the data."""

import numpy as np
import pytest

from onegrad.data.labels import ComponentLabels, GivenLabels, SingleIndex
from onegrad.data.mixture import Mixture
from onegrad.errors import AssumptionError, SpecError

rng = np.random.default_rng


def drawn(**labels):
    population = Mixture(dim=50, rank=1).population(20.0, rng(0))
    return population, SingleIndex(**labels).teacher(population, rng(2), orthogonal=False)


def test_teacher_is_normalised_by_the_covariance():
    population, teacher = drawn()
    norm = np.linalg.norm(teacher.direction)
    assert norm == pytest.approx(1 / np.sqrt(population.mean_covariance_norm))


def test_teacher_along_the_spikes():
    population, teacher = drawn(direction="spikes")
    both = population.spikes[0][:, 0] + population.spikes[1][:, 0]
    cosine = teacher.direction @ both / np.linalg.norm(both) / np.linalg.norm(teacher.direction)
    assert cosine == pytest.approx(1.0)


def test_a_link_per_component():
    population, teacher = drawn(link=["relu", "identity"])
    ((x, c),) = population.sample(60, rng(1))
    projection = x @ teacher.direction
    want = np.where(c == 0, np.maximum(projection, 0), projection)
    np.testing.assert_allclose(teacher.mean(x, c), want)


def test_noise():
    _, teacher = drawn(noise=0.5)
    x = np.zeros((3, 50))
    noise = np.array([1.0, -2.0, 0.0])
    np.testing.assert_allclose(teacher.labels(x, np.zeros(3, int), noise), 0.5 * noise)


def test_component_labels():
    population = Mixture(dim=5).population(1.0, rng(0))
    teacher = ComponentLabels().teacher(population, rng(0), orthogonal=False)
    np.testing.assert_array_equal(teacher.mean(np.zeros((2, 5)), np.array([0, 1])), [1, -1])


def test_three_components_need_values():
    with pytest.raises(SpecError, match=r"labels\.values"):
        ComponentLabels().check(3, True)
    ComponentLabels(values=(0, 1, 2)).check(3, True)


def test_labels_of_rows():
    y, component = np.array([1.0, -1.0, 1.0]), np.array([0, 1, 0])
    assert GivenLabels().of_rows(y, component) is y
    assert ComponentLabels(values=(3, 4)).of_rows(y, component).tolist() == [3, 4, 3]
    with pytest.raises(AssumptionError, match="no teacher"):
        GivenLabels().teacher(Mixture(dim=5).population(1.0, rng(0)), rng(0), False)
