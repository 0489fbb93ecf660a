"""Errors at other numbers of rows against ridge regression whose risk is known exactly."""

import numpy as np
import pytest

from onegrad.tabular.learning.more_rows import level_path, mean_path, tuned_error

K, N = 100, 80
SPECTRUM = np.arange(1, K + 1) ** -1.2
TEACHER = np.random.default_rng(0).standard_normal(K) * np.arange(1, K + 1) ** -0.3
NOISE = 0.3
RIDGES = np.geomspace(1e-3, 10, 13)


def fit(rows, rng):
    """Eigenvalues, leave-one-out errors and exact risks of ridge regression, Gaussian features."""
    x = rng.standard_normal((rows, K)) * np.sqrt(SPECTRUM)
    y = x @ TEACHER + NOISE * rng.standard_normal(rows)
    x, y = x - x.mean(0), y - y.mean()
    left, sizes, right = np.linalg.svd(x / np.sqrt(rows), full_matrices=False)
    values, errors, risks = sizes**2, [], []
    for ridge in RIDGES:
        shrink = values / (values + ridge)
        fitted = left @ (shrink * (left.T @ y))
        h = (left**2 @ shrink) + 1 / rows
        errors.append((((y - fitted) / (1 - h)) ** 2).mean())
        readout = right.T @ (sizes / (values + ridge) * (left.T @ y) / np.sqrt(rows))
        risks.append(SPECTRUM @ (readout - TEACHER) ** 2 + NOISE**2)
    return values[: rows - 1], np.array(errors), np.array(risks)


@pytest.fixture(scope="module")
def paths():
    rng = np.random.default_rng(1)
    return [[level_path(RIDGES, errors, values, N)]
            for values, errors, _ in (fit(N, rng) for _ in range(40))]  # fmt: skip


@pytest.mark.parametrize("rows", [40, 320])
def test_more_rows_by_theory_and_simulation(paths, rows):
    """Mean over 40 draws of 80 rows against the best risk at another number of rows."""
    rng = np.random.default_rng(2)
    risks = [fit(rows, rng)[2] for _ in range(20)]
    truth = np.mean(risks, axis=0).min()
    noise = np.std([r.min() for r in risks], ddof=1) / np.sqrt(len(risks))
    predicted = tuned_error(mean_path(paths), rows)
    each = np.array([tuned_error(one, rows) for one in paths])
    spread = each.std(ddof=1) / np.sqrt(len(each))
    assert abs(predicted - truth) < 4 * np.hypot(noise, spread) + 0.02 * truth


def test_wrong_variants_are_seen(paths):
    """Negative controls: the variance left in, and the error at hand for that of more rows."""
    rng = np.random.default_rng(2)
    truth = np.mean([fit(320, rng)[2] for _ in range(10)], axis=0).min()
    path = mean_path(paths)[0]
    kept = path._replace(error=path.error / (1 - path.second / (N - 1)))
    for wrong in (tuned_error([kept], 320), tuned_error([path], N)):
        assert abs(wrong / truth - 1) > 0.1


def test_at_its_own_rows_it_is_the_leave_one_out_error():
    values, errors, _ = fit(N, np.random.default_rng(5))
    path = level_path(RIDGES, errors, values, N)
    assert tuned_error([path], N - 1) == pytest.approx(errors.min(), rel=1e-9)


def test_few_rows_and_few_levels():
    """A path without a ridge for so few rows gives its largest one; falling with the rows."""
    values, errors, _ = fit(N, np.random.default_rng(5))
    paths = [level_path(RIDGES, errors, values, N)]
    found = [tuned_error(paths, rows) for rows in (12, 30, 80, 800, 10**6)]
    assert np.isfinite(found).all() and np.all(np.diff(found[1:]) <= 0)
