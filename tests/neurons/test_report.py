"""Neurons of drawn networks beside the law of the theory."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.neurons.report import layers_by_step
from onegrad.simulate.network.trial import Trial

MIXTURE = {
    "data": {"model": "mixture", "dim": 200, "spread": 6.0, "directions": "orthogonal",
             "mean": 1.0},
    "network": {"width": 300},
    "training": {"samples": 400, "step_samples": 800, "rate": 200.0},
}  # fmt: skip


def staircase(steps: int, readout: str = "gaussian") -> og.Problem:
    return og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": 60},
        "labels": {"model": "multi-index", "link": [[0.0, 1.0, 0.5], [1, 0, 0], [-0.5, 0, 0]]},
        "network": {"width": 40, "readout": readout},
        "training": {"samples": 200, "rate": 40.0, "steps": steps},
    })  # fmt: skip


def test_the_law_is_that_of_drawn_networks_and_not_that_before_the_step():
    first = og.neurons(MIXTURE)
    squares = np.array([first.rms()[-1] ** 2, *(og.neurons(MIXTURE, r).rms()[-1] ** 2
                                               for r in range(1, 8))])  # fmt: skip
    mean = squares.mean(axis=0)
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(squares))
    assert first.directions == ("teacher", "spike 1.1", "spike 2.1", "mean 1", "mean 2")
    law = first.law.rms**2
    assert np.all(np.abs(law - mean) < 4 * error + 0.03 * mean)
    before = first.rms()[0] ** 2
    assert abs(before[0] - mean[0]) > 4 * error[0] + 0.03 * mean[0]


@pytest.mark.parametrize("steps", [1, 3])
def test_the_last_layer_is_the_trained_one(steps):
    trial = Trial(staircase(steps), Streams(0, 0))
    *_, last = layers_by_step(trial)
    np.testing.assert_allclose(last, trial.updated_weights, rtol=1e-9, atol=1e-12)


def test_a_frame_a_plot_and_a_record(tmp_path):
    found = og.neurons(staircase(2, "signs"))
    assert set(np.sign(found.readout)) == {-1.0, 1.0} and found.law is None
    assert "signs" in found.note and found.note in repr(found)
    frame = found.to_frame()
    assert len(frame) == 3 * 40 and {"step", "neuron", "readout", "teacher 1"} <= set(frame)
    assert found.as_json()["rms"][0] == pytest.approx(found.rms()[0].tolist())
    assert len(found.plot()) == 3 and len(found.plot("teacher 2")) == 3
    with pytest.raises(og.SpecError, match="teacher 1"):
        found.plot("teacher 3")


def test_data_without_directions_are_refused():
    images = {"data": {"model": "digits", "spread": 3.0}, "network": {"width": 20},
              "training": {"samples": 100, "rate": 1.0}}  # fmt: skip
    with pytest.raises(og.AssumptionError, match="isotropic"):
        og.neurons(images)
