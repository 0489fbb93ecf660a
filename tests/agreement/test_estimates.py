"""The network itself at n of a few hundred: no difference exceeds the estimate and 4 s.e."""

from __future__ import annotations

from typing import Any

import pytest

import onegrad as og


def problem(convention: str, activation: str, link: str, **changes: Any) -> og.Problem:
    tables: dict[str, Any] = {
        "data": {"model": "isotropic", "dim": 240},
        "labels": {"link": link},
        "network": {"convention": convention, "activation": activation, "width": 200},
        "training": {"samples": 480, "ridge": 0.02, "rate": 1.0},
    }
    for table, values in changes.items():
        own = {} if "model" in values and table == "labels" else tables[table]
        tables[table] = {**own, **values}
    return og.Problem.from_spec(tables)


SPIKES = {
    "model": "mixture", "weights": [0.6, 0.4], "spread": 15.0, "directions": "orthogonal",
}  # fmt: skip
PROBLEMS = {
    "tanh labels": problem("isotropic", "tanh", "tanh", training={"rate": 0.0}),
    "erf labels, step": problem("isotropic", "relu", "erf", training={"rate": 4.0}),
    "spikes": problem("mixture", "relu", "sigmoid", data=SPIKES, training={"rate": 40.0}),
    "even activation": problem(
        "mixture", "hermite(0, 0, 1)", "relu", data=SPIKES,
        labels={"model": "component"}, training={"rate": 20.0, "ridge": 1e-2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_differences_are_within_the_estimate(name: str) -> None:
    found, simulated = og.predict(PROBLEMS[name]), og.simulate(PROBLEMS[name], seeds=24, rng=5)
    assert 0 < found.error_estimate < 0.12
    for key in ("test_error", "train_error"):
        mean, error = getattr(simulated, key)
        assert abs(getattr(found, key) - mean) <= found.error_estimate * mean + 4 * error, key


def test_near_interpolation_every_method_refuses() -> None:
    close = problem(
        "isotropic",
        "relu",
        "hermite(0, 1, 0.5)",
        network={"width": 480},
        training={"ridge": 1e-14, "rate": 2.0},
    )
    for method in ("auto", "conditional", "isotropic", "isotropic-limit"):
        failed = og.predict(close, method, throw=False)
        assert failed.status == "failed" and "interpolation" in failed.error, method


def test_every_number_has_a_finite_estimate_unless_it_is_a_draft() -> None:
    ordinary = problem("isotropic", "relu", "hermite(0, 1, 0.5)", training={"rate": 2.0})
    for method in ("auto", "isotropic", "isotropic-limit"):
        assert 0 < og.predict(ordinary, method).error_estimate < 1
        draft = og.predict(ordinary, method, accuracy=0.05)
        assert draft.status == "draft" and draft.error_estimate != draft.error_estimate
