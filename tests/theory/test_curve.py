"""Curves: points solved together give the numbers of points solved alone, and drafts are close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.activation import get_activation
from onegrad.errors import AssumptionError
from onegrad.experiments.predict import Prediction, predict, predict_curve
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.features import data_nodes, features_at
from onegrad.theory.fixed_point import Features, solve_fixed_point
from onegrad.theory.geometry import Labels, Training, typical_geometry
from onegrad.theory.neurons import pure_types
from onegrad.theory.nodes import Effort, standard_nodes
from onegrad.theory.second_moments import errors


def problem(**changes: Any) -> Problem:
    tables: dict[str, dict[str, Any]] = {
        "data": {"model": "mixture", "dim": 400, "weights": [0.4, 0.6]},
        "labels": {"model": "single-index", "link": "relu"},
        "network": {"activation": "relu", "width_ratio": 0.8},
        "training": {"samples": 500, "ridge": 1e-3},
        "scaling": {"strength": 0.7, "weighting": 0.5},
    }
    for key, value in changes.items():
        table, name = key.split("__")
        tables[table] = {name: value} if name == "model" else tables[table] | {name: value}
    return Problem(**tables)


SWEEPS: list[tuple[dict[str, Any], str, list[float]]] = [
    ({}, "training__ridge", [1e-5, 1e-3, 1e-1, 10.0]),
    ({"network__activation": "tanh"}, "network__width_ratio", [0.2, 0.9, 1.4, 4.0]),
    ({"labels__model": "component"}, "data__alignment", [0.0, 0.5, 0.99, 1.0]),
    ({"network__activation": "gelu"}, "scaling__weighting", [0.0, 0.3, 0.6, 1.0]),
]


@pytest.mark.parametrize("accuracy", [0.01, 0.03])
@pytest.mark.parametrize(("base", "key", "values"), SWEEPS)
def test_a_curve_is_its_points(
    base: dict[str, Any], key: str, values: list[float], accuracy: float
) -> None:
    problems = [problem(**base, **{key: value}) for value in values]
    curve = predict_curve(problems, accuracy=accuracy)
    for one, together in zip(problems, curve, strict=True):
        alone = predict(one, accuracy=accuracy)
        assert isinstance(together, Prediction)
        assert together.test_error == pytest.approx(alone.test_error, rel=1e-9)
        assert together.train_error == pytest.approx(alone.train_error, rel=1e-9)
        assert together.component_test == pytest.approx(alone.component_test, rel=1e-9)
        if alone.classification_error is None:
            assert together.classification_error is None
        else:
            assert together.classification_error == pytest.approx(alone.classification_error)
        assert together.status == alone.status == ("draft" if accuracy >= 0.03 else "ok")


def test_a_refused_point_does_not_spoil_the_curve() -> None:
    problems = [problem(training__ridge=r, network__width_ratio=1.0) for r in (1e-15, 1e-3)]
    refused, fine = predict_curve(problems)
    assert isinstance(refused, AssumptionError) and "interpolation" in str(refused)
    assert isinstance(fine, Prediction) and fine.status == "ok"


def test_a_draft_has_no_error_estimate() -> None:
    draft = predict(problem(), accuracy=0.03)
    assert draft.status == "draft" and np.isnan(draft.error_estimate)
    assert draft.as_json()["error_estimate"] is None
    assert "one coarse resolution" in draft.assumptions[-1]


DRAFTS: list[dict[str, Any]] = [
    {"network__activation": activation, "scaling__strength": strength, "data__rank": rank}
    | ({"labels__model": "component"} if component else {})
    | ({"data__mean": 2.0} if mean else {})
    for activation, strength, rank, component, mean in [
        ("relu", 0.0, 1, False, False),
        ("relu", 0.95, 1, False, True),
        ("tanh", 0.9, 2, False, False),
        ("tanh", 0.6, 3, True, True),
        ("sigmoid", 0.8, 3, False, True),
        ("sigmoid", 0.4, 1, True, False),
        ("erf", 0.3, 2, True, True),
        ("erf", 0.95, 3, False, False),
        ("gelu", 0.7, 2, False, True),
        ("gelu", 0.9, 1, True, False),
    ]
]


@pytest.mark.parametrize("changes", DRAFTS)
def test_drafts_are_within_three_percent(changes: dict[str, Any]) -> None:
    rough, fine = (predict(problem(**changes), accuracy=a) for a in (0.03, 0.005))
    assert rough.test_error == pytest.approx(fine.test_error, rel=0.03)
    assert rough.train_error == pytest.approx(fine.train_error, rel=0.03)


def test_a_rule_without_the_label_axis_is_no_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: two nodes for a ReLU label miss the three percent."""
    coarse = replace(Effort.draft(), label_nodes=1)
    monkeypatch.setattr(Effort, "draft", staticmethod(lambda: coarse))
    wrong = predict(problem(), accuracy=0.03)
    monkeypatch.undo()
    assert wrong.test_error != pytest.approx(predict(problem()).test_error, rel=0.03)


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
def test_a_stack_equals_its_problems(gradient: Any) -> None:
    """With a tilt and without; slopes of different ranks share one stack."""
    parts, ridges, samples = [], [0.3, 1e-2, 1e-4], [150, 400, 220]
    for name in ("relu", "tanh", "identity"):
        geometry = typical_geometry(200, [0.3, 0.7], [[10.0], [5.0]])
        labels = Labels(links=(get_activation("relu"),) * 2, noise=0.3)
        training = Training(
            get_activation(name), 150, 180, 180, 2.0, 0.1, 1 / geometry.mean_trace, 150**-0.5,
            gradient=gradient,
        )  # fmt: skip
        neurons = pure_types(geometry, labels, training, Effort.draft())
        where = data_nodes(geometry, labels, neurons, Effort.draft())
        parts.append(features_at(geometry, labels, training, neurons, where))
    assert len({one.factors[0].shape for one in parts}) > 1
    point = solve_fixed_point(Features.stack(parts), np.array(samples, float), np.array(ridges))
    together = errors(point)
    for i, one in enumerate(parts):
        alone_point = solve_fixed_point(one, samples[i], ridges[i])
        alone = errors(alone_point)
        assert abs(point.iterations[i] - alone_point.iterations) <= 2
        assert np.allclose(point.take(i).gain, alone_point.gain, rtol=1e-9)
        mine = together.take(i)
        assert float(mine.test_error) == pytest.approx(float(alone.test_error), rel=1e-9)
        assert np.allclose(mine.variance, alone.variance, rtol=1e-8)
        assert np.allclose(mine.response.variance_at(one), alone.variance, rtol=1e-6, atol=1e-9)


def test_shortened_rules_stay_below_their_limit() -> None:
    effort = Effort.draft()
    z, w = standard_nodes(np.full(8, 5.0), effort)
    assert len(w) <= effort.most
    assert np.allclose(w @ z, 0) and np.allclose((z.T * w) @ z, np.eye(8))


def test_a_step_beyond_all_bounds_is_like_a_very_large_one() -> None:
    """The readout's axis is then so important that its weight rounds to one."""
    tables = {
        "data": {"model": "isotropic", "dim": 100},
        "network": {"convention": "isotropic", "activation": "relu", "width": 150},
        "training": {"samples": 200, "ridge": 0.01},
    }
    large, larger = (
        predict(Problem.from_spec(tables | {"scaling": {"exponent": 0.3, "constant": c}}))
        for c in (1e7, 1e9)
    )
    assert larger.test_error == pytest.approx(large.test_error, rel=1e-3)


def test_unknown_geometry_is_not_shared() -> None:
    """Two geometries with equal numbers are two objects, and the answers the same."""
    geometries = [typical_geometry(300, [1.0], [[9.0]]) for _ in range(2)]
    labels = Labels(links=(get_activation("relu"),))
    training = Training(get_activation("relu"), 200, 300, 300, 3.0, 0.1, 1 / 309, 1 / 200)
    one, two = (predict_mixture(g, labels, training).test_error for g in geometries)
    assert one == two and geometries[0] != geometries[1]
