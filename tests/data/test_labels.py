"""Labels: teachers, components, and what came with the data."""

import numpy as np
import pytest

from onegrad.data.label_base import flipped
from onegrad.data.label_power import label_variance
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


def test_three_components_are_classes_unless_they_have_values():
    with pytest.raises(SpecError, match=r"labels\.values"):
        ComponentLabels().check(1, True)
    assert ComponentLabels().outputs(3) == 3
    assert ComponentLabels(values=(0, 1, 2)).outputs(3) == ComponentLabels().outputs(2) == 1
    population = Mixture(dim=5, weights=(0.5, 0.25, 0.25)).population(1.0, rng(0))
    teacher = ComponentLabels(noise=0.1).teacher(population, rng(0), orthogonal=False)
    np.testing.assert_array_equal(
        teacher.mean(np.zeros((2, 5)), np.array([2, 0])), np.eye(3)[[2, 0]]
    )
    assert label_variance(population, teacher) == pytest.approx(0.25 + 2 * 0.1875 + 3 * 0.01)


def test_classes_have_no_sign_to_flip():
    with pytest.raises(SpecError, match=r"labels\.flip = 0\.1.*3 classes"):
        ComponentLabels(flip=0.1).check(3, True)


def test_labels_of_rows():
    y, component = np.array([1.0, -1.0, 1.0]), np.array([0, 1, 0])
    assert GivenLabels().of_rows(y, component) is y
    assert ComponentLabels(values=(3, 4)).of_rows(y, component).tolist() == [3, 4, 3]
    with pytest.raises(AssumptionError, match="no teacher"):
        GivenLabels().teacher(Mixture(dim=5).population(1.0, rng(0)), rng(0), False)


def test_signs_and_flips():
    _, teacher = drawn(link="sign", flip=0.25)
    x = rng(3).standard_normal((4000, 50))
    component = np.zeros(4000, int)
    clean = teacher.clean(x, component)
    assert set(clean) == {-1.0, 1.0}
    np.testing.assert_allclose(teacher.mean(x, component), 0.5 * clean)
    signs = flipped(np.ones(4000), teacher.flip, rng(4))
    y = teacher.labels(x, component, np.zeros(4000), signs)
    assert np.mean(y != clean) == pytest.approx(0.25, abs=0.03)
    assert teacher.noise_variance == pytest.approx(0.75)
    assert np.mean((y - 0.5 * clean) ** 2) == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(
    "labels", [SingleIndex(flip=0.1), ComponentLabels(values=(1, 2), flip=0.1)]
)
def test_only_signs_are_flipped(labels):
    with pytest.raises(SpecError, match=r"labels\.flip = 0\.1.*±1"):
        labels.check(2, True)


def test_a_flip_is_a_probability_below_a_half():
    with pytest.raises(SpecError, match=r"labels\.flip = 0\.5"):
        SingleIndex(link="sign", flip=0.5)
