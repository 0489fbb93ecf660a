"""Means over first layers: some solved in full, all of them roughly."""

from __future__ import annotations

from typing import Any

import numpy as np

from onegrad.predict import layers as readouts
from onegrad.predict.layer_means import LabelPower, LayerMeans
from onegrad.problem import Problem
from onegrad.theory.layers.any_layer import LayerErrors
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.options import Theory
from onegrad.theory.policy import Policy


def _full(errors: np.ndarray) -> LayerErrors:
    test, train, objective = errors.tolist()
    return LayerErrors(MatrixErrors(test, train, objective), 0.0, 0.0, 1, 1, test, train)


def _mean(*known: Any, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    means = LayerMeans(*known, **more)
    return means.mean, means.standard_error


def _draws(count: int, own: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Errors of layers that differ by 20 %, and rough ones, 10 % below with a scatter of their own
    of that size."""
    common = 1 + 0.2 * rng.standard_normal((count, 1))
    rough = common * np.array([2.0, 1.0, 1.5])
    return rough / 0.9 * (1 + own * rng.standard_normal((count, 3))), rough


def test_the_ratio_estimate_is_as_good_as_it_says():
    off, said, alone = [], [], []
    for seed in range(400):
        errors, rough = _draws(24, 0.01, np.random.default_rng(seed))
        known = [_full(row) for row in errors[:4]]
        mean, se = _mean(known, [MatrixErrors(*row.tolist()) for row in rough])
        truth = np.array([2.0, 1.0, 1.5, 2.0, 1.0]) / 0.9
        off.append(mean / truth - 1)
        said.append(se / truth)
        alone.append(_mean(known)[0] / truth - 1)
    root = np.sqrt(np.mean(np.square(off), axis=0))
    assert np.all(np.abs(np.mean(off, axis=0)) < 4 * root / 20)
    # the floor of a quarter of a fifth of 11 % is above the ratio's own scatter here
    assert np.all(np.sqrt(np.mean(np.square(said), axis=0)) > 0.95 * root)
    assert np.all(np.sqrt(np.mean(np.square(said), axis=0)) < 1.2 * root)
    assert np.all(np.sqrt(np.mean(np.square(alone), axis=0)) > 2 * root)  # four layers alone


def test_one_mean_in_a_hundred_is_further_off_than_it_states():
    """Layers are drawn until the mean is known, as `predict_layers` does: that stops where the
    scatter of few is small by chance, which standard errors alone do not know."""
    beyond = alone = 0
    trials = 600
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        layers = [_full(1 + 0.027 * rng.standard_normal(3)) for _ in range(4)]
        while len(layers) < 64 and not LayerMeans(layers).settled(0.01):
            layers.append(_full(1 + 0.027 * rng.standard_normal(3)))
        mean, _ = _mean(layers)
        off = np.abs(mean[:2] - 1)
        beyond += bool(np.any(off > LayerMeans(layers).scatter(Policy().stated)))
        alone += bool(np.any(off > 2 * LayerMeans(layers).scatter()))
    assert beyond <= 0.02 * trials < alone


def test_rough_errors_tell_where_their_ratio_is_known():
    rng = np.random.default_rng(1)
    for own, count, expected in ((1e-4, 1, False), (1e-4, 4, True), (0.3, 4, False)):
        errors, rough = _draws(4, own, rng)
        known = [_full(row) for row in errors[:count]]
        others = [MatrixErrors(*row.tolist()) for row in rough[:count]]
        assert LayerMeans(known, others).tells(0.01) == expected
    assert not LayerMeans([]).tells(0.01)


def test_few_layers_in_full_say_what_all_would(monkeypatch):
    tables = {
        "data": {"model": "mixture", "dim": 90, "spread": 30.0},
        "labels": {"link": "relu"},
        "network": {"width": 60, "activation": "tanh"},
        "training": {"samples": 150, "ridge": 1e-3, "rate": 0.5, "optimiser": "sign"},
    }
    problem = Problem.from_spec(tables)
    solved = []
    original = readouts.layer_errors
    monkeypatch.setattr(
        readouts, "layer_errors", lambda *x: solved.append(original(*x)) or solved[-1]
    )
    monkeypatch.setattr(LayerMeans, "settled", lambda *_: False)
    monkeypatch.setattr(LabelPower, "differs", False)
    theory = Theory("layer")
    quick = readouts.predict_layers(problem, theory, 3, 12)
    few = len(solved)
    monkeypatch.setattr(readouts, "_all_in_full", lambda *_: True)
    solved.clear()
    slow = readouts.predict_layers(problem, theory, 3, 12)
    assert few <= 4 < len(solved) == 12
    assert abs(quick.test_error - slow.test_error) < 0.5 * quick.test_error_se
    assert abs(quick.train_error - slow.train_error) < quick.train_error_se
    # four layers alone would be further off
    alone = np.mean([one.errors[0] for one in solved[:few]]) / slow.test_error - 1
    assert abs(alone) > 2 * abs(quick.test_error / slow.test_error - 1)
    assert 0.5 < LayerMeans(solved).scatter() / (quick.test_error_se / quick.test_error) < 2


_SPIKED = {
    "data": {"model": "mixture", "dim": 60, "spread": 40.0},
    "labels": {"link": "relu"},
    "network": {"width": 20},
    "training": {"samples": 30, "rate": 0.0},
}


class _Known(LabelPower):
    """Var y of a known mean, 1, beside those that were drawn."""

    expected = (1.0, 0.0)


def test_label_power_is_a_control_variate_as_good_as_it_says() -> None:
    """Errors that follow the label power: unbiased, with the standard error that they have, and
    smaller than without. Where they do not follow it nothing changes."""
    problem = Problem.from_spec(_SPIKED)
    off, said, plain = [], [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        v = 1 + 0.3 * rng.standard_normal((10, 1))
        errors = (0.2 + 0.8 * v) * (1 + 0.03 * rng.standard_normal((10, 3)))
        layers = [_full(row) for row in errors]
        mean, se = _mean(layers, power=_Known(problem, 0, v.ravel().tolist()))
        off.append(mean[0] - 1)
        said.append(se[0])
        plain.append(_mean(layers)[0][0] - 1)
        other = _Known(problem, 0, rng.standard_normal(10).tolist())
        if seed < 20:
            assert LayerMeans(layers, power=other).scatter() > 0.6 * LayerMeans(layers).scatter()
    root = np.sqrt(np.mean(np.square(off)))
    assert abs(np.mean(off)) < 4 * root / 20
    assert 0.85 < np.sqrt(np.mean(np.square(said))) / root < 1.15
    assert np.sqrt(np.mean(np.square(plain))) > 4 * root
    few = _Known(problem, 0, v.ravel().tolist()[:5])  # of five layers nothing is taken off
    assert np.array_equal(_mean(layers[:5], power=few)[0], _mean(layers[:5])[0])


def test_the_mean_label_power_is_that_of_populations() -> None:
    problem = Problem.from_spec(_SPIKED)
    expected, error = LabelPower(problem, 3).expected
    others = [problem.instance(seed).label_variance for seed in range(300)]
    allowed = 4 * np.hypot(error, np.std(others) / 300**0.5)
    assert abs(expected - np.mean(others)) < allowed
