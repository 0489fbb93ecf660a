"""The free energy: its derivatives, its stationary point, and what is known of it exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from onegrad.compute.backend import Array
from onegrad.theory.layers.features import Harmonic, NodeFeatures
from onegrad.theory.readout.errors import errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.size.free_energy import FreeEnergy, Parameters, Resampling, Second
from onegrad.theory.size.ratio import errors_by_part

RIDGE, SAMPLES = 0.07, 40.0


def random_features(types: int = 4, nodes: int = 6, rank: int = 2) -> NodeFeatures:
    """Tables of no meaning, slopes of low rank, one harmonic."""
    rng = np.random.default_rng(5)
    weights, counts = rng.uniform(0.5, 1.5, nodes), rng.uniform(4.0, 12.0, types)
    slope = rng.normal(size=(types, rank)) @ rng.normal(size=(rank, nodes))
    harmonic = Harmonic(2.0, 7.0, np.outer(rng.normal(size=types), rng.normal(size=nodes)))
    return NodeFeatures(
        rng.normal(size=(types, nodes)), slope, rng.uniform(0.1, 0.5, (types, nodes)),
        rng.uniform(0.5, 1.0, types), counts, weights / weights.sum(), rng.normal(size=nodes),
        rng.uniform(0.1, 0.3, nodes), np.asarray(30.0), None, (harmonic,),
    )  # fmt: skip


def energy_of(features: NodeFeatures, **which: bool) -> FreeEnergy:
    return FreeEnergy(features, SAMPLES, Resampling(np.zeros(len(features.weights)), **which))


def one_gaussian_feature(samples: float) -> FreeEnergy:
    """k = 1 and φ ~ N(0, 1) for each sample: e = 1, nothing else."""
    none, one = np.zeros((1, 1)), np.ones(1)
    features = NodeFeatures(
        none, none, np.ones((1, 1)), one, one, one, np.zeros(1), one, np.asarray(10.0)
    )
    return FreeEnergy(features, samples, Resampling(np.zeros(1)))


def value_and_saddle(energy: FreeEnergy, ridge: float) -> tuple[float, float]:
    """F, and S* alone."""
    at = Parameters(ridge)
    point = solve_fixed_point(energy.features, energy.samples, ridge)
    x, y = energy.stationary(*energy.start(point), at)
    saddle = energy.sample_part(x, at).value - x @ y + energy.bulk_part(y, at).value
    return energy.value(x, y, at).real, saddle.real


def test_one_gaussian_feature() -> None:
    """E log(λ + ‖φ‖²/m) = log(1+λ) − 1/(m(1+λ)²) + O(1/m²); S* alone gives half of the term."""
    ridge, left = 0.3, []
    for samples in (50.0, 100.0, 200.0):
        whole, saddle = value_and_saddle(one_gaussian_feature(samples), ridge)
        term = -1 / (samples * (1 + ridge) ** 2)
        assert saddle - np.log(1 + ridge) == pytest.approx(0.5 * term, rel=0.02)
        left.append(abs(whole - np.log(1 + ridge) - term))
    assert left[0] < 1e-5
    assert left[2] < 0.3 * left[0]  # it falls faster than 1/m
    exact = digamma(25.0) - np.log(25.0)  # E log(‖φ‖²/m) at m = 50, λ = 0
    whole, _ = value_and_saddle(one_gaussian_feature(50.0), 1e-9)
    assert whole == pytest.approx(exact, rel=3e-3)


def differences(function: Any, at: Array, step: float = 1e-3) -> Array:
    """Central differences of fourth order along every coordinate, stacked first."""
    rows = []
    for unit in np.eye(len(at)) * step * np.abs(at):
        size = unit.sum()
        near, far = (function(at + j * unit) - function(at - j * unit) for j in (1, 2))
        rows.append((8 * near - far) / (12 * size))
    return np.array(rows)


def some_fields(energy: FreeEnergy) -> tuple[Array, Array]:
    """Fields away from the stationary point, so that nothing vanishes by chance."""
    rng = np.random.default_rng(1)
    x, y = energy.start(solve_fixed_point(energy.features, SAMPLES, RIDGE))
    return x * rng.uniform(0.8, 1.2, len(x)), y * rng.uniform(0.8, 1.2, len(y))


@pytest.mark.parametrize("at", [Parameters(RIDGE), Parameters(RIDGE, 0.2, 0.05)])
def test_gradients_and_hessians_are_those_of_the_values(at: Parameters) -> None:
    energy = energy_of(random_features())
    x, y = some_fields(energy)
    part, bulk, phi = energy.sample_part(x, at), energy.bulk_part(y, at), energy.directions
    slope = differences(lambda z: energy.sample_part(z, at).value.real, x)
    assert part.gradient == pytest.approx(slope, rel=1e-7)
    curvature = differences(lambda z: energy.sample_part(z, at).gradient, x)
    assert part.hessian_times(np.eye(len(x))) == pytest.approx(curvature, rel=1e-6, abs=1e-9)
    slope = differences(lambda z: energy.bulk_part(z, at).value.real, y)
    assert bulk.gradient == pytest.approx(slope, rel=1e-7)
    curvature = differences(lambda z: energy.bulk_part(z, at).gradient, y)
    assert phi @ bulk.inner @ phi.T == pytest.approx(curvature, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["weights", "counts"])
def test_derivatives_by_what_is_drawn(name: str) -> None:
    features, at = random_features(), Parameters(RIDGE, 0.2, 0.0)
    x, _ = some_fields(energy_of(features))

    def part(values: Array) -> Any:
        return energy_of(replace(features, **{name: values})).sample_part(x, at)

    values, found, every = getattr(features, name), part(getattr(features, name)), np.eye(len(x))
    mine = (
        slice(0, len(features.weights)) if name == "weights" else slice(len(features.weights), None)
    )
    mixed = differences(lambda v: part(v).gradient, values)
    whole = found.drawn_times(every, found.through(every))
    assert whole[mine] == pytest.approx(mixed, rel=1e-6, abs=1e-10)
    twice = differences(lambda v: differences(lambda u: part(u).value.real, v), values)
    scale, none = found.by_drawn[mine], np.zeros((len(values), 1))
    second = Second(found.matrix[mine, mine], scale, none, np.zeros((1, 1)))
    assert second.diagonal == pytest.approx(twice.diagonal(), rel=1e-4, abs=1e-6)
    for unit in np.eye(len(values)) + np.eye(len(values))[0]:
        assert second.form(unit).real == pytest.approx(unit @ twice @ unit, rel=1e-4, abs=1e-6)


def test_the_label_pushes_the_fields() -> None:
    """∂²A/∂x∂ε² against a difference."""
    energy = energy_of(random_features())
    x, _ = some_fields(energy)
    up, down = (energy.sample_part(x, Parameters(RIDGE, h, 0.1)).gradient for h in (1e-5, -1e-5))
    slope = (up - down) / 2e-5
    assert energy.sample_part(x, Parameters(RIDGE, 0.0, 0.1)).label == pytest.approx(
        slope, rel=1e-6
    )


def plain_free_energy(features: NodeFeatures, z: Array, ridge: float) -> float:
    """S with the fields Q, ŵ, Θ and R, as it is written in docs/book, eq. saddle."""
    _, _, u, v = features.blocks[0]
    s, r = len(features.weights), u.shape[1]
    q, w, rest = z[:s], z[s : 2 * s], z[2 * s :]
    theta, conjugate = (np.zeros((r, r)) for _ in range(2))
    upper = np.triu_indices(r)
    theta[upper], conjugate[upper] = np.split(rest, 2)
    theta, conjugate = (a + a.T - np.diag(a.diagonal()) for a in (theta, conjugate))
    p = ridge + features.extra @ w + np.einsum("ia,ab,ib->i", u, conjugate, u)
    fitted = features.weights / (1 + q / SAMPLES)
    mean = (features.mean.T * (features.counts / p)) @ features.mean
    size = float(features.bulk_dim)
    return float(
        SAMPLES * features.weights @ np.log(1 + q / SAMPLES) - w @ q
        + size * np.linalg.slogdet(np.eye(r) + (v.T * w) @ v @ theta)[1]
        - size * np.trace(conjugate @ theta) + features.counts @ np.log(p)
        + np.linalg.slogdet(np.eye(s) + fitted[:, None] * mean)[1]
    )  # fmt: skip


def test_theta_and_its_conjugate_are_eliminated_exactly() -> None:
    """S* and the determinant of the whole Hessian in (Q, ŵ, Θ, R), at two ridges: the
    determinants differ from ours by one factor."""
    features = replace(random_features(), harmonics=())
    energy, left = energy_of(features, samples=False, neurons=False), []
    for ridge in (RIDGE, 2 * RIDGE):
        at = Parameters(ridge)
        point = solve_fixed_point(features, SAMPLES, ridge)
        x, y = energy.stationary(*energy.start(point), at)
        s = energy.nodes
        _, _, u, v = features.blocks[0]
        theta = (u.T * (y[s:] / float(features.bulk_dim))) @ u
        inner = (v.T * y[:s]) @ v
        conjugate = inner @ np.linalg.inv(np.eye(len(theta)) + theta @ inner)
        upper = np.triu_indices(len(theta))
        z = np.concatenate([x[:s], y[:s], theta[upper], conjugate[upper]])

        def value(z: Array, ridge: float = ridge) -> Any:
            return np.asarray(plain_free_energy(features, z, ridge))

        gradient = differences(value, z)
        assert np.abs(gradient * z).max() < 1e-7  # it is stationary there too
        hessian = differences(lambda t, f=value: differences(f, t, 1e-2), z, 1e-2)
        whole = float(value(z)) + 0.5 * np.linalg.slogdet(hessian)[1]
        left.append(whole - energy.value(x, y, at).real)
    assert left[0] == pytest.approx(left[1], abs=1e-4)


def test_without_fluctuations_the_errors_are_those_of_the_fixed_point() -> None:
    """The larger everything is, the less differs; and with it the identities hold that give
    training and test error as derivatives of the objective."""
    features = replace(random_features(), harmonics=())
    gaps = []
    for scale in (100.0, 200.0):
        large = replace(
            features, counts=scale * features.counts, bulk_dim=scale * features.bulk_dim,
            mean=features.mean / np.sqrt(scale),
        )  # fmt: skip
        energy = FreeEnergy(large, scale * SAMPLES, Resampling(np.zeros(len(large.weights))))
        errors, added, fixed_point = errors_by_part(energy, RIDGE)
        found = errors + added
        leading = errors_of(solve_fixed_point(large, scale * SAMPLES, RIDGE))
        limit = np.array([leading.test_error, leading.train_error, leading.train_objective])
        assert fixed_point == pytest.approx(limit, rel=1e-9)
        gaps.append(np.abs(found / limit - 1))
    assert np.all(gaps[0] < 0.01)
    assert np.all(gaps[1] < 0.6 * gaps[0])  # of order 1/m


def test_the_steps_of_the_differences_are_small_enough() -> None:
    """Richardson: half the steps by λ and τ change nothing beyond 1e-5."""
    energy = energy_of(random_features())
    whole, half = (sum(errors_by_part(energy, RIDGE, step)[:2]) for step in (1e-3, 5e-4))
    assert half == pytest.approx(whole, rel=1e-5)


def test_fixed_counts_fluctuate_less() -> None:
    """A multinomial draw within each group: no variance between groups is left."""
    weights = np.array([0.2, 0.3, 0.5])
    for groups, indicator in (
        ([0, 0, 0], np.array([1.0, 1, 1])),
        ([0, 0, 1], np.array([1.0, 1, 0])),
    ):
        drawn = Resampling(np.array(groups))
        assert drawn.over_weights(weights, dense(np.ones((3, 3)))) == pytest.approx(0)
        assert drawn.over_weights(weights, dense(np.outer(indicator, indicator))) == pytest.approx(
            0
        )
    within = dense(np.diag([1.0, 0, 0]))
    assert Resampling(np.array([0, 0, 1])).over_weights(weights, within) == pytest.approx(0.12 / 1)


def dense(matrix: Array) -> Second:
    """Half of it as M, half as B K Bᵀ."""
    return Second(0.5 * matrix, np.ones(len(matrix)), np.eye(len(matrix)), 0.5 * matrix)
