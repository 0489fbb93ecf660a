"""When first layers are drawn in the place of types, and when they are not asked at all."""

from __future__ import annotations

import math

import pytest

from onegrad.errors import AssumptionError
from onegrad.predict import fallback as drawn_instead
from onegrad.predict.fallback import DrawnLayers
from onegrad.predict.layers import LeftOpen
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.theory.options import Theory

TABLES = {
    "data": {"model": "mixture", "dim": 60, "spread": 5.0},
    "network": {"width": 40, "activation": "tanh"},
    "training": {"samples": 80, "ridge": 1e-2, "rate": 20.0},
}


def layers_of(**options: float) -> DrawnLayers:
    return DrawnLayers(Problem.from_spec(TABLES), Theory(**options), 0)  # type: ignore[arg-type]


def test_layers_that_leave_more_open_are_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def leaves_half(*_: object, enough: float) -> None:
        asked.append(enough)
        raise LeftOpen(0.5)

    monkeypatch.setattr(drawn_instead, "predict_layers", leaves_half)
    layers = layers_of()
    assert [layers.within(enough) for enough in (0.1, 0.4, 0.6)] == [None] * 3
    assert asked == [0.1, 0.6]


def test_one_answer_serves_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = drawn_instead.predict_layers
    monkeypatch.setattr(
        drawn_instead, "predict_layers", lambda *x, **y: asked.append(x) or original(*x, **y)
    )
    layers = layers_of()
    found = layers.within(math.inf)
    assert found is not None and found is layers.found
    assert layers.within(0.5 * found.error_estimate) is None
    assert layers.within(2 * found.error_estimate) is found
    assert len(asked) == 1


def test_types_wait_only_for_layers_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables beyond the patience go to layers, and are made all the same where these refuse."""
    plain = predict(TABLES, "conditional")
    monkeypatch.setattr(drawn_instead, "_PATIENCE", 10.0)
    assert "First layers were drawn" in str(predict(TABLES).assumptions)

    def refuses(*_: object, **__: object) -> None:
        raise AssumptionError("no layers here")

    monkeypatch.setattr(drawn_instead, "predict_layers", refuses)
    assert predict(TABLES).test_error == plain.test_error
    assert layers_of(accuracy=0.005).patience == math.inf
