"""What a long run costs is said before it starts, and asked in a terminal."""

import time

import pytest
import typer

from onegrad.cli import arguments
from onegrad.runs import cost
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment

SPEC = {
    "data": {"model": "mixture", "dim": 20},
    "network": {"width": 15},
    "training": {"samples": 20},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "theory"], "seeds": 4},
}


def of(**changes):
    tables = {name: dict(table) for name, table in SPEC.items()}
    for key, value in changes.items():
        table, _, name = key.partition("__")
        tables.setdefault(table, {})[name.replace("__", ".")] = value
    experiment = Experiment.read(tables)
    count = experiment.compare.largest_count
    missing = {point.number: count for point in experiment.points}
    return cost.cost_of(experiment, missing, len(experiment.points), 2)


def test_small_runs_are_not_worth_a_word():
    assert not of().worth_saying


@pytest.mark.parametrize(
    "changes",
    [
        {"data__dim": 10**7, "network__width": 1000, "training__samples": 1000},
        {"network__width": 10**7},
        {"compare__seeds": 10**7},
    ],
    ids=["dim", "width", "seeds"],
)
def test_sizes_that_take_hours_are_said_with_time_and_memory(changes):
    found = of(**changes)
    assert found.worth_saying
    text = str(found)
    assert "repetitions" in text and "of memory" in text
    assert any(unit in text for unit in ("hours", "days", "years")) or not found.fits


def test_the_estimate_is_right_to_a_factor_of_three():
    """In CPU time of one worker, for a size at which products count."""
    changes = {"data__dim": 500, "network__width": 500, "training__samples": 500}
    found = of(**changes, compare__models=["network"])
    size = {"network": {"width": 500}, "training": {"samples": 500}}
    data = {"data": SPEC["data"] | {"dim": 500}}
    tables = SPEC | size | data | {"compare": {"models": ["network"], "seeds": 4}}
    experiment = Experiment.read(tables)
    from onegrad.simulate.simulate import run_group

    run_group(experiment.points, ("network",), 0)
    start = time.process_time()
    for seed in range(4):
        run_group(experiment.points, ("network",), seed)
    took = (time.process_time() - start) / found.workers
    assert took / 3 < found.seconds  # the estimate measures this machine as busy as it is
    assert found.seconds < 60


def test_what_is_stored_already_costs_nothing(tmp_path):
    said = []
    experiment = Experiment.read(SPEC | {"compare": {"models": ["network", "linear"], "seeds": 4}})
    run_experiment(experiment, tmp_path, Local(1), agree=said.append)
    run_experiment(experiment, tmp_path, Local(1), agree=said.append)
    assert (said[0].repetitions, said[0].predictions) == (4, 0)
    assert (said[1].repetitions, said[1].predictions, said[1].seconds) == (0, 0, 0.0)


class Terminal:
    def __init__(self, there):
        self.there = there

    def isatty(self):
        return self.there

    def write(self, text):
        pass

    def flush(self):
        pass


@pytest.mark.parametrize(("there", "yes", "asked"), [(1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_a_terminal_is_asked_above_two_hours(monkeypatch, there, yes, asked):
    long = of(compare__seeds=10**7)
    questions = []
    monkeypatch.setattr(typer, "confirm", lambda *words, **_: questions.append(words))
    monkeypatch.setattr(arguments.sys, "stdin", Terminal(there))
    monkeypatch.setattr(arguments.sys, "stderr", Terminal(there))
    arguments.agreement(bool(yes))(long)
    arguments.agreement(bool(yes))(of())
    assert len(questions) == asked
