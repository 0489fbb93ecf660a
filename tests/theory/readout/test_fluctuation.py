"""The 1/n correction of losses: the mean part of the readout, and ridge regression for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.options import Theory
from onegrad.theory.size.finite_size import with_mean_part
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

    assert wanted > 0.004
    found = with_mean_part(limit).test_error / limit.test_error - 1
    assert found == pytest.approx(wanted, abs=1.5e-3)


@pytest.mark.parametrize("name", ["step", "spikes"])
def test_a_huber_loss_that_never_bends_has_the_correction_of_the_squared_one(name: str) -> None:
    """All of it, though the mean part is taken from the loss and the rest from ridge regression.
    The sum of labels, over which losses take a mean of their own, is the same in all samples."""
    squared = means(**SETTINGS[name], counts="proportional")
    huber = squared.replace(**{"training.loss": "huber", "training.delta": 1e6})
    one, other = (predict_mixture(Task.of(p)) for p in (squared, huber))
    limit = predict_mixture(Task.of(squared), LIMIT)
    for quantity in ("test_error", "train_error", "train_objective"):
        wanted, found = getattr(one, quantity), getattr(other, quantity)
        assert found == pytest.approx(wanted, rel=5e-4)
    assert abs(one.test_error / limit.test_error - 1) > 4e-3
    assert other.open.sizes < 1.3 * one.open.sizes


@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_test_losses_rise_and_training_losses_fall(loss: str) -> None:
    task = Task.of(means(loss))
    limit, finite = (predict_mixture(task, theory) for theory in (LIMIT, Theory()))
    assert 1.001 < finite.test_loss / limit.test_loss < 1.03
    assert 0.96 < finite.train_loss / limit.train_loss < 0.9995
    for quantity in ("test", "train"):  # components have equal weights
        parts = getattr(finite, f"component_{quantity}")
        assert getattr(finite, f"{quantity}_error") == pytest.approx(
            float(np.mean(parts)), rel=1e-6
        )
