"""Problems that differ after the first layer share tables and factors: nothing changes by it."""

import numpy as np
import pytest

import onegrad as og
from onegrad.theory import resolution
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import mean_degrees, solve_tasks
from onegrad.theory.task import Task

RIDGES = (1e-3, 2e-3, 5e-3)  # of one power of ten: rules are those of its power


def problem(ridge, loss="logistic"):
    return og.Problem(
        data={"model": "mixture", "dim": 200, "spread": 4.0, "directions": "orthogonal"},
        labels={"model": "component"}, network={"width": 150, "activation": "relu"},
        training={"samples": 300, "ridge": ridge, "rate": 60.0, "loss": loss},
    )  # fmt: skip


def test_together_is_as_alone(monkeypatch):
    """With a geometry each, as a stack; a surplus of labels has other weights."""
    made = []
    resolve = resolution._resolve
    monkeypatch.setattr(resolution, "_resolve", lambda *a: made.append(a) or resolve(*a))
    tasks = [Task.of(problem(ridge)) for ridge in RIDGES]
    tasks.append(Task(tasks[0].problem, tasks[0].geometry, surplus=1.0))
    level = QuadratureLevel.at(0)
    together = solve_tasks(tasks, level, 1e-9)
    assert len(made) == 1  # not one for each
    for task, one in zip(tasks, together, strict=True):
        (alone,) = solve_tasks([task], level, 1e-9)
        for name in ("test_loss", "train_loss", "test_error", "misclassification"):
            # tables of lower rank: what is dropped follows the smallest ridge of a stack
            assert getattr(one, name) == pytest.approx(getattr(alone, name), rel=2e-6)
    solve_tasks([tasks[0], Task.of(problem(1e-3, "huber"))], level, 1e-9)
    assert len(made) == 1 + len(tasks) + 2  # another loss has other nodes


def test_degrees_of_the_mean_part_by_its_rank():
    (found,) = solve_tasks([Task.of(problem(1e-2))], QuadratureLevel.at(1))
    point = found.by_node.response.point
    features = point.features
    assert features.mean_factors is not None
    seen = (features.mean * point.weights) @ features.mean.T
    whole = seen + np.diag(1 / (features.counts * point.gain))
    dense = float(np.trace(np.linalg.solve(whole, seen)))
    assert mean_degrees(point) == pytest.approx(dense, rel=1e-6)
    assert mean_degrees(point) != pytest.approx(len(seen), rel=0.1)
