"""Precision of the inputs and sizes that do not fit."""

import numpy as np
import pytest

from onegrad import OneStepClassifier, OneStepRegressor, SpecError
from onegrad.errors import ConvergenceError
from onegrad.tabular.estimators import memory_need
from onegrad.tabular.estimators.rows import _in_single_precision


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 12))
    return x, x[:, 0] + x[:, 1] ** 2 + 0.1 * rng.standard_normal(400)


def test_single_and_double_precision_give_the_same_model(table):
    x, y = table
    double, single = (
        OneStepRegressor(width=60, random_state=0).fit(inputs, y)
        for inputs in (x, x.astype(np.float32))
    )
    assert (double.rate_, double.ridge_) == (single.rate_, pytest.approx(single.ridge_, rel=1e-4))
    assert np.allclose(double.predict(x), single.predict(x), atol=1e-4 * np.std(y))
    # a negative control: another split is another model
    other = OneStepRegressor(width=60, random_state=1).fit(x, y)
    assert not np.allclose(double.predict(x), other.predict(x), atol=1e-2 * np.std(y))


def test_classes_do_not_depend_on_the_precision_either(table):
    x, y = table
    labels = np.array(["low", "high"])[(y > 1).astype(int)]
    outputs = [
        OneStepClassifier(width=60, random_state=0).fit(inputs, labels).decision_function(inputs)
        for inputs in (x, x.astype(np.float32))
    ]
    assert np.allclose(*outputs, atol=1e-4)


def test_rounding_is_that_of_single_precision():
    rng = np.random.default_rng(1)
    values = rng.standard_normal(10_000) * 10.0 ** rng.integers(-30, 30, 10_000)
    values = np.concatenate([values, [0.0, 16777217.0, 16777219.0, -1.0, 1e300, 5e-324]])
    rounded = _in_single_precision(values.view(np.uint64)).view(float)
    normal = np.abs(values) < 1e38
    normal &= (np.abs(values) > 1e-37) | (values == 0)
    assert np.array_equal(rounded[normal], values[normal].astype(np.float32).astype(float))
    assert np.isfinite(rounded).all()


@pytest.mark.parametrize("model", [OneStepRegressor, OneStepClassifier])
def test_a_width_that_cannot_fit_is_refused_with_the_estimate(table, model):
    x, y = table
    with pytest.raises(SpecError, match=r"24,\d{3},\d{3},\d{3}\.\d GB") as error:
        model(width=10**9).fit(x, (y > 0).astype(int))
    assert "would fit" in str(error.value)


def test_the_width_that_is_suggested_fits(monkeypatch):
    monkeypatch.setattr(memory_need, "available_bytes", lambda: 2_000_000_000)
    with pytest.raises(SpecError) as error:
        memory_need.check_memory(100_000, 500, 10_000)
    suggested = int(str(error.value).partition("About ")[2].split()[0].replace(",", ""))
    assert suggested > 3000
    memory_need.check_memory(suggested, 500, 10_000)


def test_inputs_whose_squares_vanish_are_refused():
    """They were taken for constants; constants of that size are fine."""
    x = np.random.default_rng(0).standard_normal((80, 3))
    with pytest.raises(ConvergenceError, match="too small"):
        OneStepRegressor(width=20, random_state=0).fit(x * 1e-170, x[:, 0])
    constant = OneStepRegressor(width=20, random_state=0).fit(np.full((80, 3), 1e-170), x[:, 0])
    assert np.allclose(constant.predict(np.full((2, 3), 1e-170)), x[:, 0].mean())
