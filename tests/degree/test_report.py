"""The words of the degree rule, at its boundaries and off them; one rule for every command."""

from importlib import import_module

import pytest

from onegrad.cli.theory_text import degree_text
from onegrad.degree.report import degree
from onegrad.errors import AssumptionError, SpecError
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.spec.experiment import Experiment
from onegrad.spectrum.report import limiting_spectrum
from onegrad.theory.isotropic.closed_form import regime_of

MIXTURE = {
    "data": {"model": "mixture", "dim": 30},
    "network": {"width": 20},
    "training": {"samples": 40},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}
ISOTROPIC = {
    "data": {"model": "isotropic", "dim": 30},
    "network": {"width": 20, "convention": "isotropic"},
}
BORDERS = [0.0, *(j / (2 * j + 2) for j in range(1, 6)), 0.5]
EXPONENTS = [-0.3, 0.1, 0.3, 0.35, 0.38, 0.45, 0.49, 0.7, *BORDERS,
             *(b - 1e-3 for b in BORDERS), *(b + 1e-3 for b in BORDERS)]  # fmt: skip


def report(**tables):
    (point,) = Experiment.read(MIXTURE | tables).points
    found = degree(point.problem, draws=2)
    return found, degree_text(point, found)


@pytest.mark.parametrize(
    "strength, words",
    [
        (0.75, ["at the boundary", "where the term of degree 4 begins", "compare.degree = 4"]),
        (0.5, ["at the boundary", "where the term of degree 2 begins"]),
        (0.5 + 1e-7, ["Degree 1, at the boundary", "= 0.5 is where the term of degree 2 begins"]),
        (0.8, ["Degree 4, at the boundary", "where the term of degree 5 begins"]),
        (0.0, ["Degree 1 is enough", "not above 0", "degree 2 begins to count at 0.5"]),
        (0.3, ["Degree 1 is enough", "lies below 0.5", "0.2 further up"]),
        (0.7, ["Degree 3 is enough", "lies in (0.6667, 0.75)", "0.05 further up"]),
        (0.78, ["Degree 4 is enough", "lies in (0.75, 0.8)", "0.02 further up"]),
        (0.9, ["Degree 4, the highest that the rule gives", "degree 8 is not enough"]),
        (1.0, ["Degree 4, the highest that the rule gives", "no finite degree is enough"]),
    ],
)
def test_mixtures(strength, words):
    found, text = report(scaling={"strength": strength, "weighting": 0.5})
    for word in words:
        assert word in text
    assert found.on_boundary == ("at the boundary" in text)
    assert found.capped == ("the highest" in text) == (strength > 0.8)
    assert found.as_json()["capped"] == found.capped
    assert ("is enough as n grows.\nBecause" in text) != (found.on_boundary or found.capped)


def test_a_step_that_does_not_grow_lies_in_no_interval_above_zero():
    found, text = report(**ISOTROPIC, scaling={"exponent": -0.3})
    assert "= -0.3 is not above 0" in text and "(0," not in text
    assert found.interval == (None, 0.25) and found.to_next == pytest.approx(0.55)


def test_a_rate_by_hand_has_no_degree_but_terms():
    found, text = report(
        data={"model": "mixture", "dim": 30, "spread": 3.0}, scaling={},
        training={"samples": 40, "rate": 2.0},
    )  # fmt: skip
    assert found.degree is found.needed is found.interval is None and not found.capped
    assert "No degree by the rule: η and θ are set by hand" in text
    assert [t.degree for t in found.terms] == [1, 2, 3, 4] and not any(t.kept for t in found.terms)


def test_without_spikes_the_parameter_is_named_for_what_it_is():
    found, text = report(
        data={"model": "isotropic", "dim": 30}, scaling={"strength": 0.7, "weighting": 0.5}
    )
    assert found.degree == 1 and "β (scaling.strength·weighting) = 0.35 lies below 0.5" in text


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_degree_and_spectrum_never_contradict_each_other(exponent):
    tables = MIXTURE | ISOTROPIC | {"scaling": {"exponent": exponent}}
    problem = Problem.from_spec(tables)
    found = degree(problem, draws=1)
    assert found.degree == problem.degree
    low, high = found.interval
    near = 1e-6  # of the rule's own tolerance above a border
    assert (low is None or low < exponent) and (high is None or exponent <= high + near)
    assert found.on_boundary == (high is not None and abs(exponent - high) < near)
    if exponent >= 0.5:
        with pytest.raises(AssumptionError, match="1/2"):
            limiting_spectrum(problem)
        assert found.capped and found.needed is None
        return
    if 0 <= exponent < 0.48:
        assert regime_of(exponent) == found.needed


def test_arrays_are_not_offered_where_they_cannot_be_written():
    with pytest.raises(SpecError) as caught:
        report(data={"model": "arayss", "dim": 30})
    text = str(caught.value)
    assert '"file"' in text and '"mixture"' in text and '"arrays"' not in text
    with pytest.raises(SpecError) as caught:
        report(data={"model": "arrays", "dim": 30})
    assert 'model = "file"' in str(caught.value) and "Python" in str(caught.value)


def test_the_measured_degree_is_that_of_the_differences():
    """A step that makes features nonlinear: degree 1 is visibly not enough, and the rule is told
    nothing of it; differences are those that `simulate` gives."""
    tables = MIXTURE | {
        "data": {"model": "mixture", "dim": 40, "spread": 6.0},
        "training": {"samples": 200, "rate": 60.0}, "scaling": {},
        "network": {"width": 60, "activation": "hermite(0, 1, 0.5)"},
    }  # fmt: skip
    problem = Problem.from_spec(tables)
    found = degree(problem)
    assert found.measured == 2 and found.degree is None and 8 <= found.draws <= 20
    assert "Degree 2 is enough at this size" in repr(found) and "Rule: none" in repr(found)
    models = ("network", "hermite:1", "hermite:2")
    again = simulate(problem, models, seeds=found.draws)
    for term in found.terms[:2]:
        mean, error = again.difference(f"hermite:{term.degree}")
        assert term.difference == pytest.approx((mean, error), rel=1e-9, abs=1e-12)
    assert found.terms[0].difference.mean > 0.05


def test_what_cannot_be_simulated_is_no_degree(monkeypatch):
    """Neither a number nor a traceback: the reason."""

    def refuses(*_):
        raise AssumptionError("no polynomials today")

    monkeypatch.setattr(import_module("onegrad.simulate.models.hermite"), "_features", refuses)
    found = degree(MIXTURE, draws=2)
    assert found.measured is None and found.answer == "Not measured: no polynomials today"
