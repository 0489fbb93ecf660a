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
    return theory_line(
        experiment, results.summaries(), axis, ["test_error", "train_error"]
    ), results


@pytest.mark.parametrize(
    "axis, values",
    [
        ("network.width_ratio", [0.2, 1.0, 4.0]),
        ("scaling.strength", [0.0, 0.5, 0.9]),
        ("data.weights", [[0.3, 0.7], [0.5, 0.5]]),
        ("training.samples", [60, 240]),
    ],
)
def test_a_line_goes_through_the_run_and_is_fine_between(axis, values):
    found, results = line(MIXTURE, axis, values)
    assert len(found.x) >= 60 and np.all(np.diff(found.x) > 0)
    for s in results.summaries():
        place = s.point[axis][0] if isinstance(s.point[axis], list) else s.point[axis]
        (at,) = np.flatnonzero(np.isclose(found.x, place))
        assert found.errors["test_error"][at] == pytest.approx(s.test_error.mean, rel=1e-9)
    steps = np.abs(np.diff(found.errors["test_error"]))
    assert steps.max() < 0.1 * np.ptp(found.errors["test_error"]) + 1e-12


def test_between_the_points_it_is_the_theory_not_a_polyline():
    found, _ = line(MIXTURE, "network.width_ratio", [0.2, 1.0, 4.0])
    dense, _ = line(MIXTURE, "network.width_ratio", [0.2, 0.5, 1.0, 2.0, 4.0])
    exact = dense.errors["test_error"][np.flatnonzero(np.isclose(dense.x, 0.5))[0]]
    curve = np.interp(0.5, found.x, found.errors["test_error"])
    known = [found.errors["test_error"][np.isclose(found.x, x)][0] for x in (0.2, 1.0)]
    assert curve == pytest.approx(exact, rel=5e-3)
    assert abs(np.interp(0.5, [0.2, 1.0], known) / exact - 1) > 1e-2


def test_limits_that_jump_are_drawn_as_steps():
    found, _ = line(ISOTROPIC, "scaling.exponent", [0.1, 0.2, 0.3], "isotropic-limit")
    y = found.errors["test_error"]
    jump = int(np.argmax(np.abs(np.diff(y))))
    assert found.x[jump] <= 0.25 <= found.x[jump + 1] < found.x[jump] + 0.001
    assert np.ptp(y[: jump + 1]) < 1e-9 and np.ptp(y[jump + 1 :]) < 1e-9


def test_ranks_and_lists_that_advance_together_stay_polylines():
    found, _ = line(MIXTURE, "data.rank", [1, 2])
    assert found.x.tolist() == [1.0, 2.0]
    zipped = {"zip": {"data.dim": [60, 100], "training.samples": [70, 120]}}
    experiment = Experiment.from_tables(MIXTURE | {"sweep": zipped})
    results, _ = predict_experiment(experiment)
    alone = theory_line(experiment, results.summaries(), "data.dim", ["test_error"])
    assert alone.x.tolist() == [60.0, 100.0]


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
