"""Theory as a curve: through the numbers of the run, fine between them, steps where it jumps."""

import copy

import numpy as np
import pytest

from onegrad.figures.curves import draw_curves
from onegrad.figures.theory_lines import theory_line
from onegrad.predict.predict import predict_experiment, theory_row
from onegrad.results.results import Results
from onegrad.spec.experiment import Experiment

MIXTURE = {
    "name": "lines",
    "data": {"model": "mixture", "dim": 100},
    "network": {"activation": "tanh", "width_ratio": 1.0},
    "training": {"samples": 120, "ridge": 1e-2},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["theory"]},
}
ISOTROPIC = {
    "name": "steps",
    "data": {"model": "isotropic", "dim": 200},
    "labels": {"link": "hermite(0, 1, 0.5)", "noise": 0.3},
    "network": {"convention": "isotropic", "activation": "relu", "width": 250},
    "training": {"samples": 400, "ridge": 0.1, "gradient": "labels-only"},
    "scaling": {"exponent": 0.2},
    "compare": {"models": ["isotropic-limit"]},
}


def line(tables, axis, values, model="theory"):
    experiment = Experiment.from_tables(copy.deepcopy(tables) | {"sweep": {axis: values}})
    rows = tuple(theory_row(point, model) for point in experiment.points)
    results = Results("lines", rows)
    return theory_line(results.summaries(), axis, ["test_error", "train_error"]), results


def test_a_line_is_smooth_and_goes_through_the_run():
    found, results = line(MIXTURE, "network.width_ratio", [0.2, 1.0, 4.0])
    assert len(found.x) > 200 and np.all(np.diff(found.x) > 0)
    y, wanted = found.errors["test_error"], [s.test_error.mean for s in results.summaries()]
    np.testing.assert_allclose(y[found.marks], wanted, rtol=1e-12)
    assert np.abs(np.diff(y)).max() < 0.1 * np.ptp(y)


def test_between_five_points_it_is_within_two_percent_of_the_theory():
    found, _ = line(MIXTURE, "network.width_ratio", [0.2, 0.5, 1.0, 2.0, 4.0])
    dense, _ = line(MIXTURE, "network.width_ratio", [0.2, 0.3, 0.7, 1.4, 3.0])
    for x in (0.3, 0.7, 1.4, 3.0):
        exact = dense.errors["test_error"][dense.x == x]
        assert np.interp(x, found.x, found.errors["test_error"]) == pytest.approx(exact, rel=0.02)


def test_it_never_overshoots():
    found, results = line(ISOTROPIC, "scaling.exponent", [0.1, 0.2, 0.3], "isotropic-limit")
    y, means = found.errors["test_error"], [s.test_error.mean for s in results.summaries()]
    assert min(means) * (1 - 1e-9) <= y.min() and y.max() <= max(means) * (1 + 1e-9)


def test_ranks_and_two_points_stay_straight():
    assert line(MIXTURE, "data.rank", [1, 2, 3])[0].x.tolist() == [1.0, 2.0, 3.0]
    assert line(MIXTURE, "network.width_ratio", [0.5, 1.0])[0].x.tolist() == [0.5, 1.0]


def test_published_points_are_a_layer_of_the_figure():
    changes = ["compare.models=['theory']", "sweep.network.width_ratio=[0.1, 5]"]
    experiment = Experiment.read("demir2025/fig1a", changes)
    results, _ = predict_experiment(experiment)
    figure = draw_curves(experiment, results)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    published = [label for label in labels if label.startswith("published")]
    assert published == ["published network", "published hermite"]
    crosses = [c for c in figure.axes[0].lines if c.get_marker() == "x"]
    assert len(crosses) == 1 and len(crosses[0].get_xdata()) == 6
    assert figure.axes[0].get_yscale() == "linear"
