"""Specs: either a valid Problem or one error that says what to change."""

import copy
import math

import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError, SpecError
from onegrad.problem import Problem, degree_rule, needed_degree
from onegrad.spec.experiment import Experiment

GOOD = {
    "data": {"model": "mixture", "dim": 100, "weights": [0.5, 0.5]},
    "labels": {"model": "single-index", "link": "relu"},
    "network": {"convention": "mixture", "activation": "relu", "width": 80},
    "training": {"samples": 120, "ridge": 1e-4},
    "scaling": {"strength": 0.74, "weighting": 0.5},
}


def spec(**changes):
    tables = copy.deepcopy(GOOD)
    for key, value in changes.items():
        table, _, name = key.partition("__")
        if name:
            tables.setdefault(table, {})[name] = value
        elif value is None:
            del tables[table]
        else:
            tables[table] = value
    return tables


def test_a_preset_or_a_mapping_is_a_problem_everywhere():
    import onegrad as og
    from onegrad.spec.presets import preset_path

    problem = Problem.from_spec("quickstart")
    assert problem.dim > 10 and problem == Problem.from_spec(preset_path("quickstart"))
    tables, built = spec(), Problem.from_spec(spec())
    assert og.predict(tables, accuracy=0.1) == og.predict(built, accuracy=0.1)
    assert og.degree(tables).degree == built.degree
    assert (
        og.simulate(tables, seeds=1).test_error.mean == og.simulate(built, seeds=1).test_error.mean
    )
    with pytest.raises(og.SpecError, match="no such file or preset"):
        og.predict("quickstrat")


def test_scales_of_the_mixture_convention():
    problem = Problem.from_spec(spec())
    assert problem.rate == pytest.approx(100**0.37)
    assert problem.spread == pytest.approx(100**0.37)
    assert problem.mean_trace == pytest.approx(100 + 100**0.37)
    assert problem.weight_variance == pytest.approx(1 / problem.mean_trace)
    assert problem.readout_scale == pytest.approx(1 / 80)
    assert problem.effective_ridge == pytest.approx(80 * 1e-4)
    assert problem.bulk_scale == pytest.approx(math.sqrt(100 / problem.mean_trace))
    assert problem.step_samples == 120
    population = problem.instance(Streams(0, 0)).population
    assert population.mean_trace == pytest.approx(problem.mean_trace)


def test_scales_of_the_isotropic_convention():
    problem = Problem.from_spec(
        spec(
            data={"model": "isotropic", "dim": 100},
            network={"convention": "isotropic", "activation": "relu", "width": 80},
            scaling={"exponent": 0.29, "constant": 2.0},
        )
    )
    assert problem.rate == pytest.approx(2 * 120**0.29)
    assert problem.weight_variance == pytest.approx(1 / 100)
    assert problem.readout_scale == pytest.approx(80**-0.5)
    assert problem.effective_ridge == 1e-4
    assert problem.activation.coefficients(0)[0] == pytest.approx(0, abs=1e-13)
    assert problem.degree == 2


def test_by_hand():
    problem = Problem.from_spec(spec(scaling=None, training__rate=30.0, data__spread=12.0))
    assert (problem.rate, problem.spread) == (30.0, 12.0)
    with pytest.raises(AssumptionError, match="degree"):
        _ = problem.degree


@pytest.mark.parametrize("ell", range(1, 9))
def test_degree_rule(ell):
    low, high = (ell - 1) / ell, ell / (ell + 1)
    for inside in (low + 2e-6, (low + high) / 2, high):
        assert needed_degree(inside) == ell
        assert degree_rule(inside) == min(4, ell)
    assert needed_degree(high + 2e-6) == ell + 1


@pytest.mark.parametrize("strength", [0.99, 1.0, 1.0000005, 1.2, 4.0])
def test_the_degree_rule_ends_with_four(strength):
    assert degree_rule(strength) == 4
    assert needed_degree(strength) == (99 if strength < 1 else None)


def test_built_in_python():
    problem = og.Problem(
        data=og.Mixture(dim=50),
        labels=og.ComponentLabels(),
        network=og.Network(width=40, activation=og.hermite_activation(0, 1, 0.3)),
        training=og.Training(samples=60),
        scaling=og.Scaling(strength=0.5, weighting=1.0),
    )
    assert problem.spread == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scaling__strenght": 0.5}, ["scaling.strenght", "0.5", "strength"]),
        ({"scaling__strength": 1.3}, ["scaling.strength", "1.3", "from 0 to 1"]),
        ({"data__weights": [0.5, 0.6]}, ["data.weights", "sum to 1", "0.454545"]),
        ({"network__width": 0}, ["network.width", "0", "from 1"]),
        ({"training__ridge": math.nan}, ["training.ridge", "nan", "above 0"]),
        ({"training__ridge": 0}, ["training.ridge", "above 0", "0.0001"]),
        ({"data__rank": 100}, ["data.rank", "100", "below data.dim"]),
        ({"network__activation": "rleu"}, ["network.activation", "rleu", 'mean "relu"']),
        ({"labels__link": "tan"}, ["labels.link", "tan", "tanh"]),
        ({"data": {"model": "file", "path": "no-such.csv"}, "labels": None},
         ["data.path", "no-such.csv", "no such file"]),
        ({"data__model": "mixtur"}, ["data.model", "mixtur", '"mixture"']),
        ({"labels__model": "componet"}, ["labels.model", '"component"']),
        ({"training": None}, ["training", "needed"]),
        ({"data__dim": "many"}, ["data.dim", "many", "whole number"]),
        ({"data__dim": True}, ["data.dim", "True", "whole number"]),
        ({"network__width_ratio": 2.0}, ["network.width", "not both"]),
        ({"scaling": {"exponent": 0.2}}, ["scaling.exponent", "isotropic"]),
        ({"training__rate": 3.0}, ["training.rate", "both"]),
        ({"scaling": {"strength": 0.2}}, ["scaling.weighting", "together"]),
        ({"data__alignment": -0.9, "data__weights": [0.2, 0.3, 0.5]}, ["data.alignment", "-0.5"]),
        ({"data__strengths": [1.0, 2.0]}, ["data.strengths", "data.rank = 1"]),
        ({"labels__link": ["relu", "tanh", "erf"]}, ["labels.link", "one per component"]),
        ({"network": 3}, ["network", "table"]),
        ({"labels": {"model": "given"}}, ["labels.model", "single-index"]),
    ],
)  # fmt: skip
def test_bad_specs_get_advice(changes, words):
    with pytest.raises(SpecError) as caught:
        Problem.from_spec(spec(**changes))
    for word in words:
        assert word in str(caught.value)


class TestExperiment:
    def test_points_are_a_grid(self):
        tables = spec(
            sweep={"network.width_ratio": [0.5, 2], "network.activation": ["relu", "erf"]}
        )
        experiment = Experiment.read(tables)
        assert len(experiment.points) == 4
        assert experiment.points[0].problem.width == 60  # the swept ratio replaces the width
        assert experiment.points[3].settings == {
            "network.width_ratio": 2, "network.activation": "erf",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("tables", "words"),
        [
            ({"sweep": {"network.widht": [1]}}, ["sweep.network.widht", "network.width"]),
            ({"sweep": {"network.width": []}}, ["sweep.network.width", "at least one"]),
            ({"sweep": {"network.width": [10, 0]}}, ["network.width", "0"]),
            ({"compare": {"models": ["netwrok"]}}, ["compare.models", '"network"']),
            ({"compare": {"seeds": 0}}, ["compare.seeds", "0"]),
            ({"compare": {"models": ["network", "network"]}}, ["compare.models", "once"]),
            ({"sweep": {"network.width": [50, 50]}}, ["sweep.network.width", "once"]),
            ({"ridge": 3}, ["ridge", "[training]"]),
            ({"name": 3}, ["name", "text"]),
        ],
    )
    def test_bad_experiments(self, tables, words):
        with pytest.raises(SpecError) as caught:
            Experiment.read(spec() | tables)
        for word in words:
            assert word in str(caught.value)


# --- random specs ---------------------------------------------------------------------------


def test_data_without_spikes_count_by_the_learning_rate_alone():
    flat = Problem.from_spec(spec(data={"model": "isotropic", "dim": 100}))
    assert flat.strength == pytest.approx(0.37) and flat.degree == 1
    none = Problem.from_spec(spec(data__rank=0))
    assert none.spread == 0 and none.degree == 1
    mixed = spec(data__spread=9.0, network__convention="isotropic", scaling={"exponent": 0.3})
    with pytest.raises(AssumptionError, match="degree"):
        _ = Problem.from_spec(mixed).degree


def test_a_problem_with_ranks_is_read_as_it_was_written():
    tables = {
        "data": {"model": "mixture", "dim": 100, "ranks": [1, 2], "spread": 3.0},
        "network": {"width": 50},
        "training": {"samples": 80, "rate": 1.0},
    }
    problem = Problem.from_spec(tables)
    assert Problem.from_spec(problem.model_dump(mode="json", exclude_none=True)) == problem
    with pytest.raises(SpecError, match=r"data\.ranks.*cannot be combined with data\.rank"):
        Problem.from_spec({**tables, "data": {**tables["data"], "rank": 2}})
