"""scikit-learn estimators: one preconditioned gradient step, then ridge regression.

docs/estimators.md has the mathematics and measured comparisons.
"""

from onegrad.tabular.estimators.one_step import OneStepClassifier, OneStepRegressor

__all__ = ["OneStepClassifier", "OneStepRegressor"]
