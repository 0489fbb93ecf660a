"""Labels of several indices: theory and exact risk against simulation, and wrong variants."""

from functools import cache

import pytest

import onegrad as og

SEEDS = 16
FINITE = 0.015  # what may be left at n = 200


def problem(labels, rate, **data):
    return og.Problem(
        data={"model": "isotropic", "dim": 200} | data, labels=labels,
        network={"convention": "isotropic", "activation": "relu", "width": 240},
        training={"samples": 400, "ridge": 0.1, "rate": rate},
    )  # fmt: skip


POLYNOMIAL = {"model": "multi-index", "link": [[0, 0.5], [1.0, 0.7]], "noise": 0.2}
CASES = {
    "polynomial, step": problem(POLYNOMIAL, 6.0),
    "xor of spikes": problem(
        {"model": "multi-index", "link": "xor", "direction": "spikes", "flip": 0.05}, 0.0,
        model="mixture", weights=[1.0], rank=2, spread=20.0, directions="orthogonal",
    ),
}  # fmt: skip


@cache
def simulation(case: str):
    return og.simulate(CASES[case], seeds=SEEDS)


@pytest.fixture(scope="module", params=CASES)
def both(request):
    setting = CASES[request.param]
    return setting, simulation(request.param), og.predict(setting)


def apart(found, theory: float) -> float:
    """In units of what is allowed."""
    return abs(theory - found.mean) / (4 * found.standard_error + FINITE * found.mean)


def test_indices_agree(both):
    _, simulated, theory = both
    assert theory.error_estimate < 0.1
    assert apart(simulated.test_error, theory.test_error) < 1
    assert apart(simulated.train_error, theory.train_error) < 1
    if theory.misclassification is not None:
        assert apart(simulated.misclassification, theory.misclassification) < 1.5


def test_a_second_index_taken_for_noise_fails():
    """E[y|t₁] = t₁ as the link of a single index, all the rest as noise of the same variance."""
    noise = (0.5**2 + 0.7**2 + 0.2**2) ** 0.5
    simulated = simulation("polynomial, step")
    wrong = og.predict(problem({"link": "identity", "noise": noise}, 6.0))
    assert apart(simulated.test_error, wrong.test_error) > 1


def test_indices_without_their_spikes_fail():
    setting = CASES["xor of spikes"]
    labels = setting.labels.model_copy(update={"direction": "random"})
    wrong = og.predict(setting.model_copy(update={"labels": labels}))
    simulated = simulation("xor of spikes")
    assert apart(simulated.test_error, wrong.test_error) > 2


def test_the_exact_risk_is_that_of_a_test_set(both):
    setting, _, _ = both
    models = ["network", "hermite:3", "linear"]
    exact = og.simulate(setting, models, seeds=1, risk="exact").estimates
    many = {"risk": "sampled", "test_samples": 60_000}
    sampled = og.simulate(setting, models, seeds=1, **many).estimates
    for name in models:
        one, other = exact[name].test_error.mean, sampled[name].test_error.mean
        assert one == pytest.approx(other, rel=0.02)
    automatic = og.simulate(setting, "conditional-gaussian", seeds=1)
    assert 0 < automatic.test_error.mean < 2


def test_one_index_is_a_single_index():
    """The same theory, whichever way the label is said."""
    several = og.predict(problem({"model": "multi-index", "indices": 1, "link": "xor"}, 3.0))
    single = og.predict(problem({"link": "sign"}, 3.0))
    assert several.test_error == pytest.approx(single.test_error, rel=2e-3)
    assert several.train_error == pytest.approx(single.train_error, rel=2e-3)
    assert several.misclassification == pytest.approx(single.misclassification, rel=0.01)


def test_a_loss_that_bends_needs_nodes_along_the_labels():
    """Huber's loss of a product: rules that know E y and E y² alone are not enough."""
    setting = og.Problem(
        data={"model": "isotropic", "dim": 120},
        labels={"model": "multi-index", "indices": 2, "link": "product"},
        network={"activation": "relu", "width": 120},
        training={"samples": 240, "ridge": 1e-3, "rate": 0.0, "loss": "huber"},
    )  # fmt: skip
    found = og.simulate(setting, seeds=16).test_loss
    for method in ("conditional", "layer"):
        assert apart(found, og.predict(setting, method).test_loss) < 1
