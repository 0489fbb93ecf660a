"""Leave-one-out against refits, blocks against one block, weights against repeated rows."""

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import onegrad as og
from onegrad.gaussian.activation import get_activation
from onegrad.tabular.estimators.first_layer import FirstLayer
from onegrad.tabular.estimators.readout import fit_in_blocks
from onegrad.tabular.estimators.rows import Rows

RIDGES = np.array([1e-3, 1e-1, 10.0])


def problem(m=30, n=4, k=8, outputs=2, copies=0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, n))
    x[:copies] = x[copies : 2 * copies]  # with labels of their own
    y = rng.standard_normal((m, outputs)) + x[:, :1] + 3.0
    weight = rng.uniform(0.2, 3.0, m)
    layer = FirstLayer(
        get_activation("tanh"), x.mean(0), rng.standard_normal((k, n)), rng.standard_normal(k)
    )
    return x, y, weight, layer


def rows_of(x, y, weight, block_rows=None):
    return Rows(x, lambda rows: y[rows], weight, np.random.default_rng(1), 8, block_rows)


def refitted_errors(x, y, weight, layer, ridges, scale, together=True, keep_intercept=False):
    """Mean leave-one-out errors from one refit for each row; copies go together if asked."""
    features, total = layer.features(x), weight.sum()
    errors = np.zeros(len(ridges))
    for j, ridge in enumerate(ridges):
        for i in range(len(x)):
            others = (x != x[i]).any(axis=1) if together else np.arange(len(x)) != i
            # the penalty is that of all rows: what leaves is the row, not its share of the penalty
            model = Ridge(alpha=ridge * total, fit_intercept=not keep_intercept)
            shift = np.average(y, axis=0, weights=weight) if keep_intercept else 0.0
            model.fit(features[others], y[others] - shift, sample_weight=weight[others])
            left = (y[i] - shift - model.predict(features[i : i + 1])[0]) / scale
            errors[j] += weight[i] * (left**2).mean()
    return errors / total


@pytest.mark.parametrize("copies", [0, 5])
def test_leave_one_out_is_that_of_refits(copies):
    x, y, weight, layer = problem(copies=copies)
    scale = np.array([1.0, 2.5])
    fit = fit_in_blocks(layer, rows_of(x, y, weight, 7), scale, RIDGES)
    expected = refitted_errors(x, y, weight, layer, RIDGES, scale)
    assert fit.errors == pytest.approx(expected, rel=1e-10)
    assert fit.ridge == RIDGES[expected.argmin()]
    model = Ridge(alpha=fit.ridge * weight.sum()).fit(layer.features(x), y, sample_weight=weight)
    assert fit.coefficients == pytest.approx(model.coef_.T, rel=1e-9)
    assert fit.intercept == pytest.approx(model.intercept_, rel=1e-9)


def test_wrong_ways_to_leave_out_are_seen():
    """Negative controls: copies left behind, and the intercept not refitted."""
    x, y, weight, layer = problem(copies=5)
    scale = np.ones(2)
    errors = fit_in_blocks(layer, rows_of(x, y, weight), scale, RIDGES).errors
    alone = refitted_errors(x, y, weight, layer, RIDGES, scale, together=False)
    assert np.abs(alone / errors - 1).max() > 1e-2
    x, y, weight, layer = problem()
    errors = fit_in_blocks(layer, rows_of(x, y, weight), scale, RIDGES).errors
    kept = refitted_errors(x, y, weight, layer, RIDGES, scale, keep_intercept=True)
    assert np.abs(kept / errors - 1).max() > 1e-2


def test_only_judged_rows_count():
    x, y, weight, layer = problem()
    rows = rows_of(x, y, weight)
    judged = rows.numbered(10, 20)
    errors = fit_in_blocks(layer, rows, np.ones(2), RIDGES, judged=judged).errors
    each = []
    for i in np.flatnonzero(judged):
        others = np.arange(len(x)) != i
        model = Ridge(alpha=RIDGES[1] * weight.sum())
        model.fit(layer.features(x[others]), y[others], sample_weight=weight[others])
        each.append(((y[i] - model.predict(layer.features(x[i : i + 1]))[0]) ** 2).mean())
    assert len(each) == 10
    assert errors[1] == pytest.approx(np.average(each, weights=weight[judged]), rel=1e-10)


@pytest.mark.parametrize("make", [og.OneStepRegressor, og.OneStepClassifier])
def test_blocks_and_the_order_of_rows_change_nothing(make):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((500, 6)) + 100.0
    y = (x[:, 0] > 100.0) + (x[:, 1] > 100.0)
    weight = rng.uniform(0, 2, 500)
    whole = make(width=50, block_rows=500, random_state=0).fit(x, y, weight)
    order = rng.permutation(500)
    for model in (
        make(width=50, block_rows=17, random_state=0).fit(x, y, weight),
        make(width=50, random_state=0).fit(x[order], y[order], weight[order]),
    ):
        assert (model.rate_, model.ridge_) == (whole.rate_, pytest.approx(whole.ridge_, rel=1e-9))
        assert np.abs(model._output(x) - whole._output(x)).max() < 1e-9
    other = make(width=50, random_state=1).fit(x, y, weight)
    assert np.abs(other._output(x) - whole._output(x)).max() > 1e-3


@pytest.mark.parametrize("make", [og.OneStepRegressor, og.OneStepClassifier])
def test_weights_are_repeated_rows(make):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((300, 5))
    y = (x[:, 0] + x[:, 1] ** 2 > 0.5).astype(int)
    counts = rng.integers(0, 4, 300)
    weighted = make(width=40, random_state=0).fit(x, y, counts)
    repeated = make(width=40, random_state=0).fit(np.repeat(x, counts, 0), np.repeat(y, counts))
    scaled = make(width=40, random_state=0).fit(x, y, 1e-3 * counts)
    for model in (repeated, scaled):
        assert model.error_ == pytest.approx(weighted.error_, rel=1e-9)
        assert np.abs(model._output(x) - weighted._output(x)).max() < 1e-9
    plain = make(width=40, random_state=0).fit(x, y)
    assert np.abs(plain._output(x) - weighted._output(x)).max() > 1e-3


@pytest.mark.slow
def test_a_million_rows_from_disk(tmp_path):
    """A memory map is never read into memory as a whole, and features exist a block at a time."""
    m, n, k = 1_000_000, 10, 60
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(m, n))
    for start in range(0, m, 100_000):
        x[start : start + 100_000] = rng.standard_normal((100_000, n), dtype=np.float32)
    x.flush()
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    y = np.asarray(x[:, 0] + x[:, 1] ** 2, dtype=float)
    tracemalloc.start()
    model = og.OneStepRegressor(width=k, block_rows=4096, random_state=0).fit(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6  # features would be 480 MB, and 80 MB the inputs in double precision
    assert model.score(x[:5000], y[:5000]) > 0.97
