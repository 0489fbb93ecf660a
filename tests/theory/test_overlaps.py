"""Chance overlaps: their law against draws, the mean over it against networks, old defects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.predict.predict import predict, predict_curve
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.theory.chance import Chance, chance_of
from onegrad.theory.conditional import predict_mixtures
from onegrad.theory.directions.arrangement import Arrangement
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.draws import over_draws, points
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution, Task

from .settings import mixture

DRAFT = Theory(accuracy=0.03)
H2 = {"model": "single-index", "link": "hermite(0,0,1)"}
ALONG = {"model": "single-index", "direction": "spikes"}

# What typical_geometry had wrong: ξ·μ of one sign; no ξ·μ at all; γ₁·γ₂ of one sign.
DEFECTS: dict[str, dict[str, Any]] = {
    "one mean": {"weights": (1.0,), "mean": 2.0, "rank": 0},
    "several means": {"mean": 5.0, "labels": H2},
    "along spikes": {"labels": ALONG},
}


def defect(name: str) -> Problem:
    return mixture(200, rate=1.0, **DEFECTS[name])


def wrong_point(chance: Chance, name: str) -> Task:
    """The point that stood for all of the law."""
    setting = chance.arrangement
    assert setting is not None
    g = setting.typical.copy()
    if name == "several means":
        g[-setting.corners :] = 0.0
    elif name == "along spikes":
        g[0] = np.sqrt(2 / np.pi)
    return Task(chance.problem, setting.geometry(g))


def coarse(tasks: list[Task]) -> np.ndarray:
    """(tasks, 2) test and training errors of drafts."""
    found = predict_mixtures(tasks, DRAFT)
    assert all(isinstance(one, Solution) for one in found)
    return np.array([(one.test_error, one.train_error) for one in found])  # type: ignore[union-attr]


def mean_over_draws(chance: Chance) -> tuple[np.ndarray, float]:
    """Test and training error, median and spread, and how well the mean is known."""
    (solution,) = predict_mixtures([chance.typical], DRAFT)
    assert isinstance(solution, Solution)
    ((found, draws),) = over_draws([chance], [solution], Theory())
    assert isinstance(found, Solution) and draws is not None
    numbers = np.array([found.test_error, found.train_error, draws.median, draws.spread])
    return numbers, draws.error


@pytest.mark.parametrize("name", DEFECTS)
def test_the_mean_over_the_law_is_that_over_draws(name: str) -> None:
    """With the overlaps of 150 draws; the point that once stood for the law fails."""
    problem = defect(name)
    chance = chance_of(problem, "auto", 0)
    drawn = coarse([Task.of(problem, "drawn", seed) for seed in range(150)])
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / 150**0.5
    (*found, median, spread), known = mean_over_draws(chance)
    allowed = 4 * error + max(0.005, known) * mean
    assert np.all(np.abs(found - mean) <= allowed)
    assert spread == pytest.approx(drawn[:, 0].std(ddof=1), rel=0.35)
    assert abs(median - np.median(drawn[:, 0])) <= 6 * error[0]
    (wrong,) = coarse([wrong_point(chance, name)])
    assert np.all(np.abs(wrong - mean) > allowed)


@pytest.mark.parametrize("name", DEFECTS)
def test_networks_have_the_mean_over_the_law(name: str) -> None:
    """4 standard errors + 4.4/n (notes/2026-11-theory.md, section 7); the old point fails where its
    defect is larger than that."""
    problem = defect(name)
    rows = simulate(problem, seeds=150).results.rows
    measured = np.array([row.test_error for row in rows])
    found = predict(problem, "conditional")
    error = measured.std(ddof=1) / len(measured) ** 0.5
    allowed = 4 * error + 4.4 / problem.dim * measured.mean()
    assert abs(found.test_error - measured.mean()) <= allowed
    assert found.error_estimate < 0.02 and found.median_test_error is not None
    ((wrong, _),) = coarse([wrong_point(chance_of(problem, "auto", 0), name)])
    off = abs(wrong - measured.mean()) > allowed
    assert off or name == "along spikes"


def test_what_is_averaged_over_is_said() -> None:
    found = predict(defect("one mean"), "conditional")
    assert found.spread_over_draws is not None and found.median_test_error is not None
    assert 0.05 < found.spread_over_draws / found.test_error < 0.25
    assert "chance overlap" in found.assumptions[-1]
    record = found.as_json()
    assert record["spread_over_draws"] == found.spread_over_draws
    plain = predict(mixture(200, directions="orthogonal"), "conditional")
    assert plain.spread_over_draws is None and "spread_over_draws" not in plain.as_json()
    assert not any("chance overlap" in sentence for sentence in plain.assumptions)


def test_equal_components_have_equal_errors() -> None:
    """The typical point has ξ·μ > 0 in one of them; the mean over draws does not."""
    found = predict(mixture(200, mean=3.0), "conditional")
    assert found.component_test is not None and found.solution is not None
    assert found.component_test[0] == pytest.approx(found.component_test[1], rel=1e-9)
    assert found.component_test[0] == pytest.approx(found.test_error, rel=1e-9)


def test_few_points_are_enough_where_chance_hardly_counts() -> None:
    def drawn(problem: Problem) -> int:
        chance = chance_of(problem, "auto", 0)
        ((_, draws),) = over_draws([chance], predict_mixtures([chance.typical]), Theory())
        assert draws is not None
        return draws.points

    assert drawn(mixture(100_000)) == 8
    assert drawn(mixture(200, weighting=0.0)) > 8  # negative control


def test_points_are_independent_standard_gaussians() -> None:
    few, many = points(5, 16), points(5, 1024)
    assert np.array_equal(few, many[:16])  # more of them begin with the same ones
    assert many.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)  # with mirror images
    assert many.T @ many / 1024 == pytest.approx(np.eye(5), abs=0.05)
    squares = (many**2).reshape(-1, 4, 5).mean(axis=(0, 2))  # of each randomisation
    assert squares == pytest.approx(np.ones(4), rel=0.05)


def test_the_stated_error_of_a_mean_covers_the_mean() -> None:
    """Against ten times as many points, for problems of random directions."""
    for name in DEFECTS:
        chance = chance_of(defect(name), "auto", 0)
        (*found, _, _), known = mean_over_draws(chance)
        (typical,) = coarse([chance.typical])
        rng = np.random.default_rng(1)
        tasks = [chance.task(z) for z in rng.standard_normal((300, len(chance.variables)))]
        drawn = coarse(tasks)
        error = drawn.std(axis=0) / 300**0.5
        assert np.all(np.abs(found - drawn.mean(axis=0)) <= known * typical + 4 * error)


def test_a_curve_is_its_points() -> None:
    problems = [defect("one mean"), mixture(200), mixture(200, ridge=1e-3), mixture(200, mean=3.0)]
    for together, problem in zip(predict_curve(problems, "conditional"), problems, strict=True):
        alone = predict(problem, "conditional")
        assert alone.test_error == pytest.approx(together.test_error, rel=1e-6)
        assert alone.error_estimate == pytest.approx(together.error_estimate, abs=1e-5)


@pytest.mark.parametrize("alignment", [0.0, 0.6])
def test_overlaps_have_the_law_of_drawn_ones(alignment: float) -> None:
    """ξᵀΣ_cξ, ξ·μ, μᵀΣ_cμ and ‖Σ̄‖ of random g against those of drawn directions."""
    problem = mixture(60, rank=2, mean=3.0, alignment=alignment, weighting=0.0)
    chance = chance_of(problem, "auto", 0)
    setting, rng = chance.arrangement, np.random.default_rng(1)
    assert isinstance(setting, Arrangement)
    size = len(setting.typical)
    made = [setting.geometry(rng.standard_normal(size)) for _ in range(400)]
    drawn = [geometry_of(problem, "drawn", seed) for seed in range(400)]

    def numbers(geometry: Any) -> list[float]:
        xi, mu = geometry.teacher, geometry.means[0]
        return [
            *(float(xi @ c @ xi) for c in geometry.covariances), float(xi @ mu) ** 2,
            float(mu @ geometry.covariances[0] @ mu), 1 / float(xi @ xi),
            float(geometry.directions["spike 1.1"] @ geometry.directions["spike 2.1"]),
        ]  # fmt: skip

    one, two = (np.array([numbers(g) for g in found]) for found in (made, drawn))
    error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 400)
    assert np.all(np.abs(one.mean(axis=0) - two.mean(axis=0)) <= 4 * error)
    ratio = one.std(axis=0) / two.std(axis=0)
    assert np.all(np.abs(ratio - 1) < 0.35)


def test_means_of_several_components_overlap_by_chance() -> None:
    """They span fewer directions than there are components, and none of them cancels."""
    geometry = replace(Arrangement(400, (0.5, 0.5), ((5.0,), (5.0,)), mean=2.0)).geometry()
    along = geometry.means @ geometry.directions["teacher"] / 2.0
    assert np.abs(along) == pytest.approx([1 / 20] * 2, rel=0.05)
    assert geometry.means[0] == pytest.approx(-geometry.means[1])


@pytest.mark.parametrize(
    "data",
    [
        {"rank": 3, "strengths": [0.52, 1.3, 1.92], "alignment": -0.7},
        {"rank": 3, "strengths": [1.9, 0.4, 0.3]},
    ],
)
def test_label_power_is_that_of_draws_where_spikes_are_unequal(data: dict[str, Any]) -> None:
    """E |ξ|² = E 1/‖Σ̄‖, given an overlap of zero between leading spikes that are aligned; the
    typical matrix of overlaps alone has another ‖Σ̄‖."""
    problem = mixture(220, strength=0.3, weighting=0.4, **data)
    typical = geometry_of(problem)
    drawn = [geometry_of(problem, "drawn", seed) for seed in range(300)]
    power = np.array([float(one.teacher @ one.teacher) for one in drawn])
    allowed = 4 * power.std(ddof=1) / 300**0.5 + 0.001 * power.mean()
    assert abs(typical.teacher @ typical.teacher - power.mean()) <= allowed
    largest = float(np.linalg.eigvalsh(typical.mean_covariance)[-1])
    assert abs(1 / largest - power.mean()) > allowed
