"""OneStepRegressor and OneStepClassifier."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from onegrad.compute.backend import Array
from onegrad.errors import SpecError
from onegrad.gaussian.activation import Activation
from onegrad.tabular.estimators.calibration import fit_softness, logits_of, probabilities
from onegrad.tabular.estimators.parameters import Choice, ClassWeight, class_weights, row_weights
from onegrad.tabular.estimators.rows import Rows
from onegrad.tabular.estimators.shared import SHARED_DOC, OneStep
from onegrad.tabular.estimators.trained import Trained

_OFTEN = 10  # mean number of copies of an input from which rows are left out together


class OneStepRegressor(RegressorMixin, MultiOutputMixin, OneStep):
    __doc__ = f"""Regression by a two-layer network after one gradient step.
{SHARED_DOC.format(units="outputs in units of their standard deviation")}
    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 20))
    >>> t = X[:, 0]
    >>> model = OneStepRegressor(width=200, random_state=0).fit(X[:1500], (t + t**2)[:1500])
    >>> plain = OneStepRegressor(width=200, rate=0, random_state=0).fit(X[:1500], (t + t**2)[:1500])
    >>> scores = [m.score(X[1500:], (t + t**2)[1500:]) for m in (model, plain)]
    >>> scores[0] > 0.9 > 0.7 > scores[1]
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to inputs X (m × n) and targets y (m, or m × outputs)."""
        X, y = validate_data(
            self, X, y, dtype="numeric", multi_output=True, y_numeric=True, accept_sparse="csr"
        )
        weight = row_weights(sample_weight, X)
        targets = np.asarray(y, dtype=float)
        columns = targets.reshape(len(targets), -1)
        self._flat = targets.ndim == 1
        centred = columns - np.average(columns, axis=0, weights=weight)
        spread = np.sqrt(np.average(centred**2, axis=0, weights=weight))
        constant = spread <= 1e-12 * np.abs(columns).max(axis=0)
        self._fit(X, lambda rows: columns[rows], np.where(constant, 1.0, spread), weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The network's output, of the shape of y."""
        output = self._output(X)
        return output[:, 0] if self._flat else output


class OneStepClassifier(ClassifierMixin, OneStep):
    __doc__ = f"""Classification by a two-layer network after one gradient step.

    One output for each class, 1 for its members and 0 for the others, on a shared first layer (a
    single output ±1 for two classes); the largest wins.
{SHARED_DOC.format(units="of the outputs")}
    classes_ : the labels, in the order of the outputs
    softness_ : τ of the probabilities ∝ exp(output/τ), fitted to outputs of left-out rows (of all
        rows, if an input occurs ten times on average)

    `class_weight` is one parameter more: None, "balanced" (every class counts the same), or a
    mapping from class to weight.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneStepClassifier(width=200, random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.93)
    True
    """

    def __init__(
        self,
        width: int = 1000,
        *,
        activation: str | Activation = "relu",
        rate: Choice = "auto",
        ridge: Choice = "auto",
        damping: float = 1.0,
        clip: float | None = None,
        n_estimators: int = 1,
        class_weight: ClassWeight = None,
        block_rows: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            width, activation=activation, rate=rate, ridge=ridge, damping=damping, clip=clip,
            n_estimators=n_estimators, block_rows=block_rows, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to inputs X (m × n) and labels y (m), numbers or strings."""
        X, y = validate_data(self, X, y, dtype="numeric", accept_sparse="csr")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise SpecError.of(
                "y", self.classes_.tolist(), "has one class only, and a classifier needs two",
                "Check the labels, or the part of the data that was selected",
            )  # fmt: skip
        columns = np.array([[-1.0], [1.0]]) if count == 2 else np.eye(count)
        scale = np.ones(columns.shape[1])
        weight = class_weights(
            self.class_weight, self.classes_, codes, row_weights(sample_weight, X)
        )
        found, rows = self._fit(X, lambda rows: columns[codes[rows]], scale, weight, left_out=True)
        if rows.repeated >= _OFTEN:  # equal rows are left out together: others say nothing of them
            present = rows.present
            self.softness_ = fit_softness(
                self._output(X)[present], codes[present], rows.weight[present]
            )
        else:
            self.softness_ = self._softness(found, rows, codes)
        return self

    def _softness(self, found: list[Trained], rows: Rows, codes: np.ndarray) -> float:
        """Fitted to the mean of the networks in which a row was left out."""
        outputs = np.stack([one.readout.left_out for one in found])
        known = ~np.isnan(outputs[..., 0])
        judged = known.any(axis=0)
        if not judged.any():
            return 1.0
        mean = np.where(known[..., None], outputs, 0.0).sum(axis=0)[judged]
        mean /= known.sum(axis=0)[judged][:, None]
        return fit_softness(mean, codes[judged], rows.weight[judged])

    def decision_function(self, X: ArrayLike) -> Array:
        """The outputs (m × classes), or for two classes one that is positive for the second."""
        output = self._output(X)
        return output[:, 0] if len(self.classes_) == 2 else output

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities (m × classes) ∝ exp(output/softness_), in the order of `classes_`.

        With class weights they are those of a population with the classes weighted so.
        """
        return probabilities(self._output(X), self.softness_)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of the probabilities."""
        return np.asarray(log_softmax(logits_of(self._output(X), self.softness_), axis=1))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the largest output."""
        output = self._output(X)
        which = (output[:, 0] > 0).astype(int) if len(self.classes_) == 2 else output.argmax(1)
        return np.asarray(self.classes_[which])
