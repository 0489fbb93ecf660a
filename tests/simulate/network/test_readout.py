"""Ridge regression in its forms: primal, dual, spectrum, leave one out."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from onegrad.errors import ConvergenceError
from onegrad.simulate.network.readout import Decomposition, RidgeSolver, fit_dual


def fit(features, y, ridge):
    return RidgeSolver(features, y).fit(ridge, last=True)


@pytest.mark.parametrize(("m", "k"), [(40, 15), (15, 40), (20, 20)])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 10.0])
def test_readout_forms_agree_with_scikit_learn(m, k, ridge):
    rng = np.random.default_rng(0)
    features, y = rng.standard_normal((m, k)), rng.standard_normal(m)
    ours = fit(features, y, ridge)
    theirs = Ridge(alpha=m * ridge, fit_intercept=False, solver="cholesky", tol=1e-14)
    coefficients = theirs.fit(features, y).coef_
    dual = fit_dual(features @ features.T, y, ridge)
    primal = np.linalg.solve(features.T @ features + m * ridge * np.eye(k), features.T @ y)
    size = np.abs(primal).max()
    for other in (coefficients, features.T @ dual.coefficients, primal):
        np.testing.assert_allclose(ours.coefficients, other, atol=1e-10 * max(1, size) * 10)
    error = np.mean((y - features @ primal) ** 2)
    assert ours.train_error == pytest.approx(error, rel=1e-7, abs=1e-13)
    assert ours.train_objective == pytest.approx(error + ridge * primal @ primal, rel=1e-9)
    solver = RidgeSolver(features, y)
    for number in range(4):  # Cholesky twice, then the eigendecomposition
        again = solver.fit(ridge)
        np.testing.assert_allclose(again.coefficients, primal, atol=1e-9 * max(1, size))
        assert again.train_objective == pytest.approx(ours.train_objective, rel=1e-8), number


def test_wrong_ridge_scaling_is_seen():
    """Negative control: who divides by m matters at the tolerance above."""
    rng = np.random.default_rng(0)
    features, y = rng.standard_normal((30, 10)), rng.standard_normal(30)
    right, wrong = fit(features, y, 0.1), fit(features, y, 0.1 / 30)
    assert np.abs(right.coefficients - wrong.coefficients).max() > 1e-3


def test_leave_one_out_is_exact():
    rng = np.random.default_rng(1)
    features, y = rng.standard_normal((12, 5)), rng.standard_normal(12)
    error = Decomposition(features, y).leave_one_out(0.3)
    squares = []
    for i in range(12):
        rest = np.arange(12) != i
        gram = features[rest].T @ features[rest] + 12 * 0.3 * np.eye(5)
        a = np.linalg.solve(gram, features[rest].T @ y[rest])
        squares.append((y[i] - features[i] @ a) ** 2)
    assert error == pytest.approx(np.mean(squares), rel=1e-10)


def test_overflowing_features_are_refused():
    with pytest.raises(ConvergenceError, match="degree"):
        fit(np.full((3, 2), np.inf), np.ones(3), 0.1)
