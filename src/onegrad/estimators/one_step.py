"""OneStepRegressor and OneStepClassifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from onegrad.compute.backend import Array
from onegrad.errors import SpecError
from onegrad.estimators.first_layer import FirstLayer, prepare_step
from onegrad.estimators.memory_need import check_memory
from onegrad.estimators.readout import BlockReadout, fit_in_blocks
from onegrad.estimators.rows import Rows, rows_in_block
from onegrad.gaussian.activation import Activation, get_activation
from onegrad.randomness import Streams

AUTOMATIC_RATES = (0.0, 1.0, 8.0, 64.0)
# Fresh inputs that are judged, and as many of the step's beside them when rates are compared.
_JUDGED, _JUDGED_PER_NEURON = 10_000, 5

Choice = float | Sequence[float] | Literal["auto"]


class _OneStep(BaseEstimator):
    """What the two estimators share."""

    def __init__(
        self,
        width: int = 1000,
        *,
        activation: str | Activation = "relu",
        rate: Choice = "auto",
        ridge: Choice = "auto",
        damping: float = 1.0,
        block_rows: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.rate = rate
        self.ridge = ridge
        self.damping = damping
        self.block_rows = block_rows
        self.random_state = random_state

    def _fit(
        self, x: Any, target: Callable[[np.ndarray], Array], scale: Array, weight: Array | None
    ) -> None:
        """Step on half of the inputs; readout on all; both judged on the other half."""
        activation = get_activation(self.activation)
        width = _whole("width", self.width)
        block_rows = None if self.block_rows is None else _whole("block_rows", self.block_rows)
        damping = _positive("damping", self.damping)
        rates = _candidates("rate", self.rate, 0.0)
        ridges = _candidates("ridge", self.ridge, np.finfo(float).tiny)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        streams = Streams(seed, 0)
        check_memory(width, x.shape[1], x.shape[0])
        rows = Rows(x, target, weight, streams.rng("split"), width, block_rows)

        half = rows.distinct // 2
        self.rates_ = np.asarray(AUTOMATIC_RATES) if rates is None else rates
        step_rows = rows.numbered(0, half if self.rates_.any() else 0)
        step = prepare_step(rows, scale, activation, width, damping, step_rows, streams)
        count = max(_JUDGED, _JUDGED_PER_NEURON * width)
        judged = rows.numbered(half, half + count)
        sampled = len(self.rates_) > 1 and rows.distinct > 2 * count
        used = rows.numbered(half - count, half + count) if sampled else None
        best: tuple[float, FirstLayer, BlockReadout] | None = None
        errors = []
        for rate in self.rates_:
            layer = step.at(float(rate))
            readout = fit_in_blocks(layer, rows, scale, ridges, used, judged)
            errors.append(readout.error)
            if best is None or readout.error < best[2].error:
                best = float(rate), layer, readout
        assert best is not None
        self.rate_, layer, readout = best
        if sampled:
            readout = fit_in_blocks(layer, rows, scale, ridges, None, judged)
        self.rate_errors_ = np.array(errors)
        self.ridge_, self.error_ = readout.ridge, readout.error
        self.mean_, self.weights_, self.bias_ = layer.mean, layer.weights, layer.bias
        self.coef_, self.intercept_ = readout.coefficients.T, readout.intercept

    def _output(self, x: Any) -> Array:
        """f(x), a column for each output, in blocks."""
        check_is_fitted(self)
        x = validate_data(self, x, reset=False, dtype="numeric")
        layer = FirstLayer(get_activation(self.activation), self.mean_, self.weights_, self.bias_)
        output = np.empty((x.shape[0], len(self.intercept_)))
        step = self.block_rows or rows_in_block(*self.weights_.shape)
        for start in range(0, x.shape[0], step):
            part = slice(start, start + step)
            features = layer.features(np.asarray(x[part], dtype=float))
            output[part] = features @ self.coef_.T + self.intercept_
        return output


_SHARED_DOC = """
    The first layer takes one gradient step from random weights; the second is ridge regression.
    The step is taken in a metric that whitens the inputs, so that it follows what the labels ask
    for and not the leading principal components. How far it goes, zero included, and the ridge
    are chosen by the closed-form leave-one-out error of inputs that the step has not seen. Inputs
    should be of comparable scale: put a StandardScaler before if they have different units.

    Parameters
    ----------
    width : neurons k
    activation : a name (relu, tanh, erf, gelu, …) or an `onegrad.Activation`
    rate : how much the step moves the preactivations, in units of what they were; 0 is random
        features. A number, several to choose from, or "auto": 0, 1, 8 and 64
    ridge : λ of (1/m)Σ|y − f(x)|² + λ|a|²; a number, several to choose from, or "auto": half
        decades from 1e-7 to 10 times the mean variance of a feature
    damping : floor of the whitening, in units of the mean variance of an input; inf is the plain
        gradient
    block_rows : rows whose features are in memory at a time; by default 64 MB of them
    random_state : seed of the weights and of the split between step and judgement

    Attributes
    ----------
    rate_, ridge_ : as chosen
    error_ : leave-one-out mean squared error with them, {units}
    rates_, rate_errors_ : what was chosen from, and the error of each at its best ridge
    weights_ (k × n), bias_ (k), mean_ (n) : first layer, σ(weights_·(x − mean_) + bias_)
    coef_ (outputs × k), intercept_ : second layer

    Notes
    -----
    Cost with m rows of n inputs: 2mn² + 2mnk for the step; for each rate 2mnk + mk² + 9k³
    operations with m at most 20,000 or 10k, and once more with all rows where there are more.
    Memory beside the data: 3k² + n² + 3kn numbers, a block, and about 80 bytes a row; `X` may be
    a memory map of any numeric type, of which a block at a time is converted.
    A row of weight w is the same as w equal rows: the leave-one-out error leaves out all of them.
    docs/estimators.md has the mathematics.
"""


class OneStepRegressor(RegressorMixin, MultiOutputMixin, _OneStep):
    __doc__ = f"""Regression by a two-layer network after one gradient step.
{_SHARED_DOC.format(units="outputs in units of their standard deviation")}
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
        X, y = validate_data(self, X, y, dtype="numeric", multi_output=True, y_numeric=True)
        weight = _weight(sample_weight, X)
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


class OneStepClassifier(ClassifierMixin, _OneStep):
    __doc__ = f"""Classification by a two-layer network after one gradient step.

    One output for each class, 1 for its members and 0 for the others, on a shared first layer (a
    single output ±1 for two classes); the largest wins.
{_SHARED_DOC.format(units="of the outputs")}
    classes_ : the labels, in the order of the outputs

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneStepClassifier(width=200, random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.93)
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to inputs X (m × n) and labels y (m), numbers or strings."""
        X, y = validate_data(self, X, y, dtype="numeric")
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
        self._fit(X, lambda rows: columns[codes[rows]], scale, _weight(sample_weight, X))
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """The outputs (m × classes), or for two classes one that is positive for the second."""
        output = self._output(X)
        return output[:, 0] if len(self.classes_) == 2 else output

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the largest output."""
        output = self._output(X)
        which = (output[:, 0] > 0).astype(int) if len(self.classes_) == 2 else output.argmax(1)
        return np.asarray(self.classes_[which])


def _weight(sample_weight: ArrayLike | None, x: Any) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(
        _check_sample_weight(sample_weight, x, dtype=float, ensure_non_negative=True)
    )
    if not weight.any():
        raise SpecError.of(
            "sample_weight", 0.0, "is zero for every row", "Give some rows a positive weight"
        )
    return weight


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SpecError.of(key, value, "must be a whole number ≥ 1")
    return int(value)


def _positive(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0:
        raise SpecError.of(key, value, "must be a number > 0", "The default is 1; inf is allowed")
    return float(value)


def _candidates(key: str, value: Choice, least: float) -> Array | None:
    """The numbers to choose from, in the order given; None for the automatic ones."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if (
        numbers.ndim != 1
        or not len(numbers)
        or not np.all((numbers >= least) & np.isfinite(numbers))
    ):
        raise SpecError.of(
            key, value, f'must be "auto", a number {">" if least else "≥"} 0, or a list of such',
            'With "auto" it is chosen by leave-one-out',
        )  # fmt: skip
    return numbers
