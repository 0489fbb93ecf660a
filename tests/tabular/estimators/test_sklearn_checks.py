"""What scikit-learn asks of an estimator, and how it works together with its tools."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import onegrad as og


# A weight of two and a row given twice agree up to rounding, which the smallest ridge (1e-7)
# amplifies to 1e-8: at some widths (25, 40) that is above scikit-learn's own tolerance of 1e-9.
@parametrize_with_checks(
    [og.OneStepRegressor(width=60, random_state=0), og.OneStepClassifier(width=60, random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_grid_search_over_a_pipeline():
    x, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), og.OneStepClassifier(width=100, random_state=0))
    grid = {
        "onestepclassifier__activation": ["relu", "tanh"],
        "onestepclassifier__width": [10, 100],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(x[:900], y[:900])
    assert search.best_params_["onestepclassifier__width"] == 100
    assert search.score(x[900:], y[900:]) > 0.9
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(x), search.predict(x))
    assert clone(search.best_estimator_).fit(x[:900], y[:900]).score(x, y) == again.score(x, y)


def test_string_labels_and_several_outputs():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 5))
    names = np.array(["cat", "dog", "eel"])[np.digitize(x[:, 0], [-0.5, 0.5])]
    model = og.OneStepClassifier(width=60, random_state=0).fit(x, names)
    assert model.decision_function(x).shape == (400, 3)
    assert model.score(x, names) > 0.9
    y = np.column_stack([x[:, 0], 1e6 * x[:, 1] ** 2])
    outputs = og.OneStepRegressor(width=100, random_state=0).fit(x, y)
    assert outputs.predict(x).shape == (400, 2)
    # in units of their own spread: the large one does not drown the small one
    assert (((outputs.predict(x) - y) ** 2).mean(0) < 0.1 * y.var(0)).all()


@pytest.mark.parametrize(("key", "value", "advice"), [
    ("width", 0, "whole number"), ("width", 2.5, "whole number"), ("rate", -1, "auto"),
    ("rate", "fast", "auto"), ("ridge", 0, "auto"), ("ridge", [1.0, np.nan], "auto"),
    ("ridge", [], "auto"), ("damping", 0, "number > 0"), ("block_rows", 0, "whole number"),
    ("activation", "rellu", 'Did you mean "relu"'),
])  # fmt: skip
def test_bad_parameters_are_refused_with_advice(key, value, advice):
    x = np.arange(12.0).reshape(6, 2)
    with pytest.raises(og.SpecError, match=advice) as refused:
        og.OneStepRegressor(**{key: value}).fit(x, x[:, 0])
    assert str(refused.value).startswith(key)


def test_bad_data_are_refused_with_advice():
    x = np.arange(12.0).reshape(6, 2)
    with pytest.raises(og.SpecError, match="one class only"):
        og.OneStepClassifier().fit(x, np.ones(6))
    with pytest.raises(ValueError, match="zero"):
        og.OneStepRegressor().fit(x, x[:, 0], sample_weight=np.zeros(6))
    with pytest.raises(og.ConvergenceError, match="StandardScaler"):
        og.OneStepRegressor().fit(x * 1e200, x[:, 0])


def test_importing_onegrad_does_not_import_scikit_learn():
    code = "import sys, onegrad; onegrad.SpecError; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
