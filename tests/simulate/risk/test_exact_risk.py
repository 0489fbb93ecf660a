"""The exact risk against sampled test sets, brute-force integrals and a second precision."""

import dataclasses
import math

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.data.instance import Instance
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.gaussian.activation import Activation, get_activation, hermite_activation
from onegrad.problem import Problem
from onegrad.simulate.models import MODELS, SIMULATED
from onegrad.simulate.models.base import exact_risk
from onegrad.simulate.network.gram import Grams
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.exact import predictor_risks

N, K, M = 60, 40, 80
LEAKY = Activation(
    "leaky", lambda x: np.where(x > 0, x, 0.1 * x), lambda x: np.where(x > 0, 1.0, 0.1), (0.0,)
)
HARD = Activation(
    "hard-tanh", lambda x: np.clip(x, -1, 1), lambda x: (np.abs(x) < 1) * 1.0, (-1.0, 1.0)
)
POLYNOMIAL = hermite_activation(0.3, 1.0, -0.5, 0.2)
BUILT_IN = ["relu", "tanh", "sigmoid", "erf", "gelu", "softplus", "sin", "identity"]
ACTIVATIONS = [get_activation(name) for name in BUILT_IN] + [LEAKY, HARD, POLYNOMIAL]

MIXTURE = {"strength": 0.74, "weighting": 0.5}
CASES = {
    "relu labels": {"data": {}, "scaling": MIXTURE},
    "polynomial labels with noise": {
        "data": {"rank": 2, "alignment": 0.5}, "scaling": MIXTURE,
        "labels": {"link": "hermite(0.2, 1, 0.5)", "noise": 0.3},
    },
    "component labels, three, rank 2": {
        "data": {"weights": [0.5, 0.3, 0.2], "rank": 2}, "scaling": MIXTURE,
        "labels": {"model": "component", "values": [1, -1, 3], "noise": 0.1},
    },
    "component labels with means": {
        "data": {"mean": 2.0}, "scaling": MIXTURE, "labels": {"model": "component"},
    },
    "a link for each component, with means": {
        "data": {"weights": [0.5, 0.3, 0.2], "mean": 1.5, "rank": 2}, "scaling": MIXTURE,
        "labels": {"link": ["relu", "tanh", HARD], "noise": 0.2},
    },
    "spread ~ n, teacher on the spikes": {
        "data": {}, "scaling": {"strength": 1.0, "weighting": 0.0},
        "labels": {"direction": "spikes"},
    },
    "rate ~ n": {"data": {}, "scaling": {"strength": 1.0, "weighting": 1.0},
                 "labels": {"link": "tanh"}},
    "large rate and means": {
        "data": {"mean": 1.0, "spread": 8.0}, "training": {"rate": 240.0},
        "labels": {"link": "erf", "direction": "spikes"},
    },
    "power-law bulk, spikes and means": {
        "data": {"mean": 1.0, "spectrum": "power-law", "exponent": 0.8}, "scaling": MIXTURE,
        "labels": {"link": "tanh", "noise": 0.1},
    },
    "isotropic": {
        "data": {"model": "isotropic"}, "scaling": {"exponent": 0.4, "constant": 2.0},
        "network": {"convention": "isotropic"}, "labels": {"link": "hermite(0, 1, 0.5)"},
    },
}  # fmt: skip
LONG = "large rate and means"


def problem(case, activation="relu", **network):
    tables = CASES[case]
    return Problem(
        data={"model": "mixture", "dim": N, **tables["data"]},
        labels=tables.get("labels", {}),
        network={"width": K, "activation": activation, **tables.get("network", {}), **network},
        training={"samples": M, "ridge": 1e-2, **tables.get("training", {})},
        scaling=tables.get("scaling", {}),
    )


def trial_of(case, activation="relu", **network):
    return Trial(problem(case, activation, **network), Streams(11, 0), degree=3)


def sampled(trial, models, count):
    """Mean and standard error of (y − f)² for each of the models, on one stream of samples."""
    sums = {name: np.zeros(2) for name in models}
    for batch in trial.test_batches(count):
        inputs = Inputs(batch)
        for name, model in models.items():
            prediction, extra = model.predict(inputs)
            loss = (batch.y - prediction) ** 2 + extra
            sums[name] += loss.sum(), (loss**2).sum()
    results = {}
    for name, (first, second) in sums.items():
        mean = first / count
        error = math.sqrt((second / count - mean**2) / count)
        results[name] = mean + trial.label_noise_variance, error
    return results


def agrees(exact, mean, error):
    return abs(exact.value - mean) <= 4 * error + exact.error


def networks(case, activations):
    """Trial and network of every activation, by its name: the data do not depend on it."""
    trials = {a.name: trial_of(case, a) for a in activations}
    return {name: (trial, MODELS["network"].fit(trial)) for name, trial in trials.items()}


def other_models(case, activation):
    """Trial and fitted model of every kind, by activation and name."""
    trial = trial_of(case, activation)
    return {
        f"{activation} {name}": (trial, MODELS[name].fit(trial))
        for name in SIMULATED
        if not (name == "kernel" or (name == "spiked" and case != "isotropic"))
    }


def check(case, found, count):
    """All of them on one test set."""
    first = next(trial for trial, _ in found.values())
    fitted = {name: model for name, (_, model) in found.items()}
    for name, (mean, error) in sampled(first, fitted, count).items():
        exact = exact_risk(*found[name])
        assert agrees(exact, mean, error), (case, name, exact, mean, error)
        if " " not in name:  # a network
            assert exact.error <= 1e-3 * exact.value


@pytest.mark.parametrize("case", CASES)
def test_networks_agree_with_a_test_set(case):
    # functions with breakpoints need seconds where the series is long; the slow test has them all
    smooth = [a for a in ACTIVATIONS if case != LONG or a not in (LEAKY, HARD)]
    check(case, networks(case, smooth), 20_000)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_models_agree_with_a_test_set(case, activation):
    if (case, activation) == (LONG, "tanh"):
        pytest.skip("seconds; the slow test has it")
    check(case, other_models(case, activation), 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_all_agree_with_a_large_test_set(case):
    found = networks(case, ACTIVATIONS)
    for activation in ("relu", "tanh"):
        others = other_models(case, activation)
        del others[f"{activation} network"]  # which is there already
        found |= others
    check(case, found, 400_000)


# --- negative controls ------------------------------------------------------------------


@pytest.mark.parametrize(("case", "dropped"), [
    ("spread ~ n, teacher on the spikes", "strengths"), ("component labels with means", "means"),
])  # fmt: skip
def test_a_population_without_spikes_or_means_fails_the_comparison(case, dropped):
    trial = trial_of(case)
    fitted = MODELS["network"].fit(trial)
    mean, error = sampled(trial, {"network": fitted}, 20_000)["network"]
    assert agrees(exact_risk(trial, fitted), mean, error)
    population = trial.instance.population
    zeros = {
        "strengths": tuple(np.zeros_like(s) for s in population.strengths),
        "means": np.zeros_like(population.means),
    }
    flat = dataclasses.replace(population, **{dropped: zeros[dropped]})
    trial.draw.__dict__["instance"] = Instance(flat, trial.instance.teacher)
    assert not agrees(exact_risk(trial, fitted), mean, error)


def test_forgetting_the_remainder_of_the_polynomial_fails_the_comparison():
    trial = Trial(problem("isotropic"), Streams(11, 0), degree=1)
    fitted = MODELS["hermite"].fit(trial)
    mean, error = sampled(trial, {"hermite": fitted}, 20_000)["hermite"]
    predictor = fitted.predictor(trial)
    assert agrees(predictor_risks(trial, [predictor])[0], mean, error)
    without = dataclasses.replace(predictor, noise=0.0)
    assert not agrees(predictor_risks(trial, [without])[0], mean, error)


def test_second_order_is_needed():
    """Order 1 with the exact diagonal alone is refused by the comparison at small n."""
    trial = trial_of("spread ~ n, teacher on the spikes")
    fitted = MODELS["network"].fit(trial)
    mean, error = sampled(trial, {"network": fitted}, 20_000)["network"]
    exact = exact_risk(trial, fitted)
    trial.grams.blocks = lambda weights, dtype: iter(())  # no pairs
    assert agrees(exact, mean, error)
    assert not agrees(exact_risk(trial, fitted), mean, error)


# --- numbers to many digits -------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "scaling"),
    [("relu", MIXTURE), ("tanh", MIXTURE), ("relu", {"strength": 1.0, "weighting": 0.0}),
     ("tanh", {"strength": 1.0, "weighting": 0.0})],
)  # fmt: skip
def test_single_precision_is_enough(activation, scaling):
    trial = Trial(
        Problem(
            data={"model": "mixture", "dim": 300},
            network={"width": 600, "activation": activation},
            training={"samples": 300},
            scaling=scaling,
        ),
        Streams(2, 0),
        degree=3,
    )
    for name in ("network", "conditional-gaussian"):
        fitted = MODELS[name].fit(trial)
        single = exact_risk(trial, fitted, np.dtype(np.float32))
        double = exact_risk(trial, fitted, np.dtype(np.float64))
        assert single == exact_risk(trial, fitted)  # the default at this width
        assert single.value == pytest.approx(double.value, rel=1e-7)
        assert abs(single.value - double.value) <= single.error + double.error


def test_blocks_cover_the_gram_matrix_and_are_shared():
    weights = np.random.default_rng(0).standard_normal((600, 20))
    grams = Grams()
    blocks = list(grams.blocks(weights, np.dtype(np.float64)))
    for start, block in blocks:
        np.testing.assert_allclose(
            block, (weights @ weights.T)[start : start + 256, start:], atol=1e-12
        )
    again = list(grams.blocks(weights, np.dtype(np.float64)))
    assert all(a is b for (_, a), (_, b) in zip(blocks, again, strict=True))
    assert sum(len(block) for _, block in blocks) == 600


def test_network_and_its_polynomial_share_their_products():
    trial = trial_of("relu labels", "tanh")
    exact_risk(trial, MODELS["network"].fit(trial))
    exact_risk(trial, MODELS["hermite"].fit(trial))
    assert len(trial.grams._known) == 1


def test_polynomial_activation_of_low_degree_is_its_own_polynomial():
    trial = trial_of("component labels with means", POLYNOMIAL)
    network = MODELS["network"].fit(trial)
    hermite = MODELS["hermite"].fit(trial)
    hermite = dataclasses.replace(hermite, readout=network.readout)
    assert exact_risk(trial, hermite).value == pytest.approx(
        exact_risk(trial, network).value, rel=1e-9
    )


def test_small_risks_are_accurate_too():
    """A linear network on linear labels: all of the risk is in orders 0 and 1."""
    trial = Trial(
        Problem(
            data={"model": "mixture", "dim": 20, "mean": 1.0, "spread": 3.0},
            labels={"link": "identity"},
            network={"width": 60, "activation": "identity"},
            training={"samples": 200, "ridge": 1e-7, "rate": 1.0},
        ),
        Streams(0, 0),
    )
    fitted = MODELS["network"].fit(trial)
    mean, error = sampled(trial, {"network": fitted}, 20_000)["network"]
    exact = exact_risk(trial, fitted)
    assert exact.method == "closed form"
    assert exact.value < 1e-6
    assert agrees(exact, mean, error)


def test_kernel_and_given_data_are_refused():
    trial = trial_of("relu labels")
    with pytest.raises(AssumptionError, match="kernel"):
        exact_risk(trial, MODELS["kernel"].fit(trial))
    rng = np.random.default_rng(0)
    given = Problem(
        data={"model": "arrays", "x": rng.standard_normal((60, 5)), "y": rng.standard_normal(60)},
        network={"width": 4},
        training={"samples": 20, "rate": 1.0},
    )
    trial = Trial(given, Streams(0, 0))
    with pytest.raises(AssumptionError, match="test set"):
        exact_risk(trial, MODELS["network"].fit(trial))


def test_jumps_have_no_conditional_model():
    step = Activation("step", lambda x: (x > 0) * 1.0, lambda x: 0.0 * x, (0.0,))
    trial = trial_of("relu labels", step)
    with pytest.raises(AssumptionError, match="jumps"):
        exact_risk(trial, MODELS["conditional-gaussian"].fit(trial))


def test_a_series_that_cannot_converge_is_refused():
    """Neurons that all look along one direction, seen sharply."""
    trial = Trial(
        Problem(
            data={"model": "mixture", "dim": N, "spread": 3e4, "mean": 20.0, "rank": 1},
            network={"width": K}, training={"samples": M, "rate": 1.0},
        ),
        Streams(0, 0),
    )  # fmt: skip
    with pytest.raises(ConvergenceError, match="sampled"):
        exact_risk(trial, MODELS["network"].fit(trial))
