"""Labels ±1 with flips: theory against simulation, and what forgets the flips against both."""

import math

import pytest

import onegrad as og

SEEDS = 16
FINITE = 0.01  # what may be left at n = 200, beyond the theory's own estimate


def problem(data, labels, rate):
    return og.Problem(
        data=data, labels=labels,
        network={"convention": "isotropic", "activation": "tanh", "width": 250},
        training={"samples": 400, "ridge": 0.1, "rate": rate},
    )  # fmt: skip


CASES = {
    "sign teacher": ({"model": "isotropic", "dim": 200}, {"link": "sign", "flip": 0.1}, 3.0),
    "components": (
        {"model": "mixture", "dim": 200, "spread": 4.0, "mean": 2.0, "directions": "orthogonal"},
        {"model": "component", "flip": 0.2}, 0.0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def both(request):
    setting = problem(*CASES[request.param])
    simulated = og.simulate(setting, seeds=SEEDS, control_variates=True)
    return request.param, simulated, og.predict(setting)


def apart(found, theory: float) -> float:
    """In units of what is allowed."""
    return abs(theory - found.mean) / (4 * found.standard_error + FINITE * found.mean)


def test_flips_agree(both):
    _, simulated, theory = both
    assert apart(simulated.test_error, theory.test_error) < 1
    assert apart(simulated.train_error, theory.train_error) < 1
    assert apart(simulated.misclassification, theory.misclassification) < 1


def test_labels_taken_as_right_fail(both):
    case, simulated, _ = both
    data, labels, rate = CASES[case]
    wrong = og.predict(problem(data, labels | {"flip": 0.0}, rate))
    assert apart(simulated.test_error, wrong.test_error) > 2
    assert apart(simulated.misclassification, wrong.misclassification) > 2


def test_the_exact_risk_is_that_of_a_test_set(both):
    setting = problem(*CASES[both[0]])
    exact = og.simulate(setting, seeds=2).test_error.mean
    sampled = og.simulate(setting, seeds=2, risk="sampled", test_samples=20_000).test_error.mean
    assert sampled == pytest.approx(exact, rel=0.02)


def test_the_variance_of_flipped_labels():
    setting = problem(*CASES["components"])
    assert setting.instance(0).label_variance == pytest.approx(1.0)
    assert setting.label_noise_variance == pytest.approx(4 * 0.2 * 0.8)
    assert math.isclose(setting.label_kept, 0.6)


def strong_ridge(counts: str) -> og.Problem:
    """Means, and a ridge that leaves outputs with little variance but that of their mean part."""
    return og.Problem(
        data={"model": "mixture", "dim": 120, "mean": 2.0, "rank": 0, "spread": 1.0,
              "directions": "orthogonal", "counts": counts},
        labels={"model": "component"}, network={"activation": "relu", "width": 120},
        training={"samples": 120, "ridge": 0.1, "rate": 0.0},
    )  # fmt: skip


@pytest.mark.parametrize("counts", ["drawn", "proportional"])
def test_the_mean_part_fluctuates_from_one_training_set_to_the_next(counts):
    """One training set has more samples of one class than the next, which shifts all outputs.

    Negative controls: the limit, which does not know it, and fixed counts, which do less (eq. (36)
    of notes/2026-11-theory.md).
    """
    setting = strong_ridge(counts)
    found = og.simulate(setting, seeds=100).misclassification
    room = 4 * found.standard_error + 0.03 * found.mean
    theory = og.predict(setting).misclassification
    assert abs(theory - found.mean) < room
    if counts == "drawn":
        assert og.predict(setting, finite_size=False).misclassification < found.mean - room
        assert og.predict(strong_ridge("proportional")).misclassification < theory - room
