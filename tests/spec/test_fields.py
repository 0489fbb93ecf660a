"""Sections: whatever is wrong is one SpecError, however a section is built."""

import pickle

import cloudpickle
import pytest

import onegrad as og
from onegrad.errors import SpecError
from onegrad.spec.experiment import Experiment

TABLES = {
    "data": {"model": "mixture", "dim": 100}, "network": {"width": 80},
    "training": {"samples": 120}, "scaling": {"strength": 0.74, "weighting": 0.5},
}  # fmt: skip


def keys(error):
    return {problem.key for problem in error.value.problems}


def test_every_problem_of_nested_sections_is_reported():
    bad = {
        "data": {"model": "mixture", "dim": 0, "rank": -1},
        "network": {"width": 0, "readout": "x", "oops": 1},
    }
    with pytest.raises(SpecError) as caught:
        og.Problem(**TABLES | bad)
    assert keys(caught) == {
        "data.dim", "data.rank", "network.width", "network.readout", "network.oops",
    }  # fmt: skip
    with pytest.raises(SpecError, match=r"network\.3 = 1: is not a known key"):
        og.Problem(**TABLES | {"network": {3: 1}})


@pytest.mark.parametrize(
    ("tables", "table"),
    [
        ({"convention": "isotropic"}, "network"),
        ({"scaling": {"convention": "isotropic"}}, "network"),
        ({"training": {"samples": 120, "width": 80}}, "network"),
        ({"network": {"width": 80, "samples": 120}}, "training"),
        ({"oops": 1}, ""),
        ({"training": {"samples": 120, "sample": 3}}, ""),  # a slip, and not a key of another one
    ],
)
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(tables, table):
    for build in (og.Problem, lambda **given: Experiment.from_tables(given)):
        with pytest.raises(SpecError) as caught:
            build(**TABLES | tables)
        said = f"It belongs in [{table}]" in str(caught.value)
        assert said if table else "belongs" not in str(caught.value)


@pytest.mark.parametrize(
    ("tables", "model"),
    [
        ({"data": {"model": "isotropic", "dim": 100, "rank": 1}}, "mixture"),
        ({"labels": {"model": "component", "link": "sign"}}, 'multi-index" or "single-index'),
    ],
)
def test_a_key_of_another_model_is_told_which_one(tables, model):
    with pytest.raises(SpecError, match=f'It belongs to model = "{model}"'):
        og.Problem(**TABLES | tables)


def test_validating_a_mapping_gives_the_same_advice():
    with pytest.raises(ValueError, match=r"network\.width = 0: must be a whole number from 1"):
        og.Problem.model_validate(TABLES | {"network": {"width": 0}})


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: og.Scaling(0.5), r"scaling = 0\.5: takes settings by name: strength, weighting"),
        (lambda: og.Problem(TABLES), r"spec = .*takes settings by name.*Problem\(data=…\)"),
        (lambda: og.Scaling(**{"self": 1}), r"scaling\.self = 1: is not a known key"),
        (lambda: og.Scaling(**{"unnamed": 1}), r"scaling\.unnamed = 1: is not a known key"),
        (lambda: og.Mixture(), r"data\.dim \(missing\): is needed"),
    ],
)
def test_built_in_python(build, words):
    with pytest.raises(SpecError, match=words):
        build()


@pytest.mark.parametrize("packer", [pickle, cloudpickle])
def test_sections_travel_between_processes(packer):
    problem = og.Problem(**TABLES)
    assert pickle.loads(packer.dumps(problem)) == problem
    with pytest.raises(SpecError) as caught:
        og.Scaling(strength=3)
    assert str(pickle.loads(packer.dumps(caught.value)).problems) == str(caught.value.problems)


def test_an_error_tells_some_of_many_problems_and_survives_its_way_between_processes():
    with pytest.raises(SpecError) as refused:
        Experiment.read({"compare": {"models": [1] * 5000}})
    text = str(refused.value)
    assert "compare.models[0] = 1" in text and " more." in text and len(text) < 10_000
    assert str(pickle.loads(pickle.dumps(refused.value))) == text


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda: og.Network(200), "Network(width=200)"),
        (lambda: og.Mixture(200), "Mixture(dim=200)"),
        (lambda: og.ComponentLabels(values=[1e300, 1]), "a list of numbers from -1e+06 to 1e+06"),
        (lambda: og.Mixture(dim=9, strengths=[-1.0]), 'from 0 to 1e+06 or one of "uniform"'),
        (lambda: og.Problem(), "in Python data=…"),
        (lambda: og.predict(3), "must be a Problem, a preset's name"),
        (lambda: og.sweep("quickstart", {}), "must name what changes"),
        (lambda: og.hermite_activation("a"), "must be numbers"),
        (lambda: og.predict_readout([[1.0]], "quickstart"), "600 × 300"),
    ],
)
def test_what_a_student_tries_is_answered_with_advice(wrong, advice):
    with pytest.raises(SpecError) as caught:
        wrong()
    assert advice in str(caught.value)
