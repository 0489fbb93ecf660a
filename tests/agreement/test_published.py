"""The network against the published curves and the reference values.

Published values are ½·MSE, read off the figures of demir2025; one data set each, which alone
fluctuates by 3–7 %. Reference values are plain MSE with their own standard errors.
"""

import pytest

from onegrad.experiments.simulate import simulate
from tests.agreement.paper import setting

pytestmark = pytest.mark.slow

PUBLISHED = [
    ("relu", 1.0, 0.74, 0.5, 0.0210),
    ("tanh", 1.0, 0.74, 0.5, 0.0332),
    ("sigmoid", 1.0, 0.74, 0.5, 0.0180),
    ("relu", 5.0, 0.74, 0.5, 0.0152),
    ("tanh", 5.0, 0.74, 0.5, 0.0290),
    ("sigmoid", 5.0, 0.74, 0.5, 0.0168),
    ("relu", 1.0, 0.74, 1.0, 0.093),
    ("tanh", 1.0, 0.74, 1.0, 0.156),
    ("sigmoid", 1.0, 0.74, 1.0, 0.083),
    ("relu", 1.0, 0.0, 0.5, 0.107),
    ("tanh", 1.0, 0.0, 0.5, 0.169),
    ("sigmoid", 1.0, 0.0, 0.5, 0.092),
]


@pytest.mark.parametrize(("activation", "ratio", "strength", "weighting", "published"), PUBLISHED)
def test_half_the_test_error_is_the_published_curve(
    activation, ratio, strength, weighting, published
):
    problem = setting(1000, activation, ratio, strength, weighting)
    outcome = simulate(problem, seeds=20 if ratio == 1 else 6)
    mean, error = outcome.test_error
    assert error < 0.02 * mean
    assert mean / 2 == pytest.approx(published, rel=0.06)
    assert mean != pytest.approx(published, rel=0.3)  # negative control: the ½ forgotten


REFERENCE = [
    ("relu", 0.74, 0.5, {}, 0.00947, 0.04408),
    ("tanh", 0.74, 0.5, {}, 0.01601, 0.06979),
    ("sigmoid", 0.74, 0.5, {}, 0.02304, 0.03693),
    ("relu", 0.74, 0.0, {}, 0.00092, 0.00408),
    ("tanh", 0.74, 1.0, {}, 0.07362, 0.31633),
    ("relu", 0.74, 0.5, {"model": "component"}, 0.30999, 1.43817),
]


@pytest.mark.parametrize(
    ("activation", "strength", "weighting", "labels", "train", "test"), REFERENCE
)
def test_reference_values(activation, strength, weighting, labels, train, test):
    """Within 3 % and 4 standard errors of the values that were measured independently."""
    problem = setting(1000, activation, 1.0, strength, weighting, **labels)
    outcome = simulate(problem, seeds=20, rng=1)
    for estimate, reference in ((outcome.test_error, test), (outcome.train_error, train)):
        assert abs(estimate.mean - reference) < 0.03 * reference + 4 * estimate.standard_error
    # negative control: one decade of ridge is far outside
    other = problem.model_copy(
        update={"training": problem.training.model_copy(update={"ridge": 1e-3})}
    )
    assert simulate(other, seeds=2, rng=1).train_error.mean > 1.3 * train
