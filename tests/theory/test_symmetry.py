"""Groups of directions that are alike: the reduced problem is the problem."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.data.population import Population
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.theory.directions.geometry import Geometry, drawn_geometry
from onegrad.theory.directions.symmetry import (
    angles,
    exact_radius,
    grouped,
    harmonic,
    multiplicity,
    radius,
)
from onegrad.theory.learned import learned_function
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task
from tests.theory.settings import typical_geometry

from .settings import (
    COMPONENT,
    assert_agreement,
    conditional,
    mixture,
    orthogonal,
    simulated_and_predicted,
)

HUGE = 100_000  # where what a group's directions cost in degrees of freedom is nothing


@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_harmonics_are_orthogonal_with_their_multiplicities(size: int) -> None:
    t, w = angles(size, 8)
    levels = np.stack([harmonic(size, degree, t) for degree in range(6)])
    assert [harmonic(size, degree, np.ones(1))[0] for degree in range(6)] == pytest.approx([1] * 6)
    assert w @ t**2 == pytest.approx(1 / size)
    expected = np.diag([1 / multiplicity(size, degree) for degree in range(6)])
    assert np.allclose((levels * w) @ levels.T, expected, atol=1e-12)


def test_multiplicities() -> None:
    assert [multiplicity(2, d) for d in range(4)] == [1, 2, 2, 2]
    assert [multiplicity(3, d) for d in range(4)] == [1, 3, 5, 7]
    assert multiplicity(7, 2) == 7 * 8 / 2 - 1


@pytest.mark.parametrize("size", [2, 5, 30])
def test_length_of_a_gaussian_vector(size: int) -> None:
    z, w = np.polynomial.hermite_e.hermegauss(40)
    w /= w.sum()
    length = radius(z, size)
    assert w @ length**2 == pytest.approx(size, rel=1e-4)
    assert w @ length**4 == pytest.approx(size * (size + 2), rel=1e-3)
    exact = exact_radius(z, size)
    assert w @ exact**2 == pytest.approx(size, rel=1e-6)
    assert w @ exact**4 == pytest.approx(size * (size + 2), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, (7, 7)),
        ({"teacher": None}, (8, 8)),
        ({"alignment": 0.5}, (6, 6)),
        ({"mean": 2.0}, (6, 6)),
        ({"chance": False}, (8, 8)),
        ({"strengths": ((40.0,) * 5 + (9.0,) * 3,) * 2}, (2, 2, 4, 4)),
        ({"strengths": ((40.0,) * 8, (1.0,))}, (6,)),
        ({"strengths": ((40.0, 30.0),) * 2}, ()),
    ],
)
def test_which_directions_are_alike(changes: dict[str, Any], groups: tuple[int, ...]) -> None:
    settings = {"strengths": ((40.0,) * 8,) * 2} | changes
    geometry = typical_geometry(1000, (0.4, 0.6), **settings)
    reduced = grouped(geometry)
    assert tuple(sorted(reduced.groups)) == groups
    assert reduced.special == geometry.special
    assert mean_trace(reduced) == pytest.approx(mean_trace(geometry), rel=1e-3)
    for c in range(2):  # the label's law is untouched
        before, after = (g.teacher @ g.covariances[c] @ g.teacher for g in (geometry, reduced))
        assert after == pytest.approx(before, abs=1e-12)


def mean_trace(geometry: Geometry) -> float:
    """tr Σ̄, with all directions of each group."""
    sizes = np.array([1] * geometry.single + list(geometry.groups))
    return geometry.dim + float(sizes @ (geometry.mean_covariance.diagonal() - 1))


def test_alignment_is_no_chance() -> None:
    rng, n, rank = np.random.default_rng(2), 800, 6
    first = np.linalg.qr(rng.standard_normal((n, 2 * rank)))[0]
    other = first[:, rank:].copy()
    other[:, 0] = 0.5 * first[:, 0] + math.sqrt(0.75) * first[:, rank]
    spikes, strengths = (first[:, :rank], other), (np.full(rank, 50.0),) * 2
    population = Population(np.full(2, 0.5), np.zeros((2, n)), spikes, strengths)
    reduced = grouped(drawn_geometry(population, rng.standard_normal(n)))
    assert reduced.groups == (4, 4)
    leading = [reduced.directions[f"spike {c}.1"] for c in (1, 2)]
    for c in range(2):
        assert leading[0] @ reduced.covariances[c] @ leading[1] == pytest.approx(25.5, rel=0.01)


def test_chance_overlaps_are_left_out_and_nothing_else() -> None:
    n, rank, rng = 800, 6, np.random.default_rng(0)
    spikes = tuple(np.linalg.qr(rng.standard_normal((n, rank)))[0] for _ in range(2))
    means = rng.standard_normal((2, n)) / math.sqrt(n)
    population = Population(np.full(2, 0.5), means, spikes, (np.full(rank, 50.0),) * 2)
    geometry = drawn_geometry(population, rng.standard_normal(n))
    reduced = grouped(geometry)
    assert reduced.groups == (3, 3)  # two means and a teacher see three of six spikes
    assert reduced.special == geometry.special
    assert mean_trace(reduced) == pytest.approx(mean_trace(geometry), rel=0.02)
    for c in range(2):
        for name in ("teacher", "means"):
            before, after = (
                v @ g.covariances[c] @ v
                for g in (geometry, reduced)
                for v in [g.teacher if name == "teacher" else g.means[c]]
            )
            assert after == pytest.approx(before, rel=1e-9)


def both(level: QuadratureLevel, **changes: Any) -> tuple[Solution, Solution]:
    """The problem direction by direction, and with groups: n so large that both must agree.

    strengths : of each component, in units of n; labels name the component if there are two
    """
    strengths = changes.get("strengths", ((0.15,) * 3,))
    count, separate = len(strengths), len(strengths) == 2
    problem = Problem(
        data={
            "model": "mixture", "dim": HUGE, "weights": (1 / count,) * count,
            "rank": 3, "spread": HUGE * sum(map(sum, strengths)) / (3 * count),
        },
        labels=COMPONENT if separate else {"model": "single-index"},
        network={"activation": changes.get("activation", "relu"), "width": HUGE},
        training={
            "samples": HUGE, "rate": HUGE * changes.get("rate", 0.0), "gradient": "labels-only",
        },
    )  # fmt: skip
    scaled = tuple(tuple(HUGE * s for s in own) for own in strengths)
    geometry = typical_geometry(
        HUGE, problem.data.weights, scaled, teacher=None if separate else "random"
    )
    reduced = grouped(geometry)
    assert reduced.groups
    one, two = (solve_tasks([Task(problem, g)], level)[0] for g in (geometry, reduced))
    assert isinstance(one, Solution) and isinstance(two, Solution)
    return one, two


CASES: list[dict[str, Any]] = [
    {},
    {"activation": "tanh"},
    {"activation": "tanh", "rate": 0.03},
    {"activation": "relu", "rate": 0.03},
    {"strengths": ((0.02,) * 3, ())},
]  # the last one depends on lengths above all


@pytest.mark.parametrize("changes", CASES)
def test_groups_agree_with_direction_by_direction(changes: dict[str, Any]) -> None:
    fine = replace(QuadratureLevel.at(1), tolerance=1e-2, most=3000, raised=3, label_nodes=5)
    if "strengths" in changes:  # which is learned to a higher degree
        fine = replace(fine, tolerance=1e-5, longest=40, points=4096)
    one, two = both(fine, **changes)
    assert two.nodes < one.nodes
    assert two.test_error == pytest.approx(one.test_error, rel=0.005)
    assert two.train_error == pytest.approx(one.train_error, rel=0.005)
    if one.misclassification is not None:
        assert two.misclassification == pytest.approx(one.misclassification, rel=0.005)


def test_learned_function_along_a_direction_of_a_group() -> None:
    fine = replace(QuadratureLevel.at(1), tolerance=1e-2, most=3000, raised=3, label_nodes=5)
    one, two = both(fine, rate=0.03)
    for name in ("teacher", "spike 1.2"):
        plain, reduced = (learned_function(s, name, degree=3) for s in (one, two))
        assert np.allclose(reduced.target, plain.target)
        size = np.abs(plain.learned_coefficients).max()
        gap = reduced.learned_coefficients - plain.learned_coefficients
        assert np.abs(gap).max() <= 0.01 * size


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_many_spikes_agree_with_a_plain_simulation(activation: str) -> None:
    """Spikes of six random directions in each component, the theory with their overlaps."""
    problem = mixture(300, activation, rank=6, weighting=0.0)
    assert_agreement(*simulated_and_predicted(16, problem, networks=4))


def assert_network_agrees(activation: str, n: int = 300) -> None:
    """Ten orthogonal spikes in each component; the finite-size term is that of section 7."""
    problem = orthogonal(n, activation, rank=10, weighting=0.0)
    solution = conditional(problem)
    assert solution.geometry.groups == (10, 10)
    rows = simulate(problem, seeds=24).results.rows
    for name in ("test_error", "train_error"):
        measured = np.array([getattr(row, name) for row in rows])
        error = measured.std(ddof=1) / math.sqrt(len(measured))
        allowed = 4 * error + 4.4 / n * measured.mean()
        assert abs(getattr(solution, name) - measured.mean()) <= allowed, name


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_many_spikes_agree_with_the_network(activation: str) -> None:
    assert_network_agrees(activation)


def test_fifty_directions() -> None:
    problem = Problem(
        data={"model": "mixture", "dim": 2000, "rank": 25, "spread": 90.0},
        network={"activation": "tanh", "width": 1500},
        training={"samples": 2000, "rate": 3.0},
    )
    solution = conditional(problem)
    assert solution.status == "ok" and solution.geometry.groups == (24, 24)
    assert solution.types * solution.nodes < 1_000_000


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_a_draft_is_within_three_percent(activation: str) -> None:
    problem = Problem(
        data={"model": "mixture", "dim": 1000, "rank": 16, "spread": 160.0},
        network={"activation": activation, "width": 1000},
        training={"samples": 1000, "rate": 1.0},
    )
    full, draft = conditional(problem), conditional(problem, accuracy=0.03)
    assert draft.status == "draft" and draft.geometry.groups == (15, 15)
    assert draft.test_error == pytest.approx(full.test_error, rel=0.03)
    assert draft.train_error == pytest.approx(full.train_error, rel=0.03)
