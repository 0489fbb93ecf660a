"""What the two estimators share: parameters, the fit, blocks of outputs, and their description."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.gaussian.activation import Activation, get_activation
from onegrad.tabular.estimators.clipping import bounds_of
from onegrad.tabular.estimators.directions import step_directions
from onegrad.tabular.estimators.first_layer import FirstLayer
from onegrad.tabular.estimators.memory_need import check_memory
from onegrad.tabular.estimators.parameters import (
    Choice,
    candidates,
    positive,
    whole,
)
from onegrad.tabular.estimators.rows import Rows, dense, rows_in_block
from onegrad.tabular.estimators.trained import Recipe, Trained, train

_CLIP_ROWS = 10_000  # rows from which the bounds of a clip are taken


class OneStep(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the two estimators share."""

    # Whether a fit keeps leave-one-out errors and eigenvalues of every rate, for learning curves.
    _keeps_paths = False

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
        block_rows: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.width = width
        self.activation = activation
        self.rate = rate
        self.ridge = ridge
        self.damping = damping
        self.clip = clip
        self.n_estimators = n_estimators
        self.block_rows = block_rows
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit(
        self,
        x: Any,
        target: Callable[[np.ndarray], Array],
        scale: Array,
        weight: Array | None,
        left_out: bool = False,
    ) -> tuple[list[Trained], Rows]:
        """Step on half of the inputs; readout on all; both judged on the other half."""
        activation = get_activation(self.activation)
        width, members = whole("width", self.width), whole("n_estimators", self.n_estimators)
        block_rows = None if self.block_rows is None else whole("block_rows", self.block_rows)
        damping = positive("damping", self.damping)
        rates = candidates("rate", self.rate, 0.0)
        ridges = candidates("ridge", self.ridge, np.finfo(float).tiny)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        check_memory(width, x.shape[1], x.shape[0])
        self._bounds = self._clip_bounds(x, weight, seed)
        recipe = Recipe(width, activation, damping, ridges)
        found: list[Trained] = []
        for i in range(members):  # the first chooses the rate for all
            streams = Streams(seed, i)
            rows = Rows(x, target, weight, streams.rng("split"), width, block_rows, self._bounds)
            tried = rates if not found else np.array([found[0].rate])
            start = time.process_time()
            one = train(rows, scale, recipe, tried, streams, left_out)
            found.append(one)
            if self.verbose:
                self._tell(i, members, one, time.process_time() - start)
        self.rate_, self.rate_errors_ = found[0].rate, found[0].rate_errors
        self.rates_ = found[0].rates
        if self._keeps_paths:
            labels = target(rows.present) / scale
            constant = float(labels.var(axis=0).mean()) or 1.0
            self._paths = [(r.ridges, r.errors / constant, r.values) for r in found[0].tried]
        self.ridge_ = float(np.exp(np.mean([np.log(one.readout.ridge) for one in found])))
        if members == 1:
            self.ridge_ = found[0].readout.ridge
        self.error_ = float(np.mean([one.readout.error for one in found]))
        layers = [one.layer for one in found]
        self.mean_ = layers[0].mean
        self.weights_ = np.concatenate([layer.weights for layer in layers])
        self.bias_ = np.concatenate([layer.bias for layer in layers])
        readouts = [one.readout for one in found]
        self.coef_ = np.concatenate([one.coefficients.T for one in readouts], axis=1) / members
        self.intercept_ = np.mean([one.intercept for one in readouts], axis=0)
        self.directions_, self.direction_shares_ = step_directions(found[0].step)
        self._n_features_out = len(self.bias_)
        return found, rows

    def _clip_bounds(self, x: Any, weight: Array | None, seed: int) -> tuple[Array, Array] | None:
        if self.clip is None:
            return None
        clip = positive("clip", self.clip, "The default is None")
        if issparse(x):
            raise SpecError.of(
                "clip", clip, "needs the quartiles of dense inputs, and X is sparse",
                "Leave it out, or give X.toarray()",
            )  # fmt: skip
        known = np.ones(len(x)) if weight is None else weight
        chosen = np.flatnonzero(known > 0)
        if len(chosen) > _CLIP_ROWS:
            chosen = np.sort(np.random.default_rng(seed).choice(chosen, _CLIP_ROWS, replace=False))
        return bounds_of(dense(x[chosen]), known[chosen], clip)

    def _tell(self, i: int, members: int, one: Trained, seconds: float) -> None:
        which = f"network {i + 1} of {members}: " if members > 1 else ""
        errors = ", ".join(
            f"{error:.4g} at rate {rate:g}"
            for rate, error in zip(one.rates, one.rate_errors, strict=True)
        )
        print(
            f"[{type(self).__name__}] {which}leave-one-out error {errors}; ridge "
            f"{one.readout.ridge:.3g}; {seconds:.1f} s of CPU"
        )

    def _blocks(self, x: Any) -> Any:
        """Slices of the rows, with their features."""
        check_is_fitted(self)
        x = validate_data(self, x, reset=False, dtype="numeric", accept_sparse="csr")
        layer = FirstLayer(get_activation(self.activation), self.mean_, self.weights_, self.bias_)
        step = self.block_rows or rows_in_block(*self.weights_.shape)
        for start in range(0, max(x.shape[0], 1), step):
            part = slice(start, start + step)
            yield layer.features(dense(x[part], self._bounds))

    def _output(self, x: Any) -> Array:
        """f(x), a column for each output, in blocks."""
        return np.concatenate([f @ self.coef_.T + self.intercept_ for f in self._blocks(x)])

    def transform(self, X: ArrayLike) -> Array:
        """The features σ(Ŵ(x − mean) + bias) after the step (m × neurons)."""
        return np.concatenate(list(self._blocks(X)))


SHARED_DOC = """
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
        features. A number, several to choose from, or "auto": 0 and 8, and where 8 is better by
        1 % also 64 and 1
    ridge : λ of (1/m)Σ|y − f(x)|² + λ|a|²; a number, several to choose from, or "auto": half
        decades from 1e-7 to 10 times the mean variance of a feature
    damping : floor of the whitening, in units of the mean variance of an input; inf is the plain
        gradient
    clip : inputs are cut at the median ± clip · (distance of the quartiles)/1.349 of their column,
        as a remedy for heavy tails; None leaves them. 5 helps where tails are errors and harms
        where labels follow them
    n_estimators : networks, of other random weights and splits, whose outputs are averaged; the
        first one chooses the rate for all
    block_rows : rows whose features are in memory at a time; by default 64 MB of them
    random_state : seed of the weights and of the split between step and judgement
    verbose : print a line for each network

    Attributes
    ----------
    rate_, ridge_ : as chosen
    error_ : leave-one-out mean squared error with them, {units}
    rates_, rate_errors_ : what was chosen from, and the error of each at its best ridge
    weights_ (k × n), bias_ (k), mean_ (n) : first layer, σ(weights_·(x − mean_) + bias_)
    coef_ (outputs × k), intercept_ : second layer; with several networks k is n_estimators · width
    directions_ (r × n, r ≤ 5) : what the neurons' steps share, as coefficients of the inputs in
        units of their standard deviations, each of length one
    direction_shares_ : how much of the step each direction is

    Notes
    -----
    Cost with m rows of n inputs: 2mn² + 2mnk for the step; for each rate 2mnk + mk² + 9k³
    operations with m at most 20,000 or 10k, and once more with all rows where there are more;
    where m < k, 2mnk + 2m²k + 9m³.
    Memory beside the data: 3k² + n² + 3kn numbers, a block, and about 80 bytes a row; `X` may be
    a memory map of any numeric type or a sparse matrix, of which a block at a time is converted.
    A row of weight w is the same as w equal rows: the leave-one-out error leaves out all of them.
    docs/estimators.md has the mathematics.
"""
