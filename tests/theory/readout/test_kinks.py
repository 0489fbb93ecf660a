"""Losses that bend: rules fine enough for them, a start from smoother ones, tables of low rank."""

import math
from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.errors import Failure
from onegrad.gaussian.convex_losses import loss_of
from onegrad.theory import resolution
from onegrad.theory.layers.features import dropped
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.reweighted import LossProblem, solve_with_loss
from onegrad.theory.readout.stage import TypeStage
from onegrad.theory.resolution import _resolve, solve_tasks
from onegrad.theory.task import Task

MEANS = {
    "data": {"model": "mixture", "dim": 120, "mean": 1.5, "rank": 0, "spread": 1.0},
    "labels": {"model": "component"},
    "network": {"width": 120},
    "training": {"samples": 150, "ridge": 1e-2, "rate": 60.0, "loss": "hinge"},
}
UNEQUAL = {
    "data": {"model": "mixture", "dim": 240, "spread": 5.0, "weights": [0.65, 0.35]},
    "labels": {"model": "component"},
    "network": {"width": 265, "activation": "softplus"},
    "training": {"samples": 250, "ridge": 0.0236, "rate": 0.0, "loss": "hinge"},
}
FLAT = {
    "data": {"model": "mixture", "dim": 300, "spread": 8.0, "directions": "orthogonal"},
    "labels": {"model": "component"},
    "network": {"width": 90},
    "training": {"samples": 300, "ridge": 1e-3, "rate": 45.0, "loss": "hinge"},
}
FAINT = {
    "data": {"model": "mixture", "dim": 120, "spread": 7.7, "mean": 1.55, "counts": "proportional"},
    "labels": {"model": "component", "flip": 0.035},
    "network": {"width": 64, "activation": "sigmoid"},
    "training": {"samples": 130, "ridge": 0.05, "rate": 0.0, "loss": "huber"},
}


def features_of(spec, number=0):
    problem = og.Problem.from_spec(spec)
    return problem, _resolve(Task.of(problem), QuadratureLevel.at(number)).features


def solved(problem, features, ridge=1.0, tolerance=1e-6):
    numbers = np.asarray(float(problem.samples)), np.asarray(ridge * problem.effective_ridge)
    return solve_with_loss(
        LossProblem(TypeStage(features, *numbers), problem.loss, True), tolerance
    )[1]


def apart(spec):
    """Of the first two resolutions: test and training error, test and training loss."""
    task = Task.of(og.Problem.from_spec(spec))
    found = [solve_tasks([task], QuadratureLevel.at(i), 1e-6, False)[0] for i in (0, 1)]
    assert not any(isinstance(one, Failure) for one in found)
    names = ("test_error", "train_error", "test_loss", "train_loss")
    return max(abs(getattr(found[0], n) / getattr(found[1], n) - 1) for n in names)


def test_a_margin_along_the_step_is_resolved():
    assert apart(MEANS) < 0.005  # with the nodes that a smooth loss has: 0.05


def test_a_squared_hinge_is_resolved_too():
    spec = {**MEANS, "data": {**MEANS["data"], "mean": 2.0},
            "training": {**MEANS["training"], "loss": "squared-hinge"}}  # fmt: skip
    assert apart(spec) < 0.005


def test_outputs_that_hardly_differ_need_no_more_nodes():
    problem = og.Problem.from_spec(FLAT)
    (rough,) = solve_tasks([Task.of(problem)], QuadratureLevel.at(0), 1e-6, False)
    assert rough.flat
    fine, more = (
        solve_tasks([replace(Task.of(problem), flat=flat)], QuadratureLevel.at(1), 1e-6, False)[0]
        for flat in (True, False)
    )
    assert fine.nodes < 0.5 * more.nodes
    for name in ("test_loss", "train_loss"):
        assert getattr(fine, name) == pytest.approx(getattr(more, name), rel=1e-3)
    (steep,) = solve_tasks(
        [Task.of(og.Problem.from_spec(MEANS))], QuadratureLevel.at(0), 1e-6, False
    )
    assert not steep.flat


def test_three_indices_leave_room_for_the_axis_of_the_step():
    spec = {
        "data": {"model": "isotropic", "dim": 120},
        "labels": {"model": "multi-index", "indices": 3, "link": "sum", "noise": 0.3},
        "network": {"width": 100, "activation": "tanh"},
        "training": {"samples": 200, "ridge": 1e-2, "rate": 100.0, "loss": "huber"},
    }
    assert apart(spec) < 0.05  # with eight pieces of labels: 0.2


def test_signs_are_resolved_along_the_outputs():
    """Few points beside many, where outputs pass zero far out along no axis of the data."""
    spec = {**MEANS, "data": {**MEANS["data"], "dim": 300, "mean": 2.0},
            "network": {"width": 400},
            "training": {"samples": 300, "ridge": 1e-3, "rate": 200.0, "loss": "logistic",
                         "gradient": "labels-only"}}  # fmt: skip
    task = Task.of(og.Problem.from_spec(spec))
    (found,) = solve_tasks([task], QuadratureLevel.at(0), 1e-6, False)

    def wrong(points):
        level = replace(QuadratureLevel.at(1), points=points)
        return resolution._with_signs(found, level).misclassification

    right = wrong(16_384)
    assert wrong(1024) == pytest.approx(right, rel=0.005)


def test_absolute_values_of_labels_are_resolved():
    """At a strong ridge f = 0, and the loss is E|t₁t₂| = 2/π."""
    spec = {
        "data": {"model": "isotropic", "dim": 100},
        "labels": {"model": "multi-index", "indices": 2, "link": "product"},
        "network": {"width": 100, "activation": "softplus"},
        "training": {"samples": 150, "ridge": 10.0, "rate": 50.0, "loss": "absolute"},
    }
    found = og.predict(spec, "conditional")
    assert found.test_loss == pytest.approx(2 / math.pi, rel=1e-3)
    assert found.status == "ok"


def test_most_samples_on_one_side_of_a_kink():
    """Unequal components at a strong ridge, by a larger s first; dL/d log λ = λ‖a‖²."""
    problem, features = features_of(UNEQUAL)
    at, step = solved(problem, features, 1.0, 1e-8), 1e-3
    up, down = (float(solved(problem, features, math.exp(s), 1e-8).train_objective)
                for s in (step, -step))  # fmt: skip
    penalty = float(at.train_objective - at.train_loss)
    assert (up - down) / (2 * step) == pytest.approx(penalty, rel=1e-3)


def test_what_a_table_of_lower_rank_drops_is_noise():
    """With it errors move by 1e-6; a rank that is much too low (negative control) by 1e-5."""
    spec = {**MEANS, "training": {**MEANS["training"], "loss": "logistic"}}
    problem, features = features_of(spec, 1)
    names = ("test_error", "train_error", "test_loss", "train_loss")

    def off(others):
        found = solved(problem, others, tolerance=1e-9)
        return max(abs(float(getattr(found, n)) / float(getattr(whole, n)) - 1) for n in names)

    whole = solved(problem, features, tolerance=1e-9)
    low = features.of_lower_rank(dropped(features, np.asarray(problem.effective_ridge)))
    assert low.factors[0].shape[-1] < features.factors[0].shape[-1]
    assert off(low) < 1e-6
    assert off(features.of_lower_rank(1e-3)) > 1e-5


def test_signs_by_a_surplus_beside_random_directions():
    """At a strong ridge the surplus of flipped labels decides signs; two nodes are not enough."""
    network = og.simulate(FAINT, seeds=80).misclassification
    allowed = 4 * network.standard_error

    assert abs(og.predict(FAINT).misclassification - network.mean) < allowed
    # negative control: the limit, which knows no surplus
    assert abs(og.predict(FAINT, finite_size=False).misclassification - network.mean) > allowed


def test_a_wide_huber_loss_is_the_squared_one():
    spec = {**MEANS, "training": {**MEANS["training"], "loss": "squared"}}
    wide = {**MEANS, "training": {**MEANS["training"], "loss": "huber", "delta": 1e6}}
    limit = og.Theory(finite_size=False)
    a, b = og.predict(spec, limit), og.predict(wide, limit)
    for name in ("test_error", "train_error", "train_objective"):
        assert getattr(b, name) == pytest.approx(getattr(a, name), rel=1e-6)
    assert loss_of("huber", 1e6).limit == 1e6
