"""What the samples of a large step make of the bulk, against one draw and against networks."""

import numpy as np
import pytest

from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.layers import row_noise
from onegrad.theory.layers.row_noise import RowLaw
from onegrad.theory.options import Theory
from onegrad.theory.task import Task

# simulate(large_step(…), seeds=400, control_variates=True): test and training error
ISOTROPIC = ((0.30611, 0.00072), (0.007852, 0.000054))
SPIKED = ((0.12101, 0.00035), (0.004229, 0.000031))


def large_step(data, width, rate, activation="relu"):
    """The step has half as many samples as there are dimensions: noise of rank 150."""
    return Problem(
        data={"dim": 300, **data},
        network={"width": width, "activation": activation, "convention": "mixture"},
        training={"samples": 300, "step_samples": 150, "rate": rate * width, "ridge": 1e-4},
    )


SETTINGS = {
    "isotropic": (large_step({"model": "isotropic"}, 600, 1.0), ISOTROPIC),
    "spiked": (
        large_step({"model": "mixture", "spread": 4.0, "directions": "orthogonal"}, 450, 2.0),
        SPIKED,
    ),
}


def gaps(problem, simulated):
    """Theory over network, relative: test and training error."""
    found = predict_mixture(Task.of(problem), Theory(accuracy=0.02))
    pairs = zip((found.test_error, found.train_error), simulated, strict=True)
    return [value / mean - 1 for value, (mean, _) in pairs], found


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_of_a_large_step_are_not_isotropic(name, monkeypatch):
    problem, simulated = SETTINGS[name]
    test, train = (4 * error / mean for mean, error in simulated)
    apart, found = gaps(problem, simulated)
    assert abs(apart[0]) <= test + 0.005 and abs(apart[1]) <= train + 0.01
    assert max(map(abs, apart)) <= found.error_estimate
    assert found.neurons.shares is not None
    # negative control: the identity in the place of both matrices
    monkeypatch.setattr(row_noise, "_COUNTS", np.inf)
    apart, found = gaps(problem, simulated)
    assert found.neurons.shares is None
    assert abs(apart[0]) > test + 0.005
    assert max(map(abs, apart)) <= found.error_estimate


def test_small_steps_and_even_slopes_keep_their_bulk():
    """Blocks cost axes: they are there where M explains the noise and it counts."""
    data = {"model": "isotropic"}
    for problem in (large_step(data, 600, 0.1), large_step(data, 600, 1.0, "tanh")):
        assert predict_mixture(Task.of(problem)).neurons.shares is None
    few = large_step(data, 40, 1.0)  # 40 neurons do not determine six directions
    assert predict_mixture(Task.of(few)).neurons.shares is None


def test_the_law_is_that_of_a_draw():
    n, samples = 500, 400
    rng = np.random.default_rng(3)
    z, w = np.polynomial.hermite_e.hermegauss(80)
    law = RowLaw.of(np.maximum(z, 0) - 0.1, w / w.sum(), n / samples)
    assert law is not None
    assert law.shares.sum() == pytest.approx(1) and law.shares @ law.noise == pytest.approx(1)
    drawn = []
    for _ in range(8):
        u = np.maximum(rng.standard_normal(samples), 0) - 0.1
        x = rng.standard_normal((samples, n))
        m, h = (x.T * u) @ x / samples, (x.T * (u**2 / np.mean(u**2))) @ x / samples
        e = x.T @ u / np.linalg.norm(x.T @ u)
        row = [np.trace(m), np.sum(m * m), np.sum(m * (m @ m)), np.sum(h * m)]
        drawn.append([*(np.array(row) / n), e @ m @ e])
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1) / np.sqrt(8)
    mu, p = law.linear, law.shares
    found = np.array([p @ mu, p @ mu**2, p @ mu**3, p @ (law.noise * mu), p @ (law.noise * mu)])
    assert np.all(np.abs(found - mean) <= 4 * error + 0.01 * np.abs(mean))
    # a direction and what M makes of it
    basis = law.basis(along=False)
    inside = basis.T @ (mu[:, None] * basis)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    assert inside[0, 0] == pytest.approx(p @ mu) and abs(inside[0, 2]) < 1e-10
