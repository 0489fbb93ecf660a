"""What the published figures need of a spec: ranks, strengths, teachers, rows, redraw, variants."""

import copy

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.problem import Problem
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment
from onegrad.theory.chance import chance_of
from onegrad.theory.draws import points

BASE = {
    "data": {"model": "mixture", "dim": 80},
    "labels": {"link": "relu"},
    "network": {"activation": "tanh", "width": 60},
    "training": {"samples": 90, "ridge": 1e-2},
    "scaling": {"strength": 0.74, "weighting": 0.5},
}


def problem(**tables):
    spec = copy.deepcopy(BASE)
    for name, table in tables.items():
        spec[name] = {**spec.get(name, {}), **table}
    return Problem.from_spec(spec)


def test_ranks_and_strengths_of_each_component():
    ours = problem(data={"ranks": [1, 3], "strengths": [[2.0], [1.0, 0.5, 0.2]]})
    population = ours.instance(0).population
    assert [s.shape[1] for s in population.spikes] == [1, 3]
    assert np.allclose(population.strengths[1], ours.spread * np.array([1.0, 0.5, 0.2]))
    assert population.mean_trace == pytest.approx(ours.mean_trace)
    assert ours.mean_trace == pytest.approx(80 + ours.spread * (0.5 * 2 + 0.5 * 1.7))
    for spikes in population.spikes:
        assert np.allclose(spikes.T @ spikes, np.eye(spikes.shape[1]))
    same = problem(data={"rank": 2, "strengths": [1.0, 0.5]}).instance(0).population
    nested = problem(data={"ranks": [2, 2], "strengths": [[1.0, 0.5]] * 2}).instance(0).population
    assert all(np.array_equal(a, b) for a, b in zip(same.spikes, nested.spikes, strict=True))
    assert 0 < og.predict(ours).test_error < 1


@pytest.mark.parametrize(
    "data, word",
    [
        ({"rank": 2, "ranks": [1, 2]}, "data.ranks"),
        ({"ranks": [1]}, "one entry per component"),
        ({"ranks": [1, 2], "strengths": [[1.0], [1.0]]}, r"ranks = \[1, 2\]"),
        ({"ranks": [1, 0], "alignment": 0.5}, "data.alignment"),
        ({"strengths": "gamma"}, "data.strengths"),
    ],
)
def test_bad_structure_gets_advice(data, word):
    with pytest.raises(SpecError, match=word):
        problem(data=data)


def test_strengths_that_are_drawn():
    ours = problem(data={"rank": 3, "strengths": "uniform"})
    drawn = [ours.instance(seed).population.strengths for seed in range(200)]
    for first, second in drawn:
        assert first.sum() == pytest.approx(second.sum())
        assert np.all(np.diff(first) <= 0) and first[0] <= ours.spread
    mean = np.mean([first.sum() for first, _ in drawn])
    assert mean == pytest.approx(1.5 * ours.spread, rel=0.1)
    assert ours.mean_trace == pytest.approx(80 + 1.5 * ours.spread)
    chance = chance_of(ours, "auto", 0)
    tasks = [chance.task(z) for z in points(len(chance.variables), 64)]
    strongest = [np.linalg.eigvalsh(task.geometry.covariances[0])[-1] - 1 for task in tasks]
    assert np.mean(strongest) == pytest.approx(0.75 * ours.spread, rel=0.07)


def test_theory_averages_over_drawn_strengths():
    """Against networks, and against the theory at the mean strength, which is another number."""
    ours = problem(data={"dim": 200, "rank": 1, "strengths": "uniform"},
                   network={"width": 150}, training={"samples": 250})  # fmt: skip
    found = og.predict(ours)
    assert found.spread_over_draws > 0.05 * found.test_error
    network = og.simulate(ours, seeds=60, control_variates=True).test_error
    assert abs(found.test_error - network.mean) < 4 * network.standard_error + 0.03 * network.mean
    fixed = problem(data={"dim": 200, "rank": 1, "strengths": [0.5]},
                    network={"width": 150}, training={"samples": 250})  # fmt: skip
    off = abs(og.predict(fixed).test_error - network.mean)
    assert off > 4 * network.standard_error + 0.03 * network.mean


def test_a_teacher_at_a_cosine_to_a_spike():
    ours = problem(labels={"cosine": 0.6}, data={"dim": 400})
    instance = ours.instance(3)
    unit = instance.teacher.direction / np.linalg.norm(instance.teacher.direction)
    assert unit @ instance.population.spikes[0][:, 0] == pytest.approx(0.6)
    ends = [og.predict(problem(labels={"cosine": c}, data={"dim": 400})).test_error
            for c in (0.0, 0.6, 1.0)]  # fmt: skip
    assert ends[0] < ends[1] < ends[2]
    network = og.simulate(ours, seeds=30).test_error
    assert ends[1] == pytest.approx(network.mean, abs=4 * network.standard_error + 0.05 * ends[1])
    with pytest.raises(SpecError, match=r"labels.cosine"):
        problem(labels={"cosine": 0.5}, data={"rank": 0})
    with pytest.raises(SpecError, match=r"labels.cosine"):
        problem(labels={"cosine": 0.5, "direction": "spikes"})


def test_rows_of_unit_norm():
    from onegrad.simulate.network.trial import draw_weights

    ours = problem(data={"model": "isotropic"}, network={"rows": "unit"})
    weights = draw_weights(ours, Streams(0, 0))
    assert np.allclose(np.linalg.norm(weights, axis=1), 1.0)
    plain = draw_weights(problem(data={"model": "isotropic"}), Streams(0, 0))
    assert np.allclose(weights, plain / np.linalg.norm(plain, axis=1, keepdims=True))


def rows(redraw, models=("network", "hermite"), seeds=2):
    compare = {"models": list(models), "seeds": seeds, "redraw": redraw}
    (point,) = Experiment.from_tables(BASE | {"compare": compare}).points
    return [run_group([point], models, seed) for seed in range(seeds)]


def test_redraw_network_keeps_the_data_set():
    """Linear regression sees the data alone: the same in all repetitions, unless all is drawn."""
    same, anew = rows("network", ("network", "linear")), rows("all", ("network", "linear"))
    assert same[0][1].test_error == same[1][1].test_error
    assert same[0][0].test_error != same[1][0].test_error
    assert anew[0][1].test_error != anew[1][1].test_error
    compare = {"redraw": "network", "control_variates": True}
    with pytest.raises(SpecError, match="control_variates"):
        Experiment.from_tables(BASE | {"compare": compare})


def test_models_of_a_fixed_degree():
    names = ["network", "hermite", "hermite:1", "hermite:3", "linear", "linear:all"]
    found = og.simulate(problem(), names, seeds=3).estimates
    assert found["hermite:3"].test_error == found["hermite"].test_error  # what the rule gives
    assert found["hermite:1"].test_error != found["hermite"].test_error
    assert found["linear:all"].test_error.mean < found["linear"].test_error.mean
    forced = og.simulate(problem(), ["hermite", "hermite:3"], seeds=1, degree=1).estimates
    assert forced["hermite"].test_error.mean != forced["hermite:3"].test_error.mean
    for wrong in ("hermite:0", "hermite:31", "hermite:x", "network:1", "linear:some"):
        with pytest.raises(SpecError, match="hermite:1 to hermite:30"):
            og.simulate(problem(), [wrong], seeds=1)
