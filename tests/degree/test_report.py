"""The words of the degree rule, at its boundaries and off them; one rule for every command."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from onegrad.cli.theory_text import degree_text
from onegrad.degree import report as degrees
from onegrad.degree.report import degree
from onegrad.errors import AssumptionError, SpecError
from onegrad.problem import Problem
from onegrad.simulate.network.rounding import worth_rounding
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
    found = degree(point.problem)
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
    assert [t.degree for t in found.terms] == list(range(1, 8)) and not any(
        t.kept for t in found.terms
    )


def test_without_spikes_the_parameter_is_named_for_what_it_is():
    found, text = report(
        data={"model": "isotropic", "dim": 30}, scaling={"strength": 0.7, "weighting": 0.5}
    )
    assert found.degree == 1 and "β (scaling.strength·weighting) = 0.35 lies below 0.5" in text


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_degree_and_spectrum_never_contradict_each_other(exponent):
    tables = MIXTURE | ISOTROPIC | {"scaling": {"exponent": exponent}}
    problem = Problem.from_spec(tables)
    found = degree(problem)
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


@pytest.mark.parametrize(("rate", "accuracy"), [(4.0, 1e-3), (1e9, 1e-9)])
def test_large_problems_are_measured_in_single_precision(rate, accuracy, monkeypatch):
    """To what the norms themselves are accurate to; a polynomial that overflows there is not."""
    problem = Problem.from_spec(
        {
            "data": {"model": "mixture", "dim": 100, "spread": 6.0},
            "network": {"width": 520},
            "training": {"samples": 520, "rate": rate},
        }
    )
    assert worth_rounding(problem)
    found = [term.norm_ratio for term in degree(problem).terms]
    monkeypatch.setattr("onegrad.degree.report.worth_rounding", lambda problem: False)
    double = [term.norm_ratio for term in degree(problem).terms]
    assert found == pytest.approx(double, rel=accuracy)


def test_small_problems_take_one_thread(monkeypatch):
    """The others would wait actively for work, and be paid for it."""
    seen, measured = set(), degrees.operator_norm

    def norm(matrix):
        seen.update(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return measured(matrix)

    monkeypatch.setattr(degrees, "operator_norm", norm)
    with threadpool_limits(2, user_api="blas"):
        report()
    assert seen == {1}
