"""The order of the work, and when a point has enough repetitions."""

import math
import random

import numpy as np
import pytest

from onegrad.errors import SpecError
from onegrad.results.estimates import Estimate
from onegrad.results.rows import Row
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.runs.schedule import Schedule, caution, interim_analyses, next_count
from onegrad.simulate.control_variates import Control
from onegrad.spec.experiment import Compare, Experiment

SPEC = {
    "data": {"model": "mixture", "dim": 30},
    "network": {"width": 20},
    "training": {"samples": 40},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 3},
    "sweep": {"network.activation": ["relu", "erf"], "training.samples": [40, 60]},
}
AUTO = {"models": ["network", "hermite"], "seeds": "auto", "precision": 0.05}


def experiment(**changes):
    return Experiment.read(SPEC | changes)


def finished(schedule, unit, value=0.5):
    rows = [Row({}, m, unit.seed, value, value, value, number=i) for i, m in unit.cells]
    schedule.arrived(unit, rows)


def test_seed_by_seed_and_theory_early():
    schedule = Schedule(experiment())
    units = []
    while (unit := schedule.next()) is not None:
        units.append(unit)
        finished(schedule, unit)
    order = [(unit.models[0] == "theory", unit.seed) for unit in units]
    # two groups of shared draws: their first repetition, four theories, the other repetitions
    assert order == [(False, 0)] * 2 + [(True, 0)] * 4 + [(False, 1)] * 2 + [(False, 2)] * 2
    assert schedule.done == schedule.total == 4 * (2 * 3 + 1)
    assert {unit.points for unit in units if unit.models[0] != "theory"} == {(0, 2), (1, 3)}


def test_what_is_stored_is_not_given_out():
    schedule = Schedule(experiment())
    for number in range(4):
        schedule.stored(Row({}, "network", seed, 0.5, number=number) for seed in range(3))
    schedule.stored([Row({}, "hermite", 1, 0.5), Row({}, "theory", 0, 0.5)])
    assert schedule.done == 14  # at once, and not when their turn comes
    assert schedule.left[0, "hermite"] == 2 and schedule.left[0, "theory"] == 0
    cells = set()
    while (unit := schedule.next()) is not None:
        cells |= {(unit.seed, *cell) for cell in unit.cells}
        finished(schedule, unit)
    theories = {(0, i, "theory") for i in (1, 2, 3)}
    hermite = {(seed, i, "hermite") for seed in range(3) for i in range(4)} - {(1, 0, "hermite")}
    assert cells == theories | hermite
    assert schedule.done == schedule.total


def test_parts_of_a_failed_unit_keep_ridges_together():
    spec = experiment(sweep={"network.activation": ["relu", "erf"], "training.ridge": [1e-3, 1.0]})
    schedule = Schedule(spec)
    unit = schedule.next()
    assert unit.points == (0, 1, 2, 3)
    parts = schedule.parts(unit)
    assert {(part.points, part.models) for part in parts} == {
        ((0, 1), ("network",)), ((0, 1), ("hermite",)), ((2, 3), ("network",)),
        ((2, 3), ("hermite",)),
    }  # fmt: skip
    assert frozenset().union(*(part.cells for part in parts)) == unit.cells
    for part in parts:
        finished(schedule, part)
    while (unit := schedule.next()) is not None:
        finished(schedule, unit)
    assert schedule.done == schedule.total


# --- seeds = "auto" --------------------------------------------------------------------------


def errors(spread, count=2000, mean=1.0, seed=0):
    draws = mean + spread * np.random.default_rng(seed).standard_normal(count)
    return dict(enumerate(draws.tolist()))


def models(*errors):
    """Of models without features of their own: factors of control variates are fitted."""
    return dict(zip(("linear", "kernel"), errors, strict=False))


def test_enough_is_enough():
    compare = Compare(seeds="auto", precision=0.01)
    assert next_count(compare, 8, models(errors(0.001))) == 8
    assert next_count(compare, 8, models(errors(0.0))) == 8
    assert next_count(compare, 8, models(errors(0.0, mean=0.0))) == 8
    # ten times too uncertain: a hundred times as many, but never more than twice at a time
    assert next_count(compare, 400, models(errors(1.0))) == 800
    assert next_count(compare, 800, models(errors(1.0))) == Compare().most_seeds
    # the worst model counts; one that never worked does not
    assert next_count(compare, 8, models(errors(0.001), errors(1.0))) == 16
    assert next_count(compare, 8, models(errors(0.001), dict.fromkeys(range(8), math.nan))) == 8
    # a little more at least, so that nobody looks after every seed
    just_above = {seed: 1 + 0.09 * (-1) ** seed for seed in range(80)}
    assert next_count(compare, 80, models(just_above)) == 90


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_the_precision_is_reached_and_not_by_much_more_than_needed(spread):
    compare = Compare(seeds="auto", precision=0.01, most_seeds=5000)
    counts, deviations = [], []
    for seed in range(200):
        values = errors(spread, 5000, seed=seed)
        *_, count = interim_analyses(compare, models(values))
        used = [values[s] for s in range(count)]
        assert np.std(used, ddof=1) / math.sqrt(count) <= 0.01 * abs(np.mean(used))
        counts.append(count)
        deviations.append((np.mean(used) - 1) / (np.std(used, ddof=1) / math.sqrt(count)))
    assert np.mean(counts) < 1.15 * (spread / 0.01) ** 2
    # stopping by what was seen makes the error bars a little too small, not more than that
    assert np.std(deviations) < 1.25
    assert abs(np.mean(deviations)) < 4 * 1.25 / math.sqrt(200)


def test_controls_save_repetitions_and_keep_the_error_bars_right():
    """Values of which a control explains 90 %: a tenth of the repetitions, the same coverage."""
    compare = Compare(seeds="auto", precision=0.01, most_seeds=5000)
    counts, deviations = [], []
    for seed in range(300):
        control = errors(0.3, 5000, mean=0.0, seed=seed)
        rest = errors(0.1, 5000, mean=1.0, seed=10_000 + seed)
        values = {s: rest[s] + control[s] for s in control}
        both = {s: (c, 0.0) for s, c in control.items()}
        *_, count = interim_analyses(compare, models(values), models(both))
        mean, error = Estimate.of(
            [values[s] for s in range(count)], [[control[s] for s in range(count)]]
        )
        assert error <= 0.01 * abs(mean)
        counts.append(count)
        deviations.append((mean - 1) / error)
    assert np.mean(counts) < 1.15 * (0.1 / 0.01) ** 2
    assert np.std(deviations) < 1.25
    assert abs(np.mean(deviations)) < 4 * 1.25 / math.sqrt(300)
    *_, alone = interim_analyses(compare, models(values))  # without them: ten times as many
    assert alone > 5 * np.mean(counts)


def test_few_seeds_stop_with_caution(monkeypatch):
    """Four are enough where factors are known; the promised precision is kept all the same."""
    compare = Compare(seeds="auto", precision=0.01)
    settled = {"network": errors(0.005)}
    none = {"network": dict.fromkeys(range(2000), (0.0, 0.0))}
    assert list(interim_analyses(compare, settled, none)) == [4]
    assert list(interim_analyses(compare, settled)) == [8]
    assert list(interim_analyses(compare, models(errors(0.005)), models(none["network"]))) == [10]
    asked = compare.model_copy(update={"fewest_seeds": 6})
    assert list(interim_analyses(asked, settled, none)) == [6]
    assert [round(caution(n), 2) for n in (4, 6, 8, 9)] == [1.67, 1.15, 1.0, 1.0]

    def deviation():
        """Of the mean at the end, in the precision that was asked for: root mean square."""
        off = []
        for seed in range(1500):
            values = errors(0.05, 200, seed=seed)
            *_, count = interim_analyses(compare, {"network": values}, none)
            off.append(np.mean([values[s] for s in range(count)]) - 1)
        return float(np.sqrt(np.mean(np.square(off)))) / 0.01

    assert deviation() < 1.16  # eight seeds without control variates have 1.06, from 3000 runs
    monkeypatch.setattr("onegrad.runs.schedule.caution", lambda count: 1.0)
    assert deviation() > 1.16  # negative control


def play(spec, seed):
    """A run whose units come back in random order, several under way at a time."""
    rng = random.Random(seed)
    schedule, under_way, asked = Schedule(spec), [], []
    while True:
        while len(under_way) < rng.randint(1, 9) and (unit := schedule.next()) is not None:
            under_way.append(unit)
        if not under_way:
            return sorted(asked), schedule
        unit = under_way.pop(rng.randrange(len(under_way)))
        rows = []
        for i, model in sorted(unit.cells):
            noise = np.random.default_rng([i, unit.seed]).standard_normal()
            value = 1 + (0.1 + 0.1 * i) * noise
            # control variates of mean zero, and of no help
            c, d = np.random.default_rng([9, i, unit.seed]).standard_normal(2)
            controls = (Control(c, c, c), Control(d, d, d))
            rows.append(Row({}, model, unit.seed, value, controls=controls, number=i))
            asked.append((i, model, unit.seed, unit.points))
        schedule.arrived(unit, rows)


def test_rounds_do_not_depend_on_who_came_first():
    spec = experiment(compare=AUTO)
    assert spec.controlled
    first, schedule = play(spec, 0)
    for seed in range(1, 6):
        assert play(spec, seed)[0] == first
    counts = {i: 1 + max(s for j, _, s, _ in first if j == i) for i in range(4)}
    assert counts[0] < counts[3]
    for i, count in counts.items():
        *_, replayed = interim_analyses(
            spec.compare,
            {m: schedule.values[i, m] for m in spec.compare.models},
            {m: schedule.controls[i, m] for m in spec.compare.models},
        )
        assert replayed == count >= 4
    assert schedule.done == schedule.total == len(spec.compare.models) * sum(counts.values())


def test_read_back_the_same(tmp_path):
    """From a fresh run, a rerun, one with workers, and a store that has more than is asked for."""
    spec = experiment(compare=AUTO)
    results = run_experiment(spec, tmp_path / "fresh", Local(1))
    seeds = {(str(r.point), r.model): r.seed + 1 for r in results.rows}
    assert len(set(seeds.values())) > 1
    for summary in results.summaries():
        estimate = summary.test_error
        assert estimate.standard_error <= 0.05 * estimate.mean
    rows = [(r.point, r.model, r.seed, r.test_error) for r in results.rows]
    again = run_experiment(spec, tmp_path / "fresh", Local(1))
    run_experiment(experiment(compare=AUTO | {"seeds": 60}), tmp_path / "more", Local(1))
    more = run_experiment(spec, tmp_path / "more", Local(1))
    workers = run_experiment(spec, tmp_path / "workers", Local(2))
    for other in (again, more, workers):
        assert [(r.point, r.model, r.seed, r.test_error) for r in other.rows] == rows


def test_at_most(tmp_path):
    spec = experiment(compare=AUTO | {"precision": 1e-6, "most_seeds": 11}, sweep={})
    assert len(run_experiment(spec, tmp_path, Local(1)).rows) == len(spec.compare.models) * 11


@pytest.mark.parametrize("bad", [{"seeds": "many"}, {"precision": 0}, {"most_seeds": 0}])
def test_bad_values_get_advice(bad):
    with pytest.raises(SpecError, match=r"compare\." + next(iter(bad))):
        experiment(compare=AUTO | bad)
