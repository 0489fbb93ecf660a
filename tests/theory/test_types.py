"""Neurons after the step: what must not be left out, and what a step of no size changes."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.theory.layers import step, types

from .settings import agrees, conditional, mixture, orthogonal

# simulate(orthogonal(…, strength=1, weighting=1, ratio=0.3), seeds=60, risk="exact")
MAXIMAL = {
    "relu": ((0.10618, 0.00112), (0.20121, 0.00088)),
    "tanh": ((0.18421, 0.00170), (0.32820, 0.00093)),
}


def agrees_at_maximal_step(activation: str) -> bool:
    train, test = MAXIMAL[activation]
    solution = conditional(orthogonal(1000, activation, strength=1.0, weighting=1.0, ratio=0.3))
    return agrees(solution.train_error, train) and agrees(solution.test_error, test)


@pytest.mark.parametrize("activation", list(MAXIMAL))
def test_negative_control_diagonal_covariance(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The covariance of a neuron's coordinates is not diagonal at a maximal step."""
    assert agrees_at_maximal_step(activation)
    root = types._spread_root

    def diagonal(squares: np.ndarray) -> np.ndarray:
        return root(squares * np.eye(squares.shape[-1]))

    monkeypatch.setattr(types, "_spread_root", diagonal)
    assert not agrees_at_maximal_step(activation)


@pytest.mark.parametrize("activation", list(MAXIMAL))
def test_negative_control_independent_direction(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """e is not independent of the sample that the step was made on."""
    monkeypatch.setattr(step, "_memory", lambda *_: 0.0)
    assert not agrees_at_maximal_step(activation)


def test_a_vanishing_step_is_continuous() -> None:
    none, tiny = (conditional(mixture(rate=rate)) for rate in (0.0, 1e-6))
    assert tiny.test_error == pytest.approx(none.test_error, rel=1e-4)
