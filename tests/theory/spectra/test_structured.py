"""Limiting spectra under structure against networks: bulks, outliers, alignments."""

import math
from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError
from onegrad.simulate.network.trial import Trial
from onegrad.spectrum.report import report_of
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.limits import bulk_of_features, resolved, spectral_limit
from onegrad.theory.task import Task

N, DRAWS = 300, 6
LABELS = {"link": "tanh"}
CASES = {
    "two spikes": (
        {"spread": 20.0, "strengths": [[1.0], [0.4]], "directions": "orthogonal"},
        {"link": "relu"}, "relu", 1.0, 1.5, 10.0,
    ),
    "means": ({"rank": 0, "mean": 3.0}, {"model": "component"}, "tanh", 0.8, 2.0, 0.1 * N),
    "a spike that is learned": (
        {"weights": [1.0], "spread": 12.0}, {"direction": "spikes", **LABELS}, "relu", 1.2, 1.0,
        0.5 * N,
    ),
    "two steps": (
        {"spread": 6.0, "strengths": [[2.5], [0.4]], "directions": "orthogonal"}, LABELS, "tanh",
        1.2, 1.5, 1.5 * N,
    ),
}  # fmt: skip
_known = {}


def problem(name):
    data, labels, activation, width, samples, rate = CASES[name]
    steps = 2 if name == "two steps" else 1
    return og.Problem.from_spec({
        "data": {"model": "mixture", "dim": N, "spread": 0.0, **data}, "labels": labels,
        "network": {"activation": activation, "width": int(width * N)},
        "training": {"samples": int(samples * N), "rate": rate, "steps": steps},
    })  # fmt: skip


def reports(name):
    """The limit once, and several draws."""
    if name not in _known:
        p = problem(name)
        limit = spectral_limit(p)  # directions are alike in all draws: one limit is enough
        drawn = [report_of(Trial(p, Streams(seed, 0)), limit) for seed in range(DRAWS)]
        _known[name] = limit, drawn
    return _known[name]


@pytest.mark.parametrize("name", CASES)
def test_bulks(name):
    _, drawn = reports(name)
    assert np.mean([d.features.distance for d in drawn]) < 0.025
    assert np.mean([d.weights.distance for d in drawn]) < 0.025


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("matrix", ["features", "weights"])
def test_outliers_and_what_they_look_at(name, matrix):
    limit, drawn = reports(name)
    expected = getattr(limit, matrix).outliers
    found = [getattr(d, matrix) for d in drawn]
    counts = [one.outliers for one in found]
    assert abs(np.median(counts) - len(expected)) <= 1
    for j, outlier in enumerate(expected[:2]):
        values = np.array([one.leading[j] for one in found])
        se = values.std(ddof=1) / math.sqrt(DRAWS)
        assert abs(values.mean() - outlier.singular_value) <= 4 * se + 0.02 * values.mean()
        for function, cosine in outlier.alignments.items():
            seen = [one.alignments[j][function] for one in found if j < len(one.alignments)]
            if cosine > 0.3:
                se = np.std(seen, ddof=1) / math.sqrt(len(seen))
                assert np.mean(seen) == pytest.approx(cosine, abs=0.03 + 4 * se), function


def test_features_that_share_no_coordinates_have_another_bulk():
    """Negative control: the slopes counted as noise of every entry for itself."""
    _, drawn = reports("two spikes")
    p = problem("two spikes")
    _, f = resolved(Task.of(p), 1)
    laws = []
    for table in (f.slope, 0 * f.slope):
        extra = f.extra + (f.bulk[:, None] * (f.slope - table)) ** 2
        bulk = bulk_of_features(replace(f, slope=table, extra=extra), p.samples)
        laws.append(SpectralLaw.of(bulk, max(0.0, 1 - p.samples / p.width)))
    right, wrong = laws
    assert right.distance(drawn[0].features.after) < 1.1 * drawn[0].features.distance
    assert wrong.distance(drawn[0].features.after) > 4 * drawn[0].features.distance


def test_a_spike_grows_out_of_the_bulk():
    """The strength crosses 1 where the outlier appears: the transition."""
    counts, strengths = [], []
    for spread in (1.0, 3.0, 6.0, 12.0):
        p = og.Problem.from_spec({
            "data": {"model": "mixture", "dim": 400, "weights": [1.0], "spread": spread},
            "network": {"width": 400, "activation": "tanh"},
            "training": {"samples": 600, "rate": 0.0},
        })  # fmt: skip
        limit = spectral_limit(p).features
        counts.append(len(limit.outliers))
        strengths.append(limit.strengths[0])
    assert counts == [int(s > 1) for s in strengths] and counts[0] == 0 and counts[-1] == 1
    assert np.all(np.diff(strengths) > 0)


@pytest.mark.parametrize(
    "change", [{"optimiser": "muon"}, {"steps": 2, "batch": "same"}], ids=["muon", "same batch"]
)
def test_no_limit_is_claimed_where_none_is_known(change):
    p = problem("two spikes")
    p = p.model_copy(update={"training": p.training.model_copy(update=change)})
    with pytest.raises(AssumptionError, match="no limiting spectrum"):
        spectral_limit(p)
