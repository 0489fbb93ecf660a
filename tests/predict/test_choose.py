"""Which of two theories answers: types of neurons, or first layers that are drawn and trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from onegrad.errors import SpecError
from onegrad.predict.predict import predict, predict_curve
from onegrad.predict.prediction import LAYERS
from onegrad.theory.options import Theory
from onegrad.theory.policy import Policy

TABLES: dict[str, Any] = {
    "data": {"model": "mixture", "dim": 60, "spread": 5.0},
    "network": {"width": 40, "activation": "tanh"},
    "training": {"samples": 80, "ridge": 1e-2, "rate": 20.0},
}
NO_PATIENCE = replace(Policy(), patience=10.0)


def test_layers_answer_where_types_are_too_long() -> None:
    found = predict(TABLES, policy=NO_PATIENCE)
    assert found.method == LAYERS and "First layers were drawn" in found.assumptions[-1]
    # where types alone are asked they take their time
    plain = predict(TABLES, "conditional", policy=NO_PATIENCE)
    assert plain.test_error == predict(TABLES, "conditional").test_error


@pytest.mark.parametrize("accuracy", [0.005, 0.01])
def test_a_better_accuracy_does_not_switch_layers_off(accuracy: float) -> None:
    found = predict(TABLES, policy=NO_PATIENCE, accuracy=accuracy)
    assert found.method == LAYERS


def test_an_answer_is_of_one_theory() -> None:
    """Layers have no types: no errors of components, no learned function of another theory."""
    found = predict(TABLES, policy=NO_PATIENCE)
    assert found.solution is None and found.component_test is None and found.directions == ()


def test_the_smaller_estimate_answers_where_types_are_uncertain() -> None:
    types = predict(TABLES, "conditional")
    found = predict(TABLES, policy=replace(Policy(), uncertain=0.0))
    assert found.error_estimate <= types.error_estimate
    engine = [one for one in found.decisions if one.about == "engine"]
    assert len(engine) == 1 and engine[0].value == types.error_estimate
    certain = predict(TABLES, policy=replace(Policy(), uncertain=1.0))
    assert certain.test_error == types.test_error


def test_points_of_a_curve_keep_their_theory() -> None:
    (point,) = predict_curve([TABLES], policy=replace(Policy(), uncertain=0.0))
    assert point.method != LAYERS and "alone draws first layers" in point.assumptions[-1]
    assert "a point of a curve keeps this theory" in point.why
    (certain,) = predict_curve([TABLES], policy=replace(Policy(), uncertain=1.0))
    assert not any("alone draws" in one for one in certain.assumptions)


@pytest.mark.parametrize("method", ["conditional", "layer"])
def test_the_estimate_is_the_sum_of_what_is_open(method: str) -> None:
    found = predict(TABLES, method)
    assert found.error_estimate == pytest.approx(sum(found.open.parts.values()), rel=1e-12)
    assert (found.open.draws > 0) == (method == "layer")


def test_the_old_method_is_refused_with_advice() -> None:
    with pytest.raises(SpecError, match="layer"):
        Theory("hybrid")
