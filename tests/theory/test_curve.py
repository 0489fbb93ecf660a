"""Curves: points solved together give the numbers of points solved alone, and drafts are close."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.predict.predict import predict, predict_curve
from onegrad.problem import Problem
from onegrad.theory import resolution
from onegrad.theory.conditional import predict_mixture, predict_mixtures
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution, Task

from .settings import conditional


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
    tasks = [Task.of(problem(**base, **{key: value})) for value in values]
    theory = Theory(accuracy=accuracy)
    for task, together in zip(tasks, predict_mixtures(tasks, theory), strict=True):
        alone = predict_mixture(task, theory)
        assert isinstance(together, Solution)
        assert together.test_error == pytest.approx(alone.test_error, rel=1e-9)
        assert together.train_error == pytest.approx(alone.train_error, rel=1e-9)
        assert together.component_test == pytest.approx(alone.component_test, rel=1e-9)
        if alone.misclassification is None:
            assert together.misclassification is None
        else:
            assert together.misclassification == pytest.approx(alone.misclassification)
        assert together.status == alone.status == ("draft" if accuracy >= 0.03 else "ok")


def test_a_failed_point_does_not_spoil_the_curve() -> None:
    problems = [problem(training__ridge=r, network__width_ratio=1.0) for r in (1e-15, 1e-3)]
    failed, fine = predict_curve(problems)
    assert failed.status == "failed" and np.isnan(failed.test_error)
    assert "interpolation" in failed.error
    assert fine.status == "ok" and fine.error == ""
    with pytest.raises(AssumptionError, match="interpolation"):
        predict_curve(problems, throw=True)


def test_a_draft_has_no_error_estimate() -> None:
    draft = predict(problem(), accuracy=0.03)
    assert draft.status == "draft" and np.isnan(draft.error_estimate)
    assert draft.as_json()["error_estimate"] is None
    assert "one coarse resolution" in draft.numerics[0]


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
    rough, fine = (conditional(problem(**changes), accuracy=a) for a in (0.03, 0.005))
    assert rough.test_error == pytest.approx(fine.test_error, rel=0.03)
    assert rough.train_error == pytest.approx(fine.train_error, rel=0.03)


def test_a_step_beyond_all_bounds_is_like_a_very_large_one() -> None:
    """The readout's axis is then so important that its weight rounds to one."""
    tables = {
        "data": {"model": "isotropic", "dim": 100},
        "network": {"convention": "isotropic", "activation": "relu", "width": 150},
        "training": {"samples": 200, "ridge": 0.01},
    }
    problems = (
        Problem.from_spec(tables | {"scaling": {"exponent": 0.3, "constant": c}})
        for c in (1e7, 1e9)
    )
    # `predict` refuses: finite sizes leave a factor of two open
    large, larger = (predict_mixture(Task.of(one), Theory(finite_size=False)) for one in problems)
    assert larger.test_error == pytest.approx(large.test_error, rel=1e-6)
    assert larger.train_error == pytest.approx(large.train_error, rel=1e-6)


def test_unknown_geometry_is_not_shared() -> None:
    """Two geometries with equal numbers are two objects, and the answers the same."""
    task = Task.of(problem())
    other = replace(task, geometry=replace(task.geometry))
    one, two = (predict_mixture(t).test_error for t in (task, other))
    assert one == two and task.geometry != other.geometry


def test_neighbours_share_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of the readout, and ridges of the same order, change nothing that was integrated."""
    made, original = [], resolution.trained_types

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(resolution, "trained_types", counted)
    points = [
        Problem(
            data={"model": "mixture", "dim": 400},
            network={"width": 300},
            training={"samples": samples, "step_samples": step_samples, "ridge": ridge},
            scaling={"strength": 0.7, "weighting": 0.5},
        )
        for samples, step_samples, ridge in [(500, 400, 2e-3), (700, 400, 1e-3), (700, 300, 1e-3)]
    ]
    predict_mixtures([Task.of(point) for point in points], Theory(accuracy=0.03))
    assert len(made) == 2


def test_a_curve_of_another_loss_is_that_of_its_points() -> None:
    tables: dict[str, Any] = {
        "data": {"model": "mixture", "dim": 150, "spread": 10.0},
        "labels": {"model": "single-index", "link": "sign"},
        "network": {"width": 150, "activation": "relu"},
        "training": {"samples": 150, "rate": 40.0, "loss": "logistic", "gradient": "labels-only"},
    }
    points = [
        Problem.from_spec(tables | {"training": tables["training"] | {"ridge": float(ridge)}})
        for ridge in np.geomspace(1e-2, 1.0, 8)
    ]
    curve = predict_curve(points)
    names = ("test_error", "train_error", "test_loss", "train_loss", "misclassification")

    def apart(found: Any, alone: Any) -> float:
        return max(abs(getattr(found, n) / getattr(alone, n) - 1) for n in names)

    for i in (1, 2, 5):
        (alone,) = predict_curve([points[i]])
        assert apart(curve[i], alone) < min(0.01, curve[i].error_estimate)
