"""A spectrum for every problem: a report with limits, or one draw and the reason."""

import json
import math

import numpy as np
import pytest

import onegrad as og
from onegrad.spectrum.report import SpectrumReport, expected_outliers

N = 60
MIXTURE = {"model": "mixture", "dim": N, "spread": 3.0, "weights": [1.0]}


def problem(data=None, network=None, training=None, **tables):
    return og.Problem.from_spec({
        "data": data or MIXTURE, "network": {"width": 50, "activation": "tanh", **(network or {})},
        "training": {"samples": 90, "rate": 5.0, **(training or {})}, **tables,
    })  # fmt: skip


KINDS = {
    "mixture": problem(),
    "components": problem(
        {"model": "mixture", "dim": N, "rank": 0, "spread": 0.0, "mean": 1.0},
        labels={"model": "component"},
    ),
    "isotropic data, mixture convention": problem({"model": "isotropic", "dim": N}),
    "random features": problem(training={"rate": 0.0}),
    "several steps": problem(training={"steps": 2}),
    "same batch": problem(training={"steps": 2, "batch": "same"}),
    "general bulk": problem(
        {**MIXTURE, "spectrum": "power-law", "exponent": 0.8}, training={"rate": 0.0}
    ),
    "general bulk after a step": problem(
        {**MIXTURE, "spectrum": "power-law", "exponent": 0.8},
        training={"gradient": "labels-only"},
    ),
    "muon": problem(training={"optimiser": "muon", "rate": 1.0}),
    "many spikes": problem({**MIXTURE, "rank": 14}),
    "one output for each class": problem(
        {**MIXTURE, "weights": [0.4, 0.3, 0.3]}, labels={"model": "component"}
    ),
    "digits": problem({"model": "digits", "classes": [0, 1], "spread": 8.0}),
}
LIMITS = {"mixture", "components", "general bulk", "general bulk after a step",
          "isotropic data, mixture convention", "random features", "several steps"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_problem_has_a_spectrum(kind):
    report = og.spectrum(KINDS[kind])
    assert isinstance(report, SpectrumReport)
    assert (report.note == "") == (kind in LIMITS)
    for one in (report.weights, report.features):
        assert len(one.after) == len(one.before) > 0
        assert np.all(np.diff(one.leading) <= 0)
        assert (one.limit is not None) == (kind in LIMITS)
        assert math.isnan(one.distance) == (one.limit is None)
    json.dumps(report.as_json(), allow_nan=False)
    assert "weights" in repr(report) and "<table" in report._repr_html_()


@pytest.mark.parametrize(
    ("exponents", "count"), [((0.2, 0.2), 0), ((0.3, 0.45), 2), ((0.4, 0.35), 3), ((0.0, 0.0), 0)]
)
def test_directions_that_a_second_step_adds(exponents, count):
    two = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": N},
        "network": {"width": 50, "activation": "tanh", "convention": "isotropic"},
        "training": {"samples": 90, "steps": 2}, "scaling": {"exponent": list(exponents)},
    })  # fmt: skip
    assert expected_outliers(two) == count
    assert og.spectrum(two).expected_outliers == count


def test_several_indices_are_several_directions():
    """Found and predicted alignments have the same names."""
    report = og.spectrum(problem(
        {"model": "isotropic", "dim": N},
        labels={"model": "multi-index", "indices": 2, "link": "max"}, training={"rate": 200.0},
    ))  # fmt: skip
    assert {"teacher 1", "teacher 2", "step"} <= set(report.weights.limit.outliers[0].alignments)
    assert set(report.weights.alignments[0]) == set(report.weights.limit.outliers[0].alignments)


def test_figures_for_both_kinds(tmp_path):
    report = og.spectrum(KINDS["mixture"])
    assert report.plot().get_xlabel().startswith("singular value")
    assert len(report.plot("weights")) == 2
    og.spectrum(KINDS["muon"]).plot("weights")
