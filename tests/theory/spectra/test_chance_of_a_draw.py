"""Outliers where the initial output, the step's chance or which neurons are drawn count: against
networks of the size at which they count, in both conventions."""

import math
from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.backend import host
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.spectrum.report import leading_singular, trial_directions, trial_functions
from onegrad.theory.chance import chance_of
from onegrad.theory.layers.features import Harmonic
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.limits import (
    bulk_of_features,
    outliers_of,
    resolved,
    spectral_limit,
)
from onegrad.theory.spectra.outliers import mean_outliers
from onegrad.theory.spectra.resolvent import Resolvent

N, DRAWS = 250, 24
CASES = {
    # means that the step learns; the initial output counts (mixture convention)
    "means": (
        {"rank": 0, "mean": 3.0}, {"model": "component"},
        {"width": 240, "activation": "tanh"}, {"samples": 600, "rate": 30.0, "dim": 300},
    ),
    # a strong spike along which the initial output pushes by chance (isotropic convention)
    "chance": (
        {"weights": [1.0], "spread": 16.0}, {"link": "tanh"},
        {"width": N, "activation": "tanh", "convention": "isotropic"},
        {"samples": 375, "step_samples": 500, "rate": 4.0},
    ),
    # two outliers of the features that are close
    "close": (
        {"weights": [1.0], "spread": 12.0}, {"link": "tanh", "direction": "spikes"},
        {"width": 300, "activation": "relu"}, {"samples": N, "rate": 125.0},
    ),
}  # fmt: skip


class SameDirections(Streams):
    """Draws that differ in everything but the directions."""

    def rng(self, purpose):
        return Streams(0, 0).rng(purpose) if purpose == "structure" else super().rng(purpose)


def problem(name):
    data, labels, network, training = CASES[name]
    training = dict(training)
    dim = training.pop("dim", N)
    return og.Problem.from_spec({
        "data": {"model": "mixture", "dim": dim, "spread": 0.0, **data}, "labels": labels,
        "network": network, "training": training,
    })  # fmt: skip


def draws(p):
    """Leading singular values and alignments of weights and features."""
    found = []
    for seed in range(DRAWS):
        trial = Trial(p, SameDirections(seed, 0))
        after = host(trial.updated_weights)
        named = trial_directions(trial)
        features = host(p.activation(trial.train.preactivation(after))) / math.sqrt(p.samples)
        both = []
        for matrix, functions in ((after, named), (features.T, trial_functions(trial, named))):
            _, values, right = leading_singular(matrix, 3)
            cosines = [
                {k: abs(v @ f) / np.linalg.norm(f) for k, f in functions.items() if np.any(f)}
                for v in right
            ]
            both.append((values, cosines))
        found.append(both)
    return found


@pytest.fixture(scope="module")
def known():
    return {name: (spectral_limit(problem(name), "drawn", 0), draws(problem(name)))
            for name in CASES}  # fmt: skip


def compared(known, name, which, j=0):
    """Predicted over found, the standard error of that, and the outlier."""
    limit, found = known[name]
    matrix = (limit.weights, limit.features)[which]
    values = np.array([one[which][0][j] for one in found])
    outlier = matrix.outliers[j]
    return outlier.singular_value / values.mean(), values.std(ddof=1) / values.mean(), outlier


@pytest.mark.parametrize(
    ("name", "which", "j"),
    [("means", 0, 0), ("means", 1, 0), ("chance", 1, 0), ("close", 0, 0), ("close", 1, 0),
     ("close", 1, 1), ("close", 1, 2)],
)  # fmt: skip
def test_means_and_deviations(known, name, which, j):
    ratio, spread, outlier = compared(known, name, which, j)
    assert abs(ratio - 1) <= 0.02 + 4 * spread / math.sqrt(DRAWS)
    # a standard deviation of 24 draws is known to 15 %
    assert spread / 1.8 < outlier.deviation < 1.8 * spread


@pytest.mark.parametrize(
    ("name", "which", "j"), [("means", 0, 0), ("close", 1, 0), ("close", 1, 1)]
)
def test_alignments(known, name, which, j):
    limit, found = known[name]
    outlier = (limit.weights, limit.features)[which].outliers[j]
    for function, cosine in outlier.alignments.items():
        seen = np.array([one[which][1][j][function] for one in found])
        if cosine > 0.3:
            se = seen.std(ddof=1) / math.sqrt(DRAWS)
            assert seen.mean() == pytest.approx(cosine, abs=0.03 + 4 * se), function


def typical(name, mean_step=False):
    """Outliers of weights and features without the step's chance, or of its mean alone."""
    p = problem(name)
    task = chance_of(p, "drawn", 0).typical
    task = replace(task, chance=None) if mean_step else task
    limit = spectral_limit(p, "drawn", 0)
    edges = limit.weights.law.edge, limit.features.law.edge
    return task, edges, resolved(task, 2)


def test_rows_without_their_tilt_have_another_direction(known):
    """Negative control: W₀ᵀa as a direction that the rest of the rows knows nothing of."""
    task, edges, (neurons, features) = typical("means")
    neurons = replace(neurons, tilt=np.zeros_like(neurons.tilt))
    wrong = outliers_of(task, neurons, features, edges)[0]
    wrong = mean_outliers([wrong], np.ones(1), 0.0)[0]
    seen = np.mean([one[0][1][0]["mean 1"] for one in known["means"][1]])
    right = known["means"][0].weights.outliers[0]
    assert abs(right.alignments["mean 1"] - seen) < 0.015
    assert abs(wrong.alignments["mean 1"] - seen) > 0.025


def test_a_step_without_its_chance_has_smaller_outliers(known):
    """Negative control: the initial output pushes by nothing, its mean."""
    task, edges, pair = typical("chance", mean_step=True)
    wrong = outliers_of(task, *pair, edges)[1].values[0]
    values = [one[1][0][0] for one in known["chance"][1]]
    assert wrong < 0.87 * np.mean(values)


def test_outliers_that_do_not_mix_are_too_close(known):
    """Negative control: no fluctuations, as of very many neurons and samples."""
    task, edges, pair = typical("close")
    found = outliers_of(task, *pair, edges)[1]
    found = replace(found, sizes=tuple(1e12 * size for size in found.sizes))
    wrong = mean_outliers([found], np.ones(1), 0.0)
    seen = np.mean([one[1][1][0]["constant"] for one in known["close"][1]])
    assert wrong[0].alignments["constant"] - seen > 0.06


def test_gaps_do_not_end_the_bulk():
    """Three strong coordinates are a part of their own beyond a gap, in which there is a real
    solution too."""
    few, many = Harmonic(1.0, 3.0, np.full((1, 1), 0.6)), Harmonic(1.0, 500.0, np.full((1, 1), 0.7))
    extra, sizes = np.full((1, 1), 0.1), (np.array([400.0]), np.ones(1), 800.0)
    inner = Resolvent(extra, [many], *sizes).edge()
    bulk = Resolvent(extra, [few, many], *sizes)
    assert bulk.beyond(np.array([2 * inner]))[1][0]
    assert bulk.edge() > 10 * inner


def test_a_narrow_last_part_has_a_threshold():
    """Where outliers count from is not lost in the gap before the last part."""
    one, many = Harmonic(1.0, 1.0, np.full((1, 1), 0.3)), Harmonic(1.0, 500.0, np.full((1, 1), 0.7))
    bulk = Resolvent(np.full((1, 1), 0.1), [one, many], np.array([400.0]), np.ones(1), 800.0)
    law = SpectralLaw.of(bulk, 0.0)
    assert 1 < law.threshold(400) / math.sqrt(law.edge) < 1.1


def test_acceleration_is_the_same_law():
    """The density by acceleration against means of old and new, from the same start."""
    p = problem("close")
    _, features = resolved(replace(chance_of(p, "drawn", 0).typical, chance=None), 1)
    bulk = bulk_of_features(features, p.samples)
    x = np.array([0.05, 0.3, 1.0, 2.0])
    gain = np.repeat((-1.0 / x)[:, None] + 0j, len(bulk.counts), axis=1)
    chi = np.zeros((len(x), len(bulk.weights)), complex)
    z = x * (1 + 0.08j)
    slow = gain.copy(), chi.copy()
    bulk._settle(z, gain, chi, 1e-7)
    for _ in range(6000):
        inverse, response = bulk._map(z, *slow)
        slow = 0.5 * (slow[0] + 1 / inverse), 0.5 * (slow[1] + response)
    np.testing.assert_allclose(gain, slow[0], rtol=1e-4)
