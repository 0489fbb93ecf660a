"""Labels whose means a polynomial model cannot fit: said where it is so, and only there."""

import pytest

import onegrad as og
from onegrad.cli.theory_text import degree_text
from onegrad.degree.mean_features import check_means
from onegrad.degree.report import degree, degree_notes
from onegrad.spec.experiment import Experiment


def tables(activation, link, convention, **more):
    isotropic = convention == "isotropic"
    return {
        "data": {"model": "isotropic", "dim": 150},
        "labels": {"link": link},
        "network": {"convention": convention, "activation": activation, "width": 300},
        "training": {"samples": 150, "ridge": 1e-2 if isotropic else 1e-4},
        "scaling": {"exponent": 0.1} if isotropic else {"strength": 0.3, "weighting": 0.5},
        **more,
    }


FAILS = [
    ("relu", "sigmoid", "isotropic"),
    ("gelu", "sigmoid", "isotropic"),
    ("hermite(0, 1, 0.5)", "sigmoid", "mixture"),
]
HOLDS = [
    ("relu", "sigmoid", "mixture"),  # its term of degree 0 fits the mean
    ("relu", "tanh", "isotropic"),  # there is no mean to fit
    ("tanh", "sigmoid", "isotropic"),  # neither the model nor the network can
]


@pytest.mark.parametrize("case", FAILS)
def test_it_is_said_where_the_network_does_what_the_model_cannot(case):
    problem = og.Problem.from_spec(tables(*case))
    assert problem.degree == 1
    found = check_means(problem, 1)
    assert found.visible and found.lost > 0.2 and found.mended_by == 2
    for ell, low, high in ((1, 0.8 * found.lost, 4 * found.lost), (2, -0.08, 0.08)):
        gap = og.simulate(problem, ("network", "hermite"), seeds=6, degree=ell)
        mean, error = gap.difference("hermite")
        assert low - 4 * error < mean < high + 4 * error
        if ell == 1:
            assert mean > 4 * error  # it is no matter of luck


@pytest.mark.parametrize("case", HOLDS)
def test_it_is_not_said_where_the_rule_is_right(case):
    problem = og.Problem.from_spec(tables(*case))
    assert not check_means(problem, problem.degree).visible
    mean, error = og.simulate(problem, ("network", "hermite"), seeds=6).difference("hermite")
    assert abs(mean) < 4 * error + 0.05


def test_the_degree_and_the_run_say_so():
    experiment = Experiment.read(
        tables("relu", "sigmoid", "isotropic", compare={"models": ["network", "hermite"]})
    )
    (point,) = experiment.points
    report = degree(point.problem)
    text = degree_text(point, report)
    assert "Degree 1 by the rule." in text and "is enough as n grows" not in text
    assert "compare.degree = 2 mends it" in text
    (note,) = degree_notes(experiment)
    assert "hermite: degree 1 cannot fit the labels' means" in note
    assert report.as_json()["means"]["mended_by"] == 2
    fixed = tables("relu", "sigmoid", "isotropic", compare={"models": ["hermite"], "degree": 1})
    assert not degree_notes(Experiment.read(fixed))  # nobody asked for the rule
    variant = tables("relu", "sigmoid", "isotropic", compare={"models": ["hermite:1"]})
    assert not degree_notes(Experiment.read(variant))
    other = tables("relu", "sigmoid", "isotropic", compare={"models": ["network"]})
    assert not degree_notes(Experiment.read(other))  # nor for a polynomial model


def test_a_capped_degree_is_said_in_the_run_too():
    spec = tables("relu", "relu", "mixture", data={"model": "mixture", "dim": 60})
    spec |= {"sweep": {"scaling.strength": [0.5, 0.9]}, "compare": {"models": ["hermite"]}}
    (note,) = degree_notes(Experiment.read(spec))
    assert "degree 4" in note and "at 1 of 2 points" in note and "numerical stability" in note


def test_nothing_is_said_of_data_whose_law_is_not_known():
    spec = tables("relu", "relu", "mixture", data={"model": "digits"})
    del spec["labels"]
    assert check_means(og.Problem.from_spec(spec), 1) is None
