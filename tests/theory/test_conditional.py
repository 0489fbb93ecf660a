"""The theory of mixtures against the network itself, its limits, and what must not agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.activation import get_activation, hermite_activation
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.experiments.predict import predict
from onegrad.experiments.simulate import simulate
from onegrad.problem import Problem
from onegrad.theory import neurons as neurons_module
from onegrad.theory import resolution as resolution_module
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.features import Nodes
from onegrad.theory.geometry import (
    Geometry,
    Labels,
    Training,
    geometry_from_arrays,
    typical_geometry,
)
from onegrad.theory.isotropic import predict_isotropic
from onegrad.theory.learned import learned_function
from onegrad.theory.neurons import drawn_types
from onegrad.theory.nodes import Effort, component_nodes, piecewise_gauss, quasi_gaussian, two_level
from onegrad.theory.resolution import Solution, errors_at
from onegrad.theory.smoothing import slope_moments, smoothed

from . import plain_simulation as plain

Setting = tuple[Geometry, Labels, Training]


def setting(
    strength: float = 0.74,
    weighting: float = 0.5,
    ratio: float = 1.0,
    activation: str = "relu",
    *,
    n: int = 1000,
    component: bool = False,
    weights: tuple[float, ...] = (0.5, 0.5),
    rank: int = 1,
    mean: float = 0.0,
    noise: float = 0.0,
    ridge: float = 1e-4,
    rate: float | None = None,
    link: str = "relu",
) -> Setting:
    """A problem of the mixture convention with m = m̃ = n and typical overlaps."""
    width = max(1, round(ratio * n))
    theta = n ** (strength * (1 - weighting))
    geometry = typical_geometry(
        n, weights, [[theta] * rank] * len(weights), mean=mean,
        teacher=None if component else "random",
    )  # fmt: skip
    labels = (
        Labels(values=(1.0, -1.0), noise=noise)
        if component
        else Labels(links=(get_activation(link),) * len(weights), noise=noise)
    )
    training = Training(
        get_activation(activation), width, n, n,
        n ** (strength * weighting) if rate is None else rate,
        ridge * width, 1 / geometry.mean_trace, 1 / width,
    )  # fmt: skip
    return geometry, labels, training


# --- reference values: simulated networks, n = m = 1000, mean ± standard error ------------

REFERENCE = [
    ({}, (0.00947, 0.00011), (0.04408, 0.00022)),
    ({"activation": "tanh"}, (0.01601, 0.00017), (0.06979, 0.00041)),
    ({"activation": "sigmoid"}, (0.02304, 0.00015), (0.03693, 0.00022)),
    ({"weighting": 0.0}, (0.00092, 0.00001), (0.00408, 0.00003)),
    ({"weighting": 1.0, "activation": "tanh"}, (0.07362, 0.00041), (0.31633, 0.00203)),
    ({"component": True}, (0.30999, 0.0018), (1.43817, 0.0072)),
    ({"rate": 0.0}, (0.00934, 0.00013), (0.04414, 0.00035)),
]


def agrees(value: float, reference: tuple[float, float]) -> bool:
    mean, standard_error = reference
    return abs(value - mean) <= 4 * standard_error + 0.02 * mean


@pytest.mark.parametrize(("changes", "train", "test"), REFERENCE)
def test_reference_table(
    changes: dict[str, Any], train: tuple[float, float], test: tuple[float, float]
) -> None:
    solution = predict_mixture(*setting(**changes))
    assert solution.status == "ok" and solution.error_estimate <= 0.01
    assert agrees(solution.train_error, train)
    assert agrees(solution.test_error, test)


# --- agreement with a plain simulation ----------------------------------------------------


def simulated_and_predicted(
    seeds: int,
    n: int,
    *,
    strength: float = 0.74,
    weighting: float = 0.5,
    ratio: float = 1.0,
    activation: str = "relu",
    component: bool = False,
    weights: tuple[float, ...] = (0.5, 0.5),
    rank: int = 1,
    mean: float = 0.0,
    noise: float = 0.0,
    ridge: float = 1e-4,
    convention: str = "mixture",
    rate: float | None = None,
    gradient: str = "exact",
    seed: int = 0,
    hybrid: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, 3) arrays of train, test and sign errors, theory with the overlaps of each draw.

    Training errors of single-index problems are ratio estimates: divided by the sample's mean y²
    and multiplied by its expectation, which removes most of one training set's fluctuation.
    """
    width = max(1, round(ratio * n))
    theta = n ** (strength * (1 - weighting)) if rank else 0.0
    eta = n ** (strength * weighting) if rate is None else rate
    sigma, link = get_activation(activation), get_activation("relu")
    if convention == "isotropic":
        sigma = sigma.centred()
    measured, predicted = [], []
    for child in np.random.SeedSequence(seed).spawn(seeds):
        rng = np.random.default_rng(child)
        world = plain.draw_world(n, list(weights), rank, theta, mean, rng)
        geometry = geometry_from_arrays(
            world.weights, world.means, world.spikes, world.strengths,
            None if component else world.teacher,
        )  # fmt: skip
        isotropic = convention == "isotropic"
        variance = 1 / n if isotropic else 1 / geometry.mean_trace
        spread = width**-0.5 if isotropic else 1 / width
        effective = ridge if isotropic else ridge * width
        training = Training(
            sigma, width, n, n, eta, effective, variance, spread,
            gradient="exact" if gradient == "exact" else "labels-only",
        )  # fmt: skip
        values = (1.0, -1.0, 0.5)[: len(weights)]
        labels = (
            Labels(values=values, noise=noise)
            if component
            else Labels(links=(link,) * len(weights), noise=noise)
        )
        network = plain.Network(
            sigma, sigma.derivative, width, n, n, eta, effective, variance, 0.0, spread,
            gradient == "exact",
        )  # fmt: skip
        rules: Any = list(values) if component else [link] * len(weights)
        result = plain.simulate(world, network, rules, noise, rng, test_samples=4 * n)
        drawn = None
        if hybrid:
            assert geometry.basis is not None
            e = result.gradient_direction
            e = e - geometry.basis @ (geometry.basis.T @ e)
            basis = np.concatenate([geometry.basis, (e / np.linalg.norm(e))[:, None]], axis=1)
            drawn = drawn_types(result.first_layer, basis)
        solution = predict_mixture(geometry, labels, training, neurons=drawn)
        power = neurons_module._label_power(geometry, labels)
        ratio_estimate = 1.0 if component else power / result.train_power
        measured.append([result.train_error * ratio_estimate, result.test_error, result.wrong_sign])
        predicted.append(
            [solution.train_error, solution.test_error, solution.classification_error or np.nan]
        )
    return np.array(measured), np.array(predicted)


def assert_agreement(measured: np.ndarray, predicted: np.ndarray) -> None:
    """|mean difference| ≤ 4 standard errors + 2 %, for train and test error."""
    difference = measured - predicted
    error = difference.std(axis=0, ddof=1) / len(difference) ** 0.5
    for j in (0, 1):
        allowed = 4 * error[j] + 0.02 * measured[:, j].mean()
        assert abs(difference[:, j].mean()) <= allowed, ("train", "test")[j]


SMALL = [
    {"activation": "relu"},
    {"activation": "tanh", "weighting": 1.0, "strength": 1.0, "ratio": 0.5},
    {"activation": "sigmoid", "component": True, "mean": 3.0},
    {"activation": "erf", "weights": (0.3, 0.3, 0.4), "noise": 0.3, "rank": 2},
]


@pytest.mark.parametrize("changes", SMALL)
def test_agreement_small(changes: dict[str, Any]) -> None:
    assert_agreement(*simulated_and_predicted(8, 500, **changes))


def mixture_problem(
    n: int = 1000,
    activation: str = "relu",
    strength: float = 0.74,
    weighting: float = 0.5,
    ratio: float = 1.0,
    labels: dict[str, Any] | None = None,
    **data: Any,
) -> Problem:
    """m = n samples; directions without chance overlaps, so that one prediction fits all seeds."""
    return Problem(
        data={"model": "mixture", "dim": n, "directions": "orthogonal", **data},
        labels=labels or {"model": "single-index"},
        network={"activation": activation, "width": round(ratio * n)},
        training={"samples": n},
        scaling={"strength": strength, "weighting": weighting},
    )


COMPONENT = {"model": "component"}
GRID: list[dict[str, Any]] = [
    # every activation, size, step and kind of data of the paper, in few combinations
    {"activation": "relu", "weighting": 0.0, "strength": 1.0},
    {"activation": "relu", "weighting": 1.0, "strength": 1.0, "ratio": 0.3},
    {"activation": "relu", "weighting": 0.5, "strength": 0.33, "ratio": 3.0},
    {"activation": "relu", "labels": COMPONENT, "weights": (0.2, 0.8), "strength": 1.0},
    {"activation": "relu", "rank": 3, "labels": {"model": "single-index", "noise": 0.3}},
    {"activation": "tanh", "weighting": 0.5, "strength": 1.0, "ratio": 0.3},
    {"activation": "tanh", "weighting": 1.0, "strength": 1.0, "ratio": 3.0},
    {"activation": "tanh", "labels": COMPONENT, "mean": 3.0, "weighting": 1.0, "strength": 0.67},
    {"activation": "tanh", "weights": (0.3, 0.3, 0.4), "ratio": 0.5},
    {"activation": "sigmoid", "weighting": 0.0, "strength": 0.67, "ratio": 0.3},
    {"activation": "sigmoid", "weighting": 1.0, "strength": 1.0},
    {"activation": "sigmoid", "labels": COMPONENT, "weighting": 0.0, "strength": 1.0},
    {"activation": "erf", "weighting": 0.0, "strength": 0.0},
    {"activation": "erf", "weighting": 1.0, "strength": 0.67},
    {"activation": "erf", "mean": 3.0, "weights": (0.2, 0.8), "weighting": 1.0, "strength": 0.8},
    {"activation": "relu", "labels": COMPONENT, "mean": 3.0},
    {"activation": "relu", "weighting": 1.0, "strength": 0.67, "weights": (0.2, 0.8)},
    {"activation": "tanh", "weighting": 0.0, "strength": 1.0},
    {"activation": "tanh", "rank": 3, "labels": {"model": "single-index", "noise": 0.3}},
    {"activation": "sigmoid", "weighting": 0.5, "strength": 0.33, "weights": (0.3, 0.3, 0.4)},
    {"activation": "sigmoid", "labels": COMPONENT, "weights": (0.2, 0.8), "strength": 1.0},
    {"activation": "erf", "weighting": 0.5, "strength": 1.0, "ratio": 0.3},
    {"activation": "erf", "labels": COMPONENT, "weighting": 1.0, "strength": 1.0},
]


@pytest.mark.slow
@pytest.mark.parametrize("changes", GRID)
def test_agreement_grid(changes: dict[str, Any]) -> None:
    """n = m = 1000 within 4 standard errors + 2 %, test errors exact for each trained network."""
    problem = mixture_problem(**changes)
    measured, said = simulate(problem, seeds=6, rng=7), predict(problem, method="conditional")
    for value, estimate in (
        (said.test_error, measured.test_error),
        (said.train_error, measured.train_error),
    ):
        assert agrees(value, (estimate.mean, estimate.standard_error))


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
def test_agreement_isotropic_convention(gradient: str) -> None:
    measured, predicted = simulated_and_predicted(
        10, 500, activation="relu", convention="isotropic", weights=(1.0,), rank=0, ratio=1.5,
        rate=2.0 * 500**0.5, ridge=0.05, noise=0.3, gradient=gradient,
    )  # fmt: skip
    assert_agreement(measured, predicted)


def test_hybrid_agrees_with_the_network_it_was_read_from() -> None:
    measured, predicted = simulated_and_predicted(
        6, 400, activation="tanh", weighting=1.0, strength=1.0, hybrid=True
    )
    assert_agreement(measured, predicted)


@pytest.mark.parametrize(
    ("activation", "weighting"), [("relu", 0.5), ("tanh", 1.0)]
)  # one draw fluctuates by 0.8 %
def test_hybrid_equals_pure(activation: str, weighting: float) -> None:
    problem = mixture_problem(1000, activation, weighting=weighting)
    pure = predict(problem, method="conditional")
    drawn = [predict(problem, method="hybrid", rng=seed) for seed in (1, 2)]
    assert drawn[0].solution is not None and drawn[0].solution.types == 1000
    assert np.mean([d.test_error for d in drawn]) == pytest.approx(pure.test_error, rel=0.02)
    assert np.mean([d.train_error for d in drawn]) == pytest.approx(pure.train_error, rel=0.02)


def test_hybrid_with_the_initial_output() -> None:
    """Eight draws, each of which fluctuates by 4 % here, around the pure theory."""
    problem = Problem(
        data={"model": "isotropic", "dim": 500},
        network={"activation": "relu", "width": 500, "convention": "isotropic"},
        training={"samples": 500, "ridge": 0.05},
        scaling={"exponent": 0.45},
    )
    pure = predict(problem, method="conditional")
    drawn = [predict(problem, method="hybrid", rng=seed) for seed in range(8)]
    assert drawn[0].solution is not None and drawn[0].solution.neurons.tilt is not None
    for name in ("test_error", "train_error"):
        gaps = np.array([getattr(d, name) / getattr(pure, name) - 1 for d in drawn])
        assert abs(gaps.mean()) <= 4 * gaps.std(ddof=1) / 8**0.5
    with pytest.raises(AssumptionError, match="takes its overlaps"):
        predict(problem, method="hybrid", overlaps="typical")


def test_sign_error_agrees() -> None:
    measured, predicted = simulated_and_predicted(
        8, 500, activation="sigmoid", component=True, mean=3.0, seed=3
    )
    gap = measured[:, 2] - predicted[:, 2]
    error = gap.std(ddof=1) / len(gap) ** 0.5
    assert abs(gap.mean()) <= 4 * error + 0.02 * measured[:, 2].mean()


@pytest.mark.slow
def test_difference_shrinks_like_one_over_n() -> None:
    """Relative difference of the test error ≈ c/n: the slope of a weighted log–log fit is −1."""
    sizes, gaps, errors, corrected = np.array([50, 100, 200]), [], [], []
    for n, seeds in zip(sizes, (1500, 1000, 600), strict=True):
        problem = mixture_problem(int(n))
        measured = simulate(problem, seeds=seeds, rng=11, risk="exact").test_error
        said = predict(problem, method="conditional", accuracy=0.002)
        finite = predict(problem, method="conditional", accuracy=0.002, finite_size=True)
        gaps.append(1 - said.test_error / measured.mean)
        errors.append(measured.standard_error / measured.mean / gaps[-1])
        corrected.append(1 - finite.test_error / measured.mean)
    design = np.column_stack([np.ones(3), np.log(sizes)]) / np.array(errors)[:, None]
    covariance = np.linalg.inv(design.T @ design)
    slope = float(covariance[1] @ design.T @ (np.log(gaps) / errors))
    error = float(np.sqrt(covariance[1, 1]))
    assert error < 0.2
    assert abs(slope + 1) <= 4 * error
    assert np.all(np.abs(corrected) < 0.6 * np.array(gaps))


# --- the finite-size correction -----------------------------------------------------------

# simulate(mixture_problem(100, …), seeds=4000, risk="exact"): test and train error ± s.e.
SMALL_REFERENCE = {
    "relu": ((0.16631, 0.00043), (0.00629, 0.00004)),
    "tanh": ((0.23346, 0.00054), (0.01182, 0.00006)),
    "sigmoid": ((0.07319, 0.00012), (0.01704, 0.00006)),
}


@pytest.mark.parametrize("activation", list(SMALL_REFERENCE))
def test_finite_size_correction_as_documented(activation: str) -> None:
    """It takes away most of the gap of the test error; it lowers the training error too far."""
    (test, _), (train, train_error) = SMALL_REFERENCE[activation]
    problem = mixture_problem(100, activation)
    without = predict(problem, method="conditional")
    corrected = predict(problem, method="conditional", finite_size=True)
    assert abs(corrected.test_error - test) < 0.5 * abs(without.test_error - test)
    assert corrected.train_error < train - 4 * train_error
    large = mixture_problem(100_000, activation)
    assert predict(large, method="conditional", finite_size=True).test_error == pytest.approx(
        predict(large, method="conditional").test_error, rel=1e-4
    )


# --- what must not agree ------------------------------------------------------------------


# simulate(mixture_problem(1000, …, 1.0, 1.0, 0.3), seeds=60, risk="exact"): a maximal step
MAXIMAL = {
    "relu": ((0.10618, 0.00112), (0.20121, 0.00088)),
    "tanh": ((0.18421, 0.00170), (0.32820, 0.00093)),
}


def agrees_at_maximal_step(activation: str) -> bool:
    train, test = MAXIMAL[activation]
    said = predict(mixture_problem(1000, activation, 1.0, 1.0, 0.3), method="conditional")
    return agrees(said.train_error, train) and agrees(said.test_error, test)


@pytest.mark.parametrize("activation", list(MAXIMAL))
def test_negative_control_diagonal_covariance(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The covariance of a neuron's coordinates is not diagonal at a maximal step."""
    assert agrees_at_maximal_step(activation)
    root = neurons_module._spread_root

    def diagonal(squares: np.ndarray) -> np.ndarray:
        return root(squares * np.eye(squares.shape[-1]))

    monkeypatch.setattr(neurons_module, "_spread_root", diagonal)
    assert not agrees_at_maximal_step(activation)


@pytest.mark.parametrize("activation", list(MAXIMAL))
def test_negative_control_independent_direction(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """e is not independent of the sample that the step was made on."""
    monkeypatch.setattr(neurons_module, "_memory", lambda *_: 0.0)
    assert not agrees_at_maximal_step(activation)


@pytest.mark.parametrize("wrong", ["ridge", "half", "spike"])
def test_negative_controls_fail_the_reference(wrong: str) -> None:
    changes, train, test = REFERENCE[0]
    geometry, labels, training = setting(**changes)
    if wrong == "ridge":  # λ_eff = ridge instead of ridge·k
        training = replace(training, ridge=training.ridge / training.width)
    if wrong == "spike":
        geometry = typical_geometry(1000, [0.5, 0.5], [[], []])
    solution = predict_mixture(geometry, labels, training)
    scale = 0.5 if wrong == "half" else 1.0
    right = agrees(scale * solution.train_error, train) and agrees(
        scale * solution.test_error, test
    )
    assert not right


# --- limits -------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["tanh", "relu", "erf"])
@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
@pytest.mark.parametrize("rate", [0.0, 1.0, 4.78])
def test_isotropic_closed_forms_are_contained(activation: str, gradient: str, rate: float) -> None:
    n, k, m = 2000, 1700, 2500
    link = hermite_activation(0, 1.0, 0.5, 0.2)
    sigma = get_activation(activation)
    geometry = typical_geometry(n, [1.0], [[]])
    training = Training(
        sigma.centred(), k, m, m, rate, 0.05, 1 / n, k**-0.5,
        gradient="exact" if gradient == "exact" else "labels-only",
    )  # fmt: skip
    ours = predict_mixture(geometry, Labels(links=(link,), noise=0.3), training)
    closed = predict_isotropic(
        sigma, link, dim=n, width=k, samples=m, ridge=0.05, noise_variance=0.09,
        rate=max(rate, 1e-9), exponent=None if rate > 1 else -0.5, gradient=gradient,
    )  # fmt: skip
    tolerance = 0.002 if rate <= 1 else 0.01  # the closed form expands in powers of the step
    assert ours.train_error == pytest.approx(closed.train_error, rel=tolerance)
    assert ours.test_error == pytest.approx(closed.test_error, rel=tolerance)


# train error, mean over 200 seeds (80 for dim 1000) of simulate with gradient = "labels-only",
# corrected by linear regression for the chance fluctuation of mean y² in both samples
ISOTROPIC = [
    (500, "relu", 0.35, (0.43644, 0.00262)),
    (500, "relu", 0.29, (0.44882, 0.00265)),
    (500, "tanh", 0.35, (0.48449, 0.00266)),
    (1000, "relu", 0.35, (0.44150, 0.00287)),
]


def isotropic_problem(dim: int, activation: str, exponent: float) -> Problem:
    return Problem(
        data={"model": "isotropic", "dim": dim},
        labels={"link": "hermite(0, 1, 0.5, 0.2)", "noise": 0.3},
        network={
            "activation": activation, "width": round(0.85 * dim), "convention": "isotropic",
        },
        training={"samples": round(1.25 * dim), "ridge": 0.05, "gradient": "labels-only"},
        scaling={"exponent": exponent},
    )  # fmt: skip


@pytest.mark.parametrize(("dim", "activation", "exponent", "train"), ISOTROPIC)
def test_larger_steps_on_isotropic_data(
    dim: int,
    activation: str,
    exponent: float,
    train: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The two theories agree in the test error; in the training error this one is right.

    The closed form keeps the slopes of the features as they are before the step. With slopes that
    do not vary with κ most of the difference is gone.
    """
    problem = isotropic_problem(dim, activation, exponent)
    ours = predict(problem, method="conditional", accuracy=0.003)
    closed = predict(problem, method="isotropic")
    assert closed.test_error == pytest.approx(ours.test_error, rel=0.02)
    mean, standard_error = train
    assert abs(ours.train_error - mean) <= 4 * standard_error
    assert abs(closed.train_error - mean) > 4 * standard_error
    apart = closed.train_error / ours.train_error - 1
    original = resolution_module.features_at

    def rigid(*args: Any) -> Any:
        features = original(*args)
        slope = np.repeat((features.slope @ features.weights)[:, None], len(features.weights), 1)
        return replace(features, slope=slope)

    monkeypatch.setattr(resolution_module, "features_at", rigid)
    frozen = predict(problem, method="conditional", accuracy=0.003)
    assert abs(closed.train_error / frozen.train_error - 1) < 0.5 * abs(apart)


def test_a_vanishing_step_is_continuous() -> None:
    geometry, labels, training = setting()
    none = predict_mixture(geometry, labels, replace(training, rate=0.0))
    tiny = predict_mixture(geometry, labels, replace(training, rate=1e-6))
    assert tiny.test_error == pytest.approx(none.test_error, rel=1e-4)


def test_splitting_a_component_changes_nothing() -> None:
    geometry, labels, training = setting()
    split = Geometry(
        geometry.dim,
        np.array([0.5, 0.2, 0.3]),
        geometry.means[[0, 1, 1]],
        geometry.covariances[[0, 1, 1]],
        geometry.teacher,
    )
    assert labels.links is not None
    three = Labels(links=labels.links[:1] * 3)
    one, two = predict_mixture(geometry, labels, training), predict_mixture(split, three, training)
    assert two.test_error == pytest.approx(one.test_error, rel=1e-6)


def test_typical_overlaps_match_drawn_ones() -> None:
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(40):
        world = plain.draw_world(1000, [0.5, 0.5], 1, 12.9, 0.0, rng)
        geometry = geometry_from_arrays(
            world.weights, world.means, world.spikes, world.strengths, world.teacher
        )
        _, labels, training = setting()
        errors.append(predict_mixture(geometry, labels, training).test_error)
    typical = predict_mixture(*setting()).test_error
    error = np.std(errors, ddof=1) / len(errors) ** 0.5
    assert abs(np.mean(errors) - typical) <= 4 * error + 0.005 * typical


# --- extremes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"ridge": 1e-7},
        {"ridge": 1e-7, "activation": "tanh"},
        {"ridge": 1e-9, "ratio": 2.0},
        {"ridge": 10.0},
        {"ratio": 0.01},
        {"ratio": 100.0},
        {"strength": 0.0, "weighting": 0.0},
        {"rate": 0.0},
        {"weights": (1.0,)},
        {"weights": (0.0, 1.0)},
        {"activation": "erf", "link": "tanh"},
        {"activation": "identity"},
        {"rank": 0},
        {"n": 100_000},
    ],
)
def test_extremes_are_finite_and_ordered(changes: dict[str, Any]) -> None:
    solution = predict_mixture(*setting(**changes))
    assert solution.status == "ok"
    assert 0 < solution.train_error < solution.train_objective
    assert solution.train_error < solution.test_error
    assert np.isfinite(solution.test_error)


def test_large_ridge_predicts_nothing() -> None:
    geometry, labels, training = setting()
    solution = predict_mixture(geometry, labels, replace(training, ridge=1e9))
    power = neurons_module._label_power(geometry, labels)
    assert solution.test_error == pytest.approx(power, rel=1e-3)
    assert solution.train_error == pytest.approx(power, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_labels(value: float) -> None:
    """A constant is learned by an uncentred activation; zero labels give zero error."""
    geometry, _, training = setting(component=True)
    solution = predict_mixture(geometry, Labels(values=(value, value)), training)
    assert 0 <= solution.test_error <= 0.01 * value


def test_interpolation_is_refused_with_a_reason() -> None:
    """k = m and almost no ridge: one training set says nothing about the next."""
    problem = setting(ridge=1e-9)
    with pytest.raises(AssumptionError, match=r"leave 4\.\d degrees of freedom"):
        predict_mixture(*problem)
    solution = predict_mixture(*problem, on_failure="status")
    assert solution.status == "near-interpolation" and solution.test_error > 1
    for other in (setting(ridge=1e-9, ratio=0.3), setting(ridge=1e-9, ratio=3)):
        assert predict_mixture(*other).degrees_left > 400


def test_many_directions_use_quasi_monte_carlo() -> None:
    geometry = typical_geometry(1000, [0.5, 0.5], [[25.0 + i for i in range(10)]] * 2)
    labels = Labels(links=(get_activation("relu"),) * 2)
    training = Training(
        get_activation("relu"), 500, 1000, 1000, 5.0, 0.05, 1 / geometry.mean_trace, 2e-3
    )
    solution = predict_mixture(geometry, labels, training, accuracy=0.02)
    assert solution.error_estimate < 0.02


def test_refusals_say_what_to_do() -> None:
    geometry, labels, training = setting()
    with pytest.raises(AssumptionError, match="positive ridge"):
        replace(training, ridge=0.0)
    with pytest.raises(AssumptionError, match="more dimensions"):
        typical_geometry(5, [0.5, 0.5], [[1.0] * 3] * 2, directions="orthogonal")
    with pytest.raises(ConvergenceError, match="between"):
        predict_mixture(geometry, labels, training, accuracy=0.0)
    with pytest.raises(AssumptionError, match="Did you mean"):
        learned_function(labels, training, predict_mixture(geometry, labels, training), "techer")


# --- what else a solution tells -----------------------------------------------------------


@pytest.fixture(scope="module")
def solved() -> tuple[Setting, Solution]:
    problem = setting(weighting=0.0, noise=0.1)
    return problem, predict_mixture(*problem)


def test_components_add_up(solved: tuple[Setting, Solution]) -> None:
    (geometry, _, _), solution = solved
    assert geometry.weights @ solution.component_test == pytest.approx(solution.test_error)
    assert geometry.weights @ solution.component_train == pytest.approx(solution.train_error)


def test_errors_at_own_nodes_are_the_solved_ones(solved: tuple[Setting, Solution]) -> None:
    problem, solution = solved
    where = Nodes(solution.where.kappa.copy(), solution.where.component, solution.where.weights)
    prediction, variance = errors_at(*problem[1:], solution, where)
    assert np.allclose(prediction, solution.by_node.prediction)
    assert np.allclose(variance, solution.by_node.variance, rtol=1e-5)


def test_learned_function_has_the_mean_of_the_prediction(solved: tuple[Setting, Solution]) -> None:
    problem, solution = solved
    for name in ("teacher", "spike 1.1", "spike 2.1"):
        learned = learned_function(*problem[1:], solution, name, component=1)
        mine = solution.where.component == 1
        w = solution.where.weights[mine] / solution.where.weights[mine].sum()
        mean = w @ solution.by_node.prediction[mine]
        assert learned.learned_coefficients[0] == pytest.approx(mean, rel=1e-2)
        assert learned.learned.shape == learned.t.shape == learned.position.shape


def test_learned_degrees_agree_with_the_network() -> None:
    """Hermite coefficients of E[f | ξᵀx] against a regression of f on H_0, H_1, H_2."""
    measured, expected = [], []
    for child in np.random.SeedSequence(9).spawn(6):
        rng = np.random.default_rng(child)
        world = plain.draw_world(500, [0.5, 0.5], 1, 10.0, 0.0, rng)
        geometry = geometry_from_arrays(
            world.weights, world.means, world.spikes, world.strengths, world.teacher
        )
        link = sigma = get_activation("relu")
        labels = Labels(links=(link, link))
        training = Training(sigma, 500, 500, 500, 200.0, 0.05, 1 / geometry.mean_trace, 1 / 500)
        network = plain.Network(
            sigma, sigma.derivative, 500, 500, 500, 200.0, 0.05, 1 / geometry.mean_trace, 0.0,
            1 / 500,
        )  # fmt: skip
        result = plain.simulate(world, network, [link, link], 0.0, rng, test_samples=8000)
        mine = result.test_component == 0
        t = result.test_projection[mine]
        t = (t - t.mean()) / t.std()
        table = np.stack([np.ones_like(t), t, t**2 - 1], axis=1)
        measured.append(np.linalg.lstsq(table, result.test_prediction[mine], rcond=None)[0])
        solution = predict_mixture(geometry, labels, training)
        learned = learned_function(labels, training, solution, degree=2)
        expected.append(learned.learned_coefficients)
    gap = np.array(measured) - np.array(expected)
    error = gap.std(axis=0, ddof=1) / len(gap) ** 0.5
    allowed = 4 * error + 0.02 * np.abs(np.array(measured).mean(axis=0))
    assert np.all(np.abs(gap.mean(axis=0)) <= allowed)


# --- tables of smoothed activations -----------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "gelu", "hermite(0, 1, 0.5, 0.2)"])
@pytest.mark.parametrize("scales", [(0.6, 0.75), (0.9, 30.0)])
def test_tables_equal_the_integrals(name: str, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    sigma = get_activation(name).centred()
    scale = np.exp(rng.uniform(*np.log(scales), size=(60, 1)))
    shift = 2.0 * scale * rng.standard_normal((60, 120))
    table = smoothed(sigma, shift, scale)
    rows, columns = rng.integers(60, size=200), rng.integers(120, size=200)
    exact = sigma.smoothed(shift[rows, columns], scale[rows, 0])
    for mine, right in zip(table, exact, strict=True):
        size = 1 + np.abs(right).max()
        assert np.abs(mine[rows, columns] - right).max() < 5e-7 * size
    slope = slope_moments(sigma, shift, scale)
    assert np.abs(slope.value[rows, columns] - exact.slope).max() < 5e-7 * (
        1 + np.abs(exact.slope).max()
    )


# --- node rules ---------------------------------------------------------------------------


def test_half_range_rule_is_exact_on_each_side() -> None:
    x, w = piecewise_gauss((0.3,), 4)
    z = np.linspace(-12, 12, 400_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    for power in range(8):
        exact = (np.maximum(z - 0.3, 0) ** power * density)[z > 0.3].sum()
        mine = w[x > 0.3] @ (x[x > 0.3] - 0.3) ** power
        assert mine == pytest.approx(exact, rel=2e-4 if power == 0 else 1e-6)


def test_two_level_design_has_gaussian_moments_up_to_three() -> None:
    x, w = two_level(6)
    assert np.allclose(w @ x, 0) and np.allclose((x.T * w) @ x, np.eye(6))
    assert np.allclose(np.einsum("s,si,sj,sk->ijk", w, x, x, x), 0)
    assert len(w) == 16


def test_quasi_gaussian_has_exact_second_moments() -> None:
    x, w = quasi_gaussian(20, 256)
    assert np.allclose(w @ x, 0) and np.allclose((x.T * w) @ x, np.eye(20))


def test_component_nodes_have_the_right_mean_and_covariance() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((4, 4))
    root, mean = root + root.T, rng.standard_normal(4)
    covariance = root @ root
    x, w = component_nodes(
        mean, root, 0.1 * np.eye(4), Effort.level(1), rng.standard_normal(4), (0.0,)
    )
    assert w @ x == pytest.approx(mean)
    assert np.allclose(((x - mean).T * w) @ (x - mean), covariance)
