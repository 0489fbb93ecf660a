"""What was learned over two directions."""

import numpy as np
import pytest

import onegrad as og
from onegrad.errors import AssumptionError


@pytest.fixture(scope="module")
def prediction():
    problem = og.Problem(
        data={"model": "isotropic", "dim": 150},
        labels={"model": "multi-index", "link": [[0, 0.5], [1, 0.5]]},
        network={"convention": "isotropic", "activation": "relu", "width": 150},
        training={"samples": 600, "rate": 6.0, "ridge": 0.1},
    )  # fmt: skip
    return og.predict(problem)


def test_the_target_is_the_link(prediction):
    found = prediction.learned_map()
    t, s = np.meshgrid(found.first, found.second, indexing="ij")
    np.testing.assert_allclose(found.target, 0.5 * s + t + 0.5 * s * t, atol=1e-9)


def test_the_map_averages_to_the_line(prediction):
    """E[f|t₁] is the average of E[f|t₁, t₂] over t₂."""
    found, line = prediction.learned_map(), prediction.learned("teacher 1")
    density = np.exp(-0.5 * found.second**2)
    mean = found.learned @ density / density.sum()
    along = np.interp(found.first, line.position, line.learned)
    assert np.abs(mean - along).max() < 0.02 * np.abs(along).max()


def test_bad_directions(prediction):
    with pytest.raises(AssumptionError, match="teacher 3"):
        prediction.learned_map("teacher 1", "teacher 3")
    with pytest.raises(AssumptionError, match="two directions"):
        prediction.learned_map("teacher 1", "teacher 1")


def test_the_picture(prediction):
    panels = prediction.plot()
    assert len(panels) == 2 and "teacher 2" in panels[0].get_ylabel()
    assert "information exponent 1" in repr(og.degree(prediction.solution.task.problem))
