"""What the fluctuation of the mean part adds to test errors: most of their 1/n correction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.problem import Problem
from onegrad.theory import resolution
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.options import Theory
from onegrad.theory.resolution import with_fluctuation
from onegrad.theory.task import Task

LIMIT = Theory(finite_size=False)


def means(loss: str = "squared", width: int = 300, rate: float = 0.5, **data: Any) -> Problem:
    return Problem.from_spec({
        "data": {"model": "mixture", "dim": 300, "mean": 2.0, "rank": 0, "spread": 1.0,
                 "directions": "orthogonal"} | data,
        "labels": {"model": "component"},
        "network": {"activation": "relu", "width": width},
        "training": {"samples": 300, "ridge": 1e-3, "rate": rate * width, "loss": loss,
                     "gradient": "labels-only"},
    })  # fmt: skip


SETTINGS: dict[str, dict[str, Any]] = {
    "step": {}, "none": {"rate": 0.0}, "narrow": {"width": 90}, "wide": {"width": 900},
    "spikes": {"rank": 1, "spread": 10.0},
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_most_of_the_correction_of_the_squared_loss(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is derived in another way (notes/2026-11-finite-size.md), and contains more."""
    task = Task.of(means(**SETTINGS[name]))
    limit, corrected = (predict_mixture(task, theory) for theory in (LIMIT, Theory()))
    wanted = corrected.test_error / limit.test_error - 1

    def found() -> float:
        return with_fluctuation(limit).test_error / limit.test_error - 1

    assert wanted > 0.004
    assert found() == pytest.approx(wanted, abs=1.5e-3)
    whole = resolution._fluctuation
    monkeypatch.setattr(resolution, "_fluctuation", lambda *a: 2 * whole(*a))  # a factor of two off
    assert found() != pytest.approx(wanted, abs=1.5e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_test_losses_have_it_and_training_losses_not(loss: str) -> None:
    task = Task.of(means(loss))
    limit, finite = (predict_mixture(task, theory) for theory in (LIMIT, Theory()))
    again = with_fluctuation(replace(limit, misclassification=None))
    assert finite.test_loss == pytest.approx(again.test_loss, rel=1e-3)
    assert 1.001 < finite.test_loss / limit.test_loss < 1.03
    assert finite.train_loss == pytest.approx(limit.train_loss, rel=1e-3)
    assert finite.test_error == pytest.approx(
        float(np.mean(finite.component_test)), rel=1e-6
    )  # components have equal weights
