"""Probabilities, class weights, sparse inputs, clips, several networks and what a step found."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import log_loss

import onegrad as og
from onegrad.gaussian.activation import get_activation
from onegrad.tabular.estimators.calibration import fit_softness, probabilities
from onegrad.tabular.estimators.first_layer import FirstLayer
from onegrad.tabular.estimators.readout import _dual, _primal, fit_in_blocks
from onegrad.tabular.estimators.rows import Rows


def classes(count=3, m=600, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, 6))
    scores = 1.5 * x[:, :count] + noise * rng.gumbel(size=(m, count))
    return x, scores.argmax(axis=1)


@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_are_calibrated(count):
    """Their log loss beats outputs that are taken ten times too soft or too hard, and the share of
    right answers is what the probabilities say."""
    x, y = classes(count)
    model = og.OneStepClassifier(width=80, random_state=0).fit(x[:400], y[:400])
    chances = model.predict_proba(x[400:])
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(x[400:]))
    assert np.exp(model.predict_log_proba(x[400:])) == pytest.approx(chances)
    ours = log_loss(y[400:], chances)
    for factor in (0.1, 10.0):
        other = probabilities(model._output(x[400:]), factor * model.softness_)
        assert log_loss(y[400:], other) > ours + 0.05
    right = chances.argmax(axis=1) == y[400:]
    spread = np.sqrt((chances.max(axis=1) * (1 - chances.max(axis=1))).sum()) / 200
    assert abs(right.mean() - chances.max(axis=1).mean()) < 3 * spread


def test_softness_of_outputs_whose_law_is_known():
    """Labels drawn with p ∝ exp(f/τ): τ is found."""
    rng = np.random.default_rng(1)
    output = rng.standard_normal((20_000, 1))
    codes = (rng.random(20_000) < probabilities(output, 0.4)[:, 1]).astype(int)
    assert fit_softness(output, codes, np.ones(20_000)) == pytest.approx(0.4, rel=0.05)


def test_probabilities_of_few_distinct_inputs():
    """Equal rows are left out together, which says nothing of their own probability."""
    rng = np.random.default_rng(0)
    x = (rng.random((600, 1)) > 0.5) * 1.0
    y = np.where(rng.random(600) < 0.2 + 0.6 * x[:, 0], "a", "b")
    model = og.OneStepClassifier(width=40, random_state=0).fit(x, y)
    assert model.predict_proba([[0.0], [1.0]])[:, 0] == pytest.approx([0.2, 0.8], abs=0.06)
    twice = og.OneStepClassifier(width=40, random_state=0)
    twice.fit(np.concatenate([x, x]), np.concatenate([y, y]))
    weighted = og.OneStepClassifier(width=40, random_state=0).fit(
        x, y, sample_weight=np.full(600, 3)
    )
    for other in (twice, weighted):
        assert other.softness_ == pytest.approx(model.softness_, rel=1e-3)


def test_class_weight():
    """Balanced weights make the rare class as likely as the other, and equal weights of rows."""
    rng = np.random.default_rng(0)
    y = (rng.random(500) < 0.1).astype(int)
    x = rng.standard_normal((500, 4)) + y[:, None]
    plain = og.OneStepClassifier(width=50, random_state=0).fit(x, y)
    balanced = og.OneStepClassifier(width=50, class_weight="balanced", random_state=0).fit(x, y)
    assert balanced.predict(x)[y == 1].mean() > plain.predict(x)[y == 1].mean() + 0.1
    weight = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    same = og.OneStepClassifier(width=50, random_state=0).fit(x, y, sample_weight=weight)
    assert same.decision_function(x) == pytest.approx(balanced.decision_function(x), rel=1e-6)
    named = og.OneStepClassifier(width=50, class_weight={0: 1, 1: 9}, random_state=0).fit(x, y)
    assert named.predict(x).mean() > plain.predict(x).mean()
    for wrong in ("balancd", {2: 1.0}, {0: -1.0}, {0: 0.0, 1: 0.0}):
        with pytest.raises(og.SpecError, match="class_weight"):
            og.OneStepClassifier(width=5, class_weight=wrong).fit(x, y)


def test_dual_readout_is_the_primal_one():
    """Fewer rows than neurons: the same errors, coefficients and spectrum from an m × m matrix."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    weight = rng.uniform(0.5, 2.0, 30)
    layer = FirstLayer(
        get_activation("tanh"), x.mean(0), rng.standard_normal((60, 4)), rng.standard_normal(60)
    )
    rows = Rows(x, lambda which: y[which], weight, np.random.default_rng(1), 60)
    one, other = _primal(layer, rows, None), _dual(layer, rows, None)
    assert other[3] == pytest.approx(one[3][-len(other[3]) :], rel=1e-8)
    ridge = 1e-3
    readouts = [v @ (p / (s[:, None] + ridge)) for *_, s, v, p in (one, other)]
    assert readouts[1] == pytest.approx(readouts[0], rel=1e-7)
    fit = fit_in_blocks(layer, rows, np.ones(2), np.array([ridge, 1.0]), left_out=True)
    from sklearn.linear_model import Ridge

    others = np.arange(30) != 7
    refit = Ridge(alpha=fit.ridge * weight.sum()).fit(
        layer.features(x[others]), y[others], sample_weight=weight[others]
    )
    assert fit.left_out[7] == pytest.approx(refit.predict(layer.features(x[7:8]))[0], rel=1e-6)


def test_sparse_inputs_give_the_same_model():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 10)) * (rng.random((300, 10)) < 0.2)
    y = x[:, 0] + x[:, 1] ** 2
    dense = og.OneStepRegressor(width=40, random_state=0).fit(x, y)
    sparse = og.OneStepRegressor(width=40, random_state=0).fit(csr_array(x), y)
    assert sparse.predict(csr_array(x)) == pytest.approx(dense.predict(x), rel=1e-9)
    with pytest.raises(og.SpecError, match="clip"):
        og.OneStepRegressor(width=5, clip=5.0).fit(csr_array(x), y)


def test_clip_is_a_remedy_for_heavy_tails():
    rng = np.random.default_rng(0)
    x = rng.standard_t(1.1, size=(800, 5))
    y = np.clip(x[:, 0], -2, 2) + 0.1 * rng.standard_normal(800)
    scores = [
        og.OneStepRegressor(width=100, clip=clip, random_state=0).fit(x[:400], y[:400])
        .score(x[400:], y[400:])
        for clip in (None, 5.0)
    ]  # fmt: skip
    assert scores[1] > max(scores[0], 0.0) + 0.2
    with pytest.raises(og.SpecError, match="clip"):
        og.OneStepRegressor(clip=-1.0).fit(x, y)


def test_several_networks_are_one_wide_one(capsys):
    x, y = classes(m=300)
    one = og.OneStepClassifier(width=40, random_state=0).fit(x[:200], y[:200])
    many = og.OneStepClassifier(width=40, n_estimators=3, verbose=True, random_state=0)
    many.fit(x[:200], y[:200])
    assert capsys.readouterr().out.count("network") == 3
    assert many.transform(x).shape == (300, 120) == (300, len(many.get_feature_names_out()))
    output = many.transform(x) @ many.coef_.T + many.intercept_
    assert output == pytest.approx(many.decision_function(x))
    assert np.array_equal(many.weights_[:40], one.weights_)
    assert log_loss(y[200:], many.predict_proba(x[200:])) < log_loss(
        y[200:], one.predict_proba(x[200:])
    )


def test_the_direction_that_a_step_found():
    """Target s₀ + ½s₁ in columns of different units: coefficients 2 : 1 in standard deviations."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 8))
    model = og.OneStepRegressor(width=60, rate=8.0, random_state=0)
    model.fit(x, x[:, 0] + 0.5 * x[:, 1])
    found = model.directions_[0]
    assert np.linalg.norm(found) == pytest.approx(1.0)
    assert found[1] / found[0] == pytest.approx(0.5, abs=0.1)
    assert np.abs(found[2:]).max() < 0.1
    assert np.all(np.diff(model.direction_shares_) <= 0)
    none = og.OneStepRegressor(width=60, rate=0.0, random_state=0).fit(x, x[:, 0])
    assert none.directions_.shape == (0, 8)  # nothing was learned, and nothing is said
