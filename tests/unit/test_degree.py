"""The words of the degree rule, at its boundaries and off them."""

import pytest

from onegrad.errors import SpecError
from onegrad.experiments.degree import degree_report
from onegrad.experiments.spec import Experiment
from onegrad.tables import degree_text

MIXTURE = {
    "data": {"model": "mixture", "dim": 30},
    "network": {"width": 20},
    "training": {"samples": 40},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}


def report(**tables):
    (point,) = Experiment.read(MIXTURE | tables).points
    found = degree_report(point.problem)
    return found, degree_text(point, found)


@pytest.mark.parametrize(
    "strength, words",
    [
        (0.75, ["at the boundary", "where degree 4 begins", "compare.degree = 4"]),
        (0.5, ["at the boundary", "where degree 2 begins"]),
        (0.0, ["Degree 1 is enough", "not above 0", "degree 2 begins at 0.5"]),
        (0.3, ["Degree 1 is enough", "lies below 0.5", "0.2 further up"]),
        (1.0, ["No degree by the rule", "no finite degree"]),
        (0.7, ["Degree 3 is enough", "lies in (0.6667, 0.75)", "0.05 further up"]),
    ],
)
def test_mixtures(strength, words):
    found, text = report(scaling={"strength": strength, "weighting": 0.5})
    for word in words:
        assert word in text
    assert found.on_boundary == ("at the boundary" in text)


def test_a_step_that_does_not_grow_lies_in_no_interval_above_zero():
    found, text = report(
        data={"model": "isotropic", "dim": 30}, scaling={"exponent": -0.3},
        network={"width": 20, "convention": "isotropic"},
    )  # fmt: skip
    assert "= -0.3 is not above 0" in text and "(0," not in text
    assert found.interval == (None, 0.25) and found.to_next == pytest.approx(0.55)


def test_arrays_are_not_offered_where_they_cannot_be_written():
    with pytest.raises(SpecError) as caught:
        report(data={"model": "arayss", "dim": 30})
    text = str(caught.value)
    assert '"file"' in text and '"mixture"' in text and '"arrays"' not in text
    with pytest.raises(SpecError) as caught:
        report(data={"model": "arrays", "dim": 30})
    assert 'model = "file"' in str(caught.value) and "Python" in str(caught.value)
