"""OneStepClassifier on Fashion-MNIST, ten classes, against random features."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV

import onegrad as og
from onegrad.data.fashion_mnist import load_fashion_mnist
from tests.images import needs_fashion_mnist

pytestmark = needs_fashion_mnist


def images(train, test):
    """Pixels between 0 and 1, as most people take them."""
    x, y = load_fashion_mnist()
    rows = np.r_[:train, 60_000 : 60_000 + test]
    x, y = x[rows] / np.float32(255), y[rows]
    return x[:train], y[:train], x[train:], y[train:]


def plain_random_features(x, y, x_test, y_test, width, seed):
    """Written out: relu(Wx) on the pixels as they are, ridge by leave-one-out."""
    weights = np.random.default_rng(seed).standard_normal((width, 784)) / 10
    model = RidgeClassifierCV(10.0 ** np.arange(-3, 5))
    model.fit(np.maximum(x @ weights.T, 0), y)
    return model.score(np.maximum(x_test @ weights.T, 0), y_test)


@pytest.mark.slow
def test_never_worse_than_random_features():
    part = images(5000, 10_000)
    gains = []
    for seed in range(3):
        model = og.OneStepClassifier(width=250, random_state=seed).fit(*part[:2])
        gains.append(model.score(*part[2:]) - plain_random_features(*part, 250, seed))
    assert min(gains) > -0.002
    assert np.mean(gains) > 0.01


@pytest.mark.slow
def test_a_plain_step_loses_and_a_whitened_one_gains():
    """Negative control: without whitening the leading principal components swallow the step."""
    part = images(5000, 10_000)
    scores = {
        damping: og.OneStepClassifier(width=250, rate=8, damping=damping, random_state=0)
        .fit(*part[:2])
        .score(*part[2:])
        for damping in (1.0, np.inf)
    }
    assert scores[1.0] > scores[np.inf] + 0.01


@pytest.mark.slow
def test_all_images_at_width_2000():
    part = images(60_000, 10_000)
    model = og.OneStepClassifier(width=2000, random_state=0).fit(*part[:2])
    untrained = og.OneStepClassifier(width=2000, rate=0, random_state=0).fit(*part[:2])
    accuracy, without = model.score(*part[2:]), untrained.score(*part[2:])
    assert accuracy > 0.865
    assert accuracy > without + 0.005
    assert model.rate_ > 0
