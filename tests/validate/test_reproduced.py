"""Our numbers against published ones: what agrees is said to, and what is wrong turns red."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from onegrad.cli.tables import published_table
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.runs.run import simulate_experiment
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import published_figure
from onegrad.validate.reproduced import agreements, common_shift, comparable
from onegrad.validate.reproduced import test_noise as chance_of_tests

SPREAD, PAIRED, SEEDS = 0.025, 0.004, 20


def made_up(name, network=1.0, hermite=1.0, seeds=SEEDS):
    """An experiment and rows around its published values, with spreads as they are measured."""
    experiment, rng = Experiment.read(name), np.random.default_rng(1)
    rows = []
    for point in experiment.points:
        own = [p for p in published_figure(name).points if p.at(point.settings)]
        centre = {p.model: p.value for p in own}
        if "network" not in centre:
            continue
        quantity = own[0].quantity
        for seed in range(seeds):
            data = 1 + SPREAD * rng.standard_normal()
            for model, factor in (("network", network), ("hermite", network * hermite)):
                value = centre.get(model, centre["network"]) * factor * data
                value *= 1 + PAIRED * rng.standard_normal()
                row = Row(point.settings, model, seed, value, value, value, number=point.number)
                rows.append(replace(row, **{quantity: value}))
        theory = centre["network"] * network
        rows.append(Row(point.settings, "theory", 0, *(theory,) * 3, number=point.number))
    return experiment, Results(name, tuple(rows))


@pytest.mark.parametrize("name", ["demir2025/fig1a", "demir2025/fig1b", "demir2025/fig6"])
def test_what_is_published_agrees_with_itself(name):
    found = {a.what: a for a in agreements(*made_up(name))}
    assert set(found) == {"network", "theory", "hermite", "hermite − network"}
    for agreement in found.values():
        assert agreement.agrees and abs(agreement.mean) < 0.01
    assert len(found["network"].comparisons) >= 39 - 2  # some could not be read to 5 %


@pytest.mark.parametrize(
    "wrong, models",
    [
        ({"network": 0.5}, {"network", "theory", "hermite"}),  # the factor ½ left in
        ({"network": 7.5}, {"network", "theory", "hermite"}),  # labels not divided by √‖Σ̄‖
        ({"network": 1.3}, {"network", "theory", "hermite"}),  # a ridge ten times too large
        ({"hermite": 1.04}, {"hermite − network"}),  # a degree too low, within the data's spread
    ],
)  # fmt: skip
def test_what_is_wrong_turns_red(wrong, models):
    experiment, results = made_up("demir2025/fig1a", **wrong)
    found = {a.what: a.agrees for a in agreements(experiment, results)}
    assert {name for name, agrees in found.items() if not agrees} == models
    table = published_table(experiment, results)
    verdicts = list(table.columns[-1].cells)
    assert sum("differs" in str(v) for v in verdicts) == len(models)


def test_few_seeds_say_less():
    """With three repetitions nobody knows the spread: 15 % are no difference, a factor is."""
    small = {a.what: a for a in agreements(*made_up("demir2025/fig1a", 1.15, seeds=3))}
    large = {a.what: a for a in agreements(*made_up("demir2025/fig1a", 1.15))}
    assert small["network"].agrees and not large["network"].agrees
    assert not next(iter(agreements(*made_up("demir2025/fig1a", 7.5, seeds=3)))).agrees


def test_other_sizes_are_not_compared():
    assert comparable(Experiment.read("demir2025/fig1a")) is not None
    smaller = Experiment.read("demir2025/fig1a", ["data.dim=500"])
    assert comparable(smaller) is None
    assert comparable(Experiment.read("demir2025/fig1a", quick=True)) is not None
    assert agreements(smaller, Results("none")) == []


def test_a_gap_beyond_the_colour_scale_is_no_difference():
    experiment = Experiment.read("demir2025/fig4b")
    at = {p.bound: p for p in published_figure("demir2025/fig4b").points}
    for bound, gap, agrees in (("most", 0.01, True), ("most", 0.5, False), ("least", 3.0, True),
                               ("least", 0.2, False)):  # fmt: skip
        point = next(p for p in experiment.points if at[bound].at(p.settings))
        rows = [
            Row(point.settings, model, seed, value * (1 + 0.001 * seed), number=point.number)
            for seed in range(10)
            for model, value in (("network", 0.1), ("hermite:1", 0.1 * (1 + gap)))
        ]
        (found,) = agreements(experiment, Results("gap", tuple(rows)))
        assert found.what == "hermite:1 − network" and found.agrees == agrees


@cache
def simulated(name, *changes):
    experiment = Experiment.read(name, [*changes, "compare.seeds=8"])
    return experiment, simulate_experiment(experiment)


def red(experiment, rows):
    found = agreements(experiment, Results("x", tuple(rows)))
    return {a.what for a in found if not a.agrees}


AT = "sweep.scaling.weighting=[0.421053, 0.684211]", 'network.activation="relu"'


@pytest.mark.slow
def test_networks_of_the_published_size_agree_and_wrong_ones_do_not():
    """The ½ of the source, the labels' scale and a ridge ten times too large are all seen."""
    experiment, results = simulated("demir2025/fig1b", *AT, 'compare.models=["network", "hermite"]')
    found = {a.what: a for a in agreements(experiment, results)}
    assert all(a.agrees for a in found.values()) and abs(found["network"].mean) < 0.1
    halved = [replace(row, test_error=row.test_error / 2) for row in results.rows]
    unscaled = [replace(row, test_error=row.test_error * 7.5) for row in results.rows]
    alone = 'compare.models=["network"]'
    _, ridged = simulated("demir2025/fig1b", *AT, alone, "training.ridge=1e-3")
    for rows in (halved, unscaled, ridged.rows):
        assert "network" in red(experiment, rows)


def test_a_wrong_degree_is_seen():
    """Real networks: the gap to the polynomial of degree 1 is the published one, that of degree 2
    is not."""
    experiment, results = simulated(
        "demir2025/fig4b", "sweep.scaling.weighting=[0.172414, 0.344828]",
        "sweep.scaling.strength=[0.655172, 0.827586]",
        'compare.models=["network", "hermite:1", "hermite:2"]',
    )  # fmt: skip
    one = [row for row in results.rows if row.model != "hermite:2"]
    assert not red(experiment, one)
    two = [row for row in results.rows if row.model != "hermite:1"]
    two = [replace(row, model=row.model.replace(":2", ":1")) for row in two]
    assert red(experiment, two) == {"hermite:1 − network"}


def test_a_data_set_moves_a_whole_figure():
    """Twelve repetitions whose data move all points of one together: the shift of the published
    figure is known in units of theirs, with the chance of a test set on top."""
    experiment, rng = Experiment.read("demir2025/fig6"), np.random.default_rng(2)
    moved, rows = 1 + 0.06 * rng.standard_normal(12), []
    for point in experiment.points:
        own = [p for p in published_figure("demir2025/fig6").points if p.at(point.settings)]
        value = next(p.value for p in own if p.model == "network")
        rows += [
            Row(point.settings, "network", seed, train_objective=1.1 * value * factor,
                number=point.number)
            for seed, factor in enumerate(moved / moved.mean())
        ]  # fmt: skip
    shift = common_shift(experiment, Results("x", tuple(rows)))
    assert shift.published == pytest.approx(1 / 1.1 - 1) and shift.data_sets == 12
    assert shift.spread == pytest.approx(np.std(moved / moved.mean(), ddof=1))
    assert common_shift(experiment, Results("x", tuple(r for r in rows if r.seed < 5))) is None
    assert common_shift(Experiment.read("demir2025/fig2a"), Results("x")) is None
    assert chance_of_tests(published_figure("demir2025/fig1a"), "test_error") == 0.02
    assert chance_of_tests(published_figure("demir2025/fig6"), "train_objective") == 0
    assert chance_of_tests(published_figure("demir2025/fig3a"), "test_error") == 0
