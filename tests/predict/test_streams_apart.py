"""Theory and simulation share no random number, but what the problem itself fixes."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import PURPOSES, Streams

MIXTURE = {
    "data": {"model": "mixture", "dim": 60, "spread": 5.0},
    "labels": {"link": "tanh"},
    "network": {"width": 40},
    "training": {"samples": 80, "ridge": 1e-2, "rate": 40.0},
}


def changed(**tables):
    return {name: {**MIXTURE[name], **tables.get(name, {})} for name in MIXTURE}


CASES = {
    "types": (MIXTURE, {}),
    "layers": (MIXTURE, {"method": "layer"}),
    "orthogonal": (changed(data={"directions": "orthogonal"}), {"method": "layer"}),
    "fixed": (changed(data={"directions": "fixed"}), {"method": "layer"}),
    "drawn strengths": (changed(data={"strengths": "uniform", "rank": 2}), {}),
    "Adam": (changed(training={"optimiser": "adam", "rate": 1.0}), {}),
    "two steps on one batch": (changed(training={"steps": 2, "batch": "same"}), {}),
    "classes": (
        changed(data={"weights": [0.4, 0.3, 0.3], "mean": 2.0},
                labels={"model": "component", "link": "relu"}), {},
    ),
    "a bulk": (changed(data={"spectrum": "power-law", "exponent": 0.6}), {}),
    "a bulk alone": (
        {**MIXTURE, "data": {"model": "isotropic", "dim": 60, "spectrum": "power-law",
                             "exponent": 0.6}}, {},
    ),
    "digits": (
        {"data": {"model": "digits"}, "network": {"width": 40},
         "training": {"samples": 60, "ridge": 1e-2},
         "scaling": {"strength": 0.74, "weighting": 0.5}}, {"accuracy": 0.03},
    ),
}  # fmt: skip
CASES["classes"][0]["labels"].pop("link")


def state(generator):
    return generator.bit_generator.state["state"]["state"].tobytes()


@pytest.fixture
def drawn(monkeypatch):
    """The states of all streams that were opened."""
    found, original = set(), Streams._generator

    def opened(self, place, purpose):
        generator = original(self, place, purpose)
        found.add(state(generator))
        return generator

    monkeypatch.setattr(Streams, "_generator", opened)
    return found


@pytest.mark.parametrize("name", CASES)
def test_no_stream_of_the_theory_is_one_of_the_simulation(name, drawn):
    tables, options = CASES[name]
    problem = og.Problem.from_spec(tables)
    og.simulate(problem, seeds=3, rng=5, control_variates=name in ("types", "layers"))
    simulated = set(drawn)
    drawn.clear()
    found = og.predict(problem, rng=5, **options)
    assert found.status != "failed"
    allowed = {state(Streams(5, 0).shared_rng("structure"))} if name == "fixed" else set()
    assert drawn & simulated == allowed


def test_rows_of_the_model_theory_have_streams_of_their_own(drawn, tmp_path):
    tables = changed(training={"optimiser": "sign", "rate": 1.0})
    spec = {**tables, "compare": {"models": ["network"], "seeds": 2}}
    og.run(spec, out=tmp_path / "network")
    simulated = set(drawn)
    drawn.clear()
    og.run({**tables, "compare": {"models": ["theory"]}}, out=tmp_path / "theory")
    assert drawn and simulated and not drawn & simulated


def test_all_streams_of_a_root_differ():
    states = [
        state(Streams(3, repetition, theory=theory).rng(purpose))
        for repetition in range(40)
        for theory in (False, True)
        for purpose in PURPOSES
    ]
    assert len(set(states)) == len(states)


def test_equal_seeds_give_equal_answers_and_others_do_not():
    problem = og.Problem.from_spec(MIXTURE)
    first, again, other = (
        og.predict(problem, method="layer", rng=seed).test_error for seed in (1, 1, 2)
    )
    assert first == again != other


def test_directions_that_are_fixed_are_those_of_the_simulation():
    """Var y depends on how fixed directions lie: it is that of the simulated repetitions."""
    tables = changed(data={"directions": "fixed", "weights": [0.7, 0.3]})
    problem = og.Problem.from_spec(tables)
    found = og.predict(problem, method="layer", rng=7)
    assert np.isclose(found.label_variance, problem.instance(7).label_variance, rtol=1e-12)
