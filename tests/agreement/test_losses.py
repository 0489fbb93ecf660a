"""Every loss of the readout: theory against networks, and theories that are wrong in one place.

The short form of losses_grid.py, whose table is in notes/2026-11-losses.md.
"""

import numpy as np
import pytest

import onegrad as og

from .losses_grid import QUANTITIES, Setting, compare

N, SEEDS = 200, 12
# beside four standard errors: what is of order 1/n at n = 200 (2 % at n = 600)
FINITE = {"train_loss": 0.04, "test_loss": 0.03, "misclassification": 0.06, "train_error": 0.05,
          "test_error": 0.04}  # fmt: skip
CASES = [
    (Setting("means", 1.0, "no step"), ("logistic", "hinge", "squared-hinge")),
    (Setting("spikes", 0.3, "no step"), ("logistic", "absolute")),
    (Setting("sign teacher", 1.0, "step"), ("logistic", "hinge", "huber")),
    (Setting("sign teacher", 3.0, "no step"), ("squared-hinge", "absolute")),
    (Setting("flips", 0.3, "step"), ("logistic", "hinge", "huber")),
]


@pytest.mark.parametrize(("setting", "losses"), CASES)
def test_theory_and_network_agree(setting, losses):
    for loss, one in compare(setting, N, SEEDS, losses).items():
        for quantity in QUANTITIES:
            said = f"{loss} {quantity}: {one.gap[quantity]:+.3f} ± {one.error[quantity]:.3f}"
            assert one.within(quantity, FINITE[quantity]), said


@pytest.fixture(scope="module")
def logistic():
    """A case whose deviation is small, to be spoiled."""
    setting = Setting("sign teacher", 1.0, "step")
    problem = setting.problem(N, "logistic")
    return problem, og.simulate(problem, seeds=40), og.predict(problem)


def off(simulated, theory):
    """The largest of the deviations of losses and squared errors, in units of what is allowed."""
    found = []
    for name in ("train_loss", "test_loss", "train_error", "test_error"):
        e = getattr(simulated, name)
        allowed = 4 * e.standard_error + FINITE[name] * e.mean
        found.append(abs(getattr(theory, name) - e.mean) / allowed)
    return max(found)


def test_the_right_theory_is_within(logistic):
    _, simulated, theory = logistic
    assert off(simulated, theory) < 1


@pytest.mark.parametrize("optimiser", ["muon", "sign"])
def test_the_matrix_engine_knows_every_loss(optimiser):
    problem = og.Problem(
        data={"model": "isotropic", "dim": N}, labels={"link": "sign"},
        network={"width": N, "activation": "tanh"},
        training={"samples": N, "ridge": 1e-3, "optimiser": optimiser, "rate": 1.0,
                  "loss": "logistic"},
    )  # fmt: skip
    theory, simulated = og.predict(problem), og.simulate(problem, seeds=16)
    assert theory.method.startswith("matrix")
    assert off(simulated, theory) < 1
    wrong = simulated.misclassification
    assert abs(theory.misclassification - wrong.mean) < 4 * wrong.standard_error + 0.03 * wrong.mean


def test_one_layer_given_as_it_is():
    """`predict_readout` with a loss; the squared one by the same iteration is what it was."""
    spec = {
        "data": {"model": "isotropic", "dim": 80}, "labels": {"link": "sign"},
        "network": {"width": 60, "activation": "relu"},
        "training": {"samples": 120, "rate": 1.0, "ridge": 1e-2, "loss": "logistic"},
    }  # fmt: skip
    problem = og.Problem.from_spec(spec)
    weights = np.random.default_rng(0).standard_normal((60, 80)) / np.sqrt(80)
    instance = problem.instance(0)
    found = og.predict_readout(weights, problem, instance=instance)
    assert 0 < found.train_loss < found.test_loss and 0 < found.misclassification < 0.5
    wide = og.Problem.from_spec({**spec, "training": {**spec["training"], "loss": "huber",
                                                      "delta": 1e6}})  # fmt: skip
    squared = og.Problem.from_spec({**spec, "training": {**spec["training"], "loss": "squared"}})
    limit = og.Theory(finite_size=False)  # the surplus of labels is of order 1/m
    a, b = (
        og.predict_readout(weights, p, instance=instance, theory=limit) for p in (wide, squared)
    )
    assert a.test_error == pytest.approx(b.test_error, rel=1e-3)
    assert a.train_loss == pytest.approx(b.train_error, rel=1e-3)
