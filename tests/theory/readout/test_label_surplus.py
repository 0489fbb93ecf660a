"""More labels of one sign in a training set: where samples within the margin pull alike, much."""

import numpy as np
import pytest

import onegrad as og
from onegrad.theory.chance import chance_of
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.readout.label_surplus import surplus_deviation, with_surplus

SPEC = {
    "data": {"model": "mixture", "dim": 120, "mean": 1.5},
    "labels": {"model": "component"},
    "network": {"width": 99, "activation": "relu"},
    "training": {"samples": 150, "ridge": 0.01, "loss": "hinge"},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}
BESIDE = 0.03  # four standard errors: what is of order 1/n


def problem(**changed):
    return og.Problem.from_spec({k: {**v, **changed.get(k, {})} for k, v in SPEC.items()})


def test_the_mean_label_is_that_of_the_training_set():
    rng = np.random.default_rng(0)
    weights, labels = rng.dirichlet(np.ones(7)), rng.uniform(-1, 1, 7)
    mean = weights @ labels
    drawn, tilted = with_surplus(weights, labels, 50.0, 1.3)
    assert drawn.sum() == pytest.approx(1) and np.all(np.abs(tilted) <= 1)
    assert drawn @ tilted == pytest.approx(mean + 1.3 * np.sqrt((1 - mean**2) / 50), rel=1e-12)
    stacked = with_surplus(
        np.stack([weights] * 2), labels, np.array([50.0, 80]), np.array([1.3, 0])
    )
    assert np.allclose(stacked[0][0], drawn) and np.allclose(stacked[1][1], labels)


def test_who_has_a_surplus():
    def deviation(**changed):
        p = problem(**changed)
        return surplus_deviation(p, geometry_of(p))

    assert deviation() == 1
    assert deviation(training={"loss": "squared"}) == 0
    assert deviation(data={"counts": "proportional"}) == 0
    kept = deviation(data={"counts": "proportional"}, labels={"flip": 0.1})
    assert kept == pytest.approx(np.sqrt(4 * 0.1 * 0.9))
    assert deviation(labels={"values": [1.0, 2.0]}, training={"loss": "absolute"}) == 0
    assert chance_of(problem(), "auto", 0, finite_size=True).of_labels
    assert not chance_of(problem(), "auto", 0).of_labels


@pytest.fixture(scope="module")
def simulated():
    return og.simulate(problem(), seeds=60, rng=0)


def within(simulated, theory):
    """Test error, test loss and misclassification; train errors follow."""
    found = {}
    for name in ("test_error", "test_loss", "train_error", "misclassification"):
        e = getattr(simulated, name)
        allowed = 4 * e.standard_error + BESIDE * e.mean
        found[name] = abs(getattr(theory, name) - e.mean) < allowed
    return found


def test_networks_agree_at_a_strong_ridge(simulated):
    assert all(within(simulated, og.predict(problem())).values())


def test_drawn_layers_agree_too(simulated):
    assert all(within(simulated, og.predict(problem(), method="layer")).values())


def test_without_the_surplus_the_theory_fails(simulated):
    """Negative control: the limit, which is off at every n up to a thousand."""
    found = within(simulated, og.predict(problem(), finite_size=False))
    assert not found["test_error"] and not found["misclassification"]


def test_networks_with_equal_counts_agree_without_a_surplus():
    p = problem(data={"counts": "proportional"})
    assert all(within(og.simulate(p, seeds=40, rng=0), og.predict(p)).values())
