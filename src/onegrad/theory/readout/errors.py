"""Training and test error at a fixed point of the conditional Gaussian theory.

Equations are named as in docs/book/errors.md. No matrix of nodes × nodes is formed.
Arrays of a stack of problems have a leading axis (layers/features.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.features import NodeFeatures, one_of
from onegrad.theory.readout.fixed_point import FixedPoint, training_residuals
from onegrad.theory.readout.mean_part import MeanPart
from onegrad.theory.readout.woodbury import (
    Cholesky,
    WoodburyFactors,
    diagonal,
    product,
    response_kernel,
    response_table,
    woodbury_factors,
)

_TOO_CLOSE = (
    "the equations of the second moments did not converge; the problem is too close to "
    "interpolation. Use a larger ridge, or a width further from the samples."
)


@dataclass(frozen=True)
class NodeErrors:
    """What the fixed point says, node by node; plain MSE without ½.

    prediction : (S,) f_s = E[f(x)|κ_s]
    variance : (S,) q_s, variance of f(x) given κ_s over x_⊥ and the training set
    node_test : (S,) t_s = E[(y − f)²|κ_s] = noise + (ȳ − f)² + q
    node_train : (S,) mean squared residual of the training samples at κ_s
    readout : (T,) trained readout summed over the neurons of a type, E[f|κ] = Σ readout_i ν_i(κ)
    train_objective, test_error, train_error : arrays of no axes (or the leading one)
    train_loss, test_loss : the same of another loss than the squared one (losses/), else None
    slopes : (S,) α = w(ȳ − f), of other losses ω E ρ
    along_labels : (S,) ω E[ρy] of other losses, of labels y = ±1
    """

    prediction: Array
    variance: Array
    node_test: Array
    node_train: Array
    readout: Array
    train_objective: Array
    test_error: Array
    train_error: Array
    response: Response
    train_loss: Array | None = None
    test_loss: Array | None = None
    slopes: Array | None = None
    along_labels: Array | None = None

    def take(self, index: int) -> NodeErrors:
        """One problem of a stack."""
        return one_of(self, index, response=self.response.take(index))

    def solved_means(self, means: Array) -> Array:
        """(T, any) S⁻¹ν(κ) of the columns of ν, S of eq. mean-part; it knows no labels."""
        response, point = self.response, self.response.point
        return MeanPart(point, response.blocks, point.weights).solve(means)

    def leverage(self, solved: Array, strata: np.ndarray) -> Array:
        """(S,) By how much more than χ_s a training sample moves its own prediction: R(κ_s, κ_s)/m,
        without what strata and the sum of labels take of (eq. training-set-shift); `solved` of the
        nodes of the point.
        """
        point = self.response.point
        at, through = point.features.mean_of_types(solved)
        own = np.einsum("sr,rs->s", at, through) / point.samples
        whole, left = self._of_samples(solved, strata)
        return np.asarray(own * left / np.maximum(whole, 1e-300))

    def mean_fluctuation(
        self, solved: Array, strata: np.ndarray | None, given: bool = False
    ) -> Array:
        """What the mean part of the readout adds to Var f from one training set and one first layer
        to the next, at nodes of other features of the same neurons: it is not in q.

            (1/m) [Σ_s D_s t_s R(κ, κ_s)² − Σ_c (Σ_{s in c} R(κ, κ_s) α_s)²/Ω_c]
                (eq. training-set-shift)
            R(κ, κ') = ν(κ)ᵀS⁻¹ν(κ'),  S of eq. mean-part,  α = W(ȳ − f),  Ω_c = Σ_{s in c} ω_s
            Σ_i c_i (a_i ν̃_i)² − (Σ_i c_i a_i ν̃_i)²/k,   ν̃ = diag(1/(cm)) S⁻¹ν(κ)
                (eq. first-layer-shift)

        The variance of a mean over m training samples, as many of each stratum as its share says:
        one training set has more samples of one class than the next, unless classes are strata;
        and that of a sum over k neurons, a_i the readout of one. Losses other than the squared one
        are averaged over training sets of other labels: without most of what the sum of labels ±1
        explains, (1/m) Cov(Rρ, y)²/Var y with both within strata.
        solved : (T, any) S⁻¹ν(κ) of the nodes (`solved_means`); with Σ_κ v(κ)ν(κ) in a column it is
            the variance of Σ v(κ)f(κ)
        strata : (S,) to which each node of the point belongs; None leaves (eq. training-set-shift)
        out
        given : the first layer is the same in all training sets, without (eq. first-layer-shift)
        O(T²(T + S)), of one problem
        """
        point, own = self.response.point, self.response.point.features
        found = np.zeros(solved.shape[-1])
        if strata is not None:
            found = self._of_samples(solved, strata)[1]
        if given:
            return np.asarray(found)
        each = (self.readout / (own.counts**2 * point.gain))[:, None] * solved
        neurons = own.counts @ each**2 - (own.counts @ each) ** 2 / own.counts.sum()
        return np.asarray(found + np.maximum(neurons, 0.0))

    def _of_samples(self, solved: Array, strata: np.ndarray) -> tuple[Array, Array]:
        """The two sums of eq. training-set-shift."""
        response, point = self.response, self.response.point
        assert self.slopes is not None
        own = point.features
        at, through = own.mean_of_types(solved)  # R = at·through
        whole = diagonal(through.T, (at.T * response.load) @ at)
        found, labels, left = whole.copy(), np.zeros_like(whole), 0.0
        for stratum in np.unique(strata):
            mine = strata == stratum
            share, mean = own.weights[mine].sum(), self.slopes[mine] @ at[mine] @ through
            found -= mean**2 / share
            if self.along_labels is not None:
                label = float(own.weights[mine] @ own.labels[mine] / share)
                labels += self.along_labels[mine] @ at[mine] @ through - label * mean
                left += share * (1 - label**2)
        if left > 0:
            found -= labels**2 / left
        return whole / point.samples, np.maximum(found, 0.0) / point.samples


@dataclass(frozen=True)
class Correction:
    """Mean errors at finite size over the errors of the fixed point (finite_size.py).

    test, train, objective : the ratios
    remainder : relative, what the correction leaves of test and training error
    left_out : what it does not contain here, in sentences
    mean_test, mean_train : the ratios of what the mean part of the readout does, where asked for
    """

    test: float = 1.0
    train: float = 1.0
    objective: float = 1.0
    remainder: float = 0.0
    left_out: tuple[str, ...] = ()
    mean_test: float = 1.0
    mean_train: float = 1.0

    @property
    def size(self) -> float:
        """The sum of the relative changes of test and training error."""
        return abs(self.test - 1) + abs(self.train - 1)


@dataclass(frozen=True)
class Response:
    """Second moments of the prediction at a fixed point, at its own nodes or at others.

        q(κ) = B(κ) + (1/m) Σ_s J(κ, κ_s) D_s t_s  (eq. variance)
        B = Fᵀ Z p − (W⁻¹β)²,  p_i = (â_i/(c_i m_i))² − (b_i²/n') (d_i·β)²
            (eqs. layer-variance and tilt-variance)
        J = Fᵀ Z F + n' [Θ − ΘPΘ]²  (entry by entry),  D_s = ω_s/(1 + χ_s)²  (eq. weight-response)

    F is `response_table`, Z⁻¹ `response_kernel`, â the readout and t = noise + r² + q; β = PQᵀâ,
    Q_is = tilt_i d_is, is zero without a tilt.

    kernel : Z; pushed : (T,) p; own : (T, S) F at the nodes of the point
    tilted : (R,) with (W⁻¹β)(κ) = V(κ) H·tilted, None without a tilt
    load : (S,) D t
    amplification : Σ ω t over Σ ω (noise + r² + B), that is 1/(1 − df₂/m)
    """

    point: FixedPoint
    blocks: Sequence[WoodburyFactors]
    kernel: Cholesky
    pushed: Array
    tilted: Array | None
    own: Array
    load: Array
    amplification: Array

    @property
    def factors(self) -> list[Array]:
        """V of each block at the nodes of the point."""
        return [block.v for block in self.blocks]

    def take(self, index: int) -> Response:
        """One problem of a stack."""
        blocks = [one_of(block, index) for block in self.blocks]
        point, kernel = self.point.take(index), self.kernel.take(index)
        return one_of(self, index, point=point, blocks=blocks, kernel=kernel)

    def _carried(self, table: Array, factors: Sequence[Array], load: Array) -> Array:
        """J load, the rows of J at the nodes of `table`."""
        through = product(table.mT, self.kernel.solve(product(self.own, load)))
        for block, v in zip(self.blocks, factors, strict=True):
            inner = block.v.mT @ (load[..., None] * block.v)
            size = block.copies * block.coordinates[..., None]
            through += size * diagonal(v @ block.k, inner)
        return through

    def _source(self, table: Array, factors: Sequence[Array]) -> Array:
        """B at the nodes of `table`."""
        source = product(table.mT, self.kernel.solve(self.pushed))
        if self.tilted is not None:
            source -= product(factors[0] @ self.blocks[0].h, self.tilted) ** 2
        return np.asarray(source)

    def solved(
        self, fixed: Array, counted: Array | float = 1.0, tolerance: float = 1e-11
    ) -> tuple[Response, Array]:
        """The response with its load, and q: q = B + (1/m) J (fixed + D q), D as of the point.

        Symmetrised with √D, by conjugate gradients. The squared loss has fixed = D(noise + r²).
        counted : weights of the nodes in the amplification
        tolerance : relative residual at which conjugate gradients stop
        """
        samples, half = self.point.samples[..., None], self.point.roots

        def apply(x: Array) -> Array:
            return np.asarray(x - half * self._carried(self.own, self.factors, half * x) / samples)

        source = self._source(self.own, self.factors)
        direct = source + self._carried(self.own, self.factors, fixed) / samples
        load = fixed + half * _conjugate_gradients(apply, half * direct, tolerance)
        loaded = replace(self, load=load)
        variance = loaded.variance_at(self.point.features)
        alone, total = ((counted * (fixed + half**2 * q)).sum(axis=-1) for q in (source, variance))
        amplification = np.where(alone > 0, total / np.maximum(alone, 1e-300), 1.0)
        return replace(loaded, amplification=amplification), variance

    def tables_at(self, features: NodeFeatures) -> tuple[Array, list[Array]]:
        """F, and V of each block, at the nodes of other features of the same neurons (or of the
        same features): they know no labels."""
        if features is self.point.features:
            return self.own, self.factors
        factors = self._factors_at(features)
        return response_table(self.blocks, features.extra, factors), factors

    def variance_at(
        self, features: NodeFeatures, tables: tuple[Array, list[Array]] | None = None
    ) -> Array:
        """q at the nodes of other features of the same neurons (or of the same features).

        tables : `tables_at` these, where they are known
        """
        table, factors = tables or self.tables_at(features)
        samples = self.point.samples[..., None]
        variance = self._source(table, factors) + self._carried(table, factors, self.load) / samples
        size = 1.0 + np.abs(variance).max(axis=-1, keepdims=True)
        if np.any(variance < -1e-8 * size):
            raise ConvergenceError(
                f"a variance of the theory came out negative ({float(variance.min()):.2e}): the "
                "resolution is not enough. Ask for a higher accuracy, or use a larger ridge."
            )
        return np.maximum(variance, 0.0)

    def _factors_at(self, features: NodeFeatures) -> list[Array]:
        """V of each block at the nodes of other features."""
        tables = [features.slope * features.bulk[:, None]]
        tables += [harmonic.table for harmonic in features.harmonics]
        pairs = zip(self.blocks, tables, strict=True)
        return [_factor_at(block.u, table, features.counts) for block, table in pairs]

    def chi_at(self, features: NodeFeatures) -> Array:
        """χ of eq. response at the nodes of other features of the same neurons, of one problem."""
        x = features.extra.T @ (features.counts * self.point.gain)
        for block, v in zip(self.blocks, self._factors_at(features), strict=True):
            x += block.copies * block.coordinates * diagonal(v, block.k)
        return np.asarray(x / self.point.samples)


def _factor_at(u: Array, table: Array, counts: Array) -> Array:
    """V of other nodes, table = U Vᵀ with the U of the same neurons, whose columns √c·U are
    orthogonal (`NodeFeatures.factors`); those of a stack may be empty."""
    size = np.maximum(np.einsum("i,ij,ij->j", counts, u, u), 1e-300)
    return np.asarray(table.T @ (counts[:, None] * u / size))


def errors_of(point: FixedPoint, like: Response | None = None) -> NodeErrors:
    """Training and test error at a fixed point (eq. three-parts).

    like : errors of other labels at the same fixed point; parts without labels are reused

        N = Σ_i c_i m_i ν_i ν_iᵀ,  f = N (W⁻¹ + N)⁻¹ ȳ,  r = ȳ − f  (eq. mean-part)
        L = Σ_s w_s noise_s + ȳᵀ W r                     the minimum of the objective
            (eq. objective)
        t = noise + r² + q,  q = B + (1/m) J D t         `Response`  (eq. variance)
        test = Σ_s ω_s t_s,  train = Σ_s ω_s t_s/(1 + χ_s)²  (eq. test-and-train)

    f is solved for in the types: f = Σ_i â_i ν_i, (diag(1/(c m)) + νWνᵀ − QPQᵀ) â = νWȳ, the last
    term with a tilt only (eq. tilt).
    """
    f, w = point.features, point.weights
    blocks = woodbury_factors(f, point.gain, w) if like is None else like.blocks
    readout = mean_readout(point, blocks, w, f.labels)
    prediction = product(f.mean.mT, readout)
    rest = f.labels - prediction
    objective = (w * (f.noise + f.labels * rest)).sum(axis=-1)
    share = point.roots**2
    before = f.noise + rest**2
    response, variance = response_of(point, blocks, readout, like).solved(
        share * before, f.weights / share
    )
    total = before + variance
    train = training_residuals(total, point.chi)
    return NodeErrors(
        prediction, variance, total, train, readout, np.asarray(objective),
        np.asarray((f.weights * total).sum(axis=-1)), np.asarray((f.weights * train).sum(axis=-1)),
        response, slopes=w * rest,
    )  # fmt: skip


def mean_readout(
    point: FixedPoint, blocks: Sequence[WoodburyFactors], weights: Array, labels: Array
) -> Array:
    """â with (diag(1/(c m)) + νWνᵀ − QPQᵀ) â = νWȳ, W = diag(weights) (12), (24)
    (eq. mean-part)."""
    return MeanPart(point, blocks, weights).readout(labels)


def response_of(
    point: FixedPoint, blocks: Sequence[WoodburyFactors], readout: Array,
    like: Response | None = None,
) -> Response:  # fmt: skip
    """Z, p and F at the fixed point; nothing loaded yet. like : of other labels there
    (eqs. weight-response, layer-variance, variance and tilt-variance)"""
    f, m = point.features, point.gain
    if like is None:
        kernel = Cholesky(response_kernel(f, blocks, m), "the response of the fixed point")
        own = response_table(blocks, f.extra, [block.v for block in blocks])
    else:
        kernel, own = like.kernel, like.own
    pushed, tilted = (readout / (f.counts * m)) ** 2, None
    if f.lift is not None:
        tilted = product(blocks[0].u.mT, f.lift * readout)
        swayed = product(blocks[0].u @ blocks[0].gh, tilted)
        pushed -= swayed**2 / blocks[0].coordinates[..., None]
    none, one = np.zeros_like(f.weights), np.ones(f.weights.shape[:-1])
    return Response(point, blocks, kernel, pushed, tilted, own, none, one)


def _conjugate_gradients(apply: Callable[[Array], Array], right: Array, tolerance: float) -> Array:
    """x with apply(x) = right, apply symmetric and positive: residual below tolerance·‖right‖.

    Each problem of a stack has steps of its own and stops on its own.
    """

    def dot(x: Array, y: Array) -> Array:
        return np.asarray((x * y).sum(axis=-1, keepdims=True))

    x, rest = np.zeros_like(right), right.copy()
    direction, square = rest.copy(), dot(rest, rest)
    enough = tolerance**2 * dot(right, right)
    for _ in range(10 * x.shape[-1] + 200):
        going = square > enough
        if not np.any(going):
            return x
        image = apply(direction)
        step = np.where(going, square / np.where(going, dot(direction, image), 1.0), 0.0)
        x += step * direction
        rest -= step * image
        previous, square = square, dot(rest, rest)
        direction = rest + np.where(going, square / np.where(going, previous, 1.0), 0.0) * direction
        if not np.all(np.isfinite(square)):
            break
    raise ConvergenceError(_TOO_CLOSE)
