"""The theory of somebody's data against networks on them, and the mixture fitted to them."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.data.mixture import Mixture
from onegrad.errors import AssumptionError
from onegrad.predict.real_data import draw_layer
from onegrad.problem import Problem

rng = np.random.default_rng


def arrays(classes=True, count=5000, **network):
    """A table of numbers that is secretly a Gaussian mixture, so that there is a population."""
    population = Mixture(dim=60, rank=1, mean=1.0).population(20.0, rng(5))
    ((x, c),) = population.sample(count, rng(6))
    y = 1.0 - 2.0 * c
    if not classes:
        y = np.tanh(x @ rng(7).standard_normal(60) / 8) + 0.1 * rng(8).standard_normal(count)
    return Problem(
        data={"model": "arrays", "x": x, "y": y}, network={"width": 150, **network},
        training={"samples": 200, "ridge": 1e-3, "rate": 3.0},
    )  # fmt: skip


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("convention", ["mixture", "isotropic"])
def test_somebodys_arrays(classes, convention):
    """Network and theory on a user's table, classes or numbers, in both conventions."""
    problem = arrays(classes, convention=convention, activation="tanh")
    predicted = og.predict(problem)
    # of numbers: 5.6 % by halves of the nodes, and 3.3 % by layers
    assert predicted.method == "semi-parametric theory" and 0 < predicted.error_estimate < 0.1
    done = og.simulate(problem, seeds=16, rng=3)
    for name in ("test_error", "train_error", "train_objective"):
        mean, error = getattr(done, name)
        assert getattr(predicted, name) == pytest.approx(mean, abs=3 * error + 0.02 * mean), name


def test_the_same_seed_gives_the_same_numbers():
    problem = arrays(count=800)
    first, again = (og.predict(problem, rng=1) for _ in range(2))
    assert first == again
    assert og.predict(problem, rng=2).test_error != first.test_error


def test_methods_that_do_not_fit():
    problem = arrays(count=800)
    with pytest.raises(AssumptionError, match=r"conditional theory needs a known population"):
        og.predict(problem, method="conditional")
    with pytest.raises(AssumptionError, match="no typical overlaps"):
        og.predict(problem, overlaps="typical")
    mixture = Problem(
        data={"model": "mixture", "dim": 50}, network={"width": 40},
        training={"samples": 60}, scaling={"strength": 0.5, "weighting": 0.5},
    )  # fmt: skip
    for method in ("semi-parametric", "surrogate"):
        with pytest.raises(AssumptionError, match='use method = "conditional"'):
            og.predict(mixture, method=method)
    with pytest.raises(AssumptionError, match="labels that are classes"):
        og.predict(arrays(classes=False, count=800), method="surrogate")


def test_the_surrogate_of_gaussian_classes_agrees():
    """Where the classes are Gaussian indeed, fitting them loses nothing."""
    problem = arrays()
    theory, fitted = og.predict(problem), og.predict(problem, method="surrogate")
    assert "1, 1 spikes" in fitted.assumptions[0]
    for name in ("test_error", "train_error"):
        assert getattr(fitted, name) == pytest.approx(getattr(theory, name), rel=0.03)


def test_digits():
    problem = Problem(
        data={"model": "digits", "classes": (3, 5)}, network={"width": 60},
        training={"samples": 100, "step_samples": 60}, scaling={"strength": 1.0, "weighting": 0.0},
    )  # fmt: skip
    predicted, done = og.predict(problem), og.simulate(problem, seeds=40, rng=2)
    mean, error = done.test_error
    # 300 nodes for 60 neurons: the theory says itself how far to trust it
    assert predicted.test_error == pytest.approx(
        mean, abs=3 * error + 2 * predicted.error_estimate * mean
    )
    assert predicted.error_estimate < 0.15


def test_nodes_are_rows_that_the_step_has_not_seen():
    problem = arrays(count=800)
    layer, nodes = draw_layer(problem, Streams(3, 1), 500)
    assert layer.weights.shape == (150, 60) and layer.directions.shape == (60, 2)
    assert len(nodes) == 500 and nodes.noise == nodes.label_noise == 0
    step = problem.data.split(Streams(3, 1).rng("split"))[:200]
    seen = set(map(bytes, problem.data.load()[0][step]))
    assert not seen & set(map(bytes, nodes.x))
