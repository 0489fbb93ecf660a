"""The conditional Gaussian model: Gaussian features, given the component and a few projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onegrad.compute.backend import Array, host, like, namespace, pieces
from onegrad.compute.linalg import leading_direction, outlying_directions, span_basis
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.polynomials import chebyshev_basis, chebyshev_nodes, chebyshev_transform
from onegrad.problem import Problem
from onegrad.simulate.models.base import Fitted, Mark, Model, fit_features
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.component import Neurons
from onegrad.simulate.risk.exact import Predictor

_TABLE = 4096  # shifts in the table of a smoothed activation; linear in between, error < 1e-5
_AT_ONCE = 64  # neurons whose tables stay in the cache
_SCALES = 7  # Chebyshev nodes in the scale b, which varies little between neurons


@dataclass(frozen=True)
class ConditionalFeatures:
    """φ̂(x; c, κ) = ν(κ) + Ψ(κ)x_⊥ + Φ(κ)^{1/2}g  [demir2025, Thm. 1] (eq. conditional-gaussian).

    κ = Vᵀx are the projections on the spikes and means of the data and on the direction of the
    gradient (after several steps, or those of another optimiser, on the singular directions of
    Ŵ − W₀ above the edge of its bulk); x_⊥ is the rest of x. Neuron i has v_i = Vᵀŵ_i and
    b_i = |ŵ_{i,⊥}|, and with s = v_i·κ: ν_i = E σ(s+b_iZ), Ψ_i = E σ'(s+b_iZ)·ŵ_{i,⊥}ᵀ and
    Φ = diag(Var σ(s+b_iZ) − b_i²E[σ']²).
    The component enters through κ: given κ, x_⊥ is the same for all components. Where the bulk
    covariance Λ is not the identity, all of this is about Λ^{−½}x and ŴΛ^{½}: the scale b_i of a
    neuron is |Λ^{½}ŵ_i| off V, and `reading` = Λ^{−½}V takes κ from the inputs as they are.
    """

    activation: Activation
    weights: Array
    basis: Array
    reading: Array
    along: Array
    scales: Array

    @classmethod
    def of(cls, trial: Trial) -> ConditionalFeatures:
        weights = trial.updated_weights
        bulk, population = trial.problem.data.bulk_eigenvalues, trial.instance.population.whitened
        seen = trial.seen_weights(weights)
        directions = [*population.spikes, population.means.T]
        if trial.problem.trained:
            change = seen - trial.instance.population.seen(trial.weights)
            if trial.problem.one_step and trial.problem.outputs == 1:
                directions.append(host(leading_direction(change))[:, None])
            else:
                directions.append(outlying_directions(host(change)))
        columns = np.hstack(directions)
        tolerance = 1e-10 * max(1.0, float(np.linalg.norm(columns, 2)))
        basis = trial.draw.backend.move(span_basis(columns, tolerance))
        along = seen @ basis
        xp = namespace(weights)
        scales = xp.sqrt(xp.vecdot(seen, seen) - xp.vecdot(along, along))
        reading = basis if bulk is None else basis / like(np.sqrt(bulk)[:, None], basis)
        return cls(trial.problem.activation, weights, basis, reading, along, scales)

    @cached_property
    def smooth(self) -> SmoothTable:
        return SmoothTable(self.activation, self.scales)

    def moments(self, inputs: Inputs) -> tuple[Array, Array]:
        shift = (inputs.batch.x @ self.reading) @ self.along.T
        rest = inputs.preactivation(self.weights) - shift
        value, slope, variance = self.smooth(shift)
        rest *= slope
        rest += value
        slope *= self.scales
        slope *= slope
        variance -= slope
        # differences below rounding are zero: a linear activation has no remainder
        eps = float(namespace(variance).finfo(variance.dtype).eps)
        variance[variance < 32 * eps * slope] = 0
        return rest, variance

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        """Its noise has exactly the variance that its mean lacks of σ's."""
        _check_slope(self.activation, float(np.median(host(self.scales))))
        return Predictor(Neurons(self.activation, self.weights, a, basis=host(self.basis)))


def _check_slope(activation: Activation, scale: float) -> None:
    """The conditional model takes E σ' from the derivative as given; the series takes E σZ."""
    given = scale * float(activation.smoothed(0.0, scale).slope)
    true = float(activation.projections(1, scale)[1])
    if abs(given - true) > 1e-6 * (1 + abs(true)):
        raise AssumptionError(
            f"the derivative of {activation.name} is not that of its values: E σ'(bZ)·b is "
            f"{given:.4g}, E σ(bZ)Z is {true:.4g}. A function with jumps has no conditional "
            "Gaussian model of exact risk; use a sampled test set"
        )


def fit_conditional_gaussian(trial: Trial) -> Fitted:
    """The equivalent model of the trained network, on the network's own inputs and weights."""
    if not trial.problem.data.known:
        raise AssumptionError(
            "the conditional Gaussian model needs a known mixture; images and arrays have none"
        )
    return fit_features(trial, ConditionalFeatures.of(trial), noise="conditional-gaussian")


class SmoothTable:
    """Activation.smoothed(shift, scales) for m × k shifts and k scales, at elementwise cost.

    Closed forms directly. Otherwise from tables over shift and scale: Chebyshev nodes in the scale,
    whose values are combined for some neurons at a time, and a fine grid in the shift.
    """

    def __init__(self, activation: Activation, scales: Array) -> None:
        self.activation = activation
        self.scales = scales
        self.low = self.high = 0.0
        self._mix: Array | None = None  # (k, nodes)
        self._curves: list[Array] = []  # (nodes, shifts) of value, slope and variance

    def __call__(self, shift: Array) -> tuple[Array, Array, Array]:
        xp = namespace(shift)
        results = xp.empty_like(shift), xp.empty_like(shift), xp.empty_like(shift)
        if self.activation.moments is not None:
            for rows in pieces(shift):
                parts = self.activation.smoothed(shift[rows], self.scales)
                for result, part in zip(results, parts, strict=True):
                    result[rows] = part
            return results
        low, high = float(xp.min(shift)), float(xp.max(shift))
        if self._mix is None or low < self.low or high > self.high:
            self._tabulate(min(low, self.low), max(high, self.high))
        neurons = shift.shape[1]
        step = _AT_ONCE if isinstance(shift, np.ndarray) else max(1, neurons)
        for start in range(0, neurons, step):
            self._fill(shift, slice(start, min(start + step, neurons)), results)
        return results

    def _fill(self, shift: Array, some: slice, results: tuple[Array, Array, Array]) -> None:
        """The columns of `some` neurons."""
        assert self._mix is not None
        xp, mix = namespace(shift), self._mix[some, :]
        position = (shift[:, some] - self.low) * ((_TABLE - 1) / (self.high - self.low))
        index = xp.clip(xp.astype(position, xp.int64), 0, _TABLE - 2)
        position -= xp.astype(index, position.dtype)
        index += xp.arange(mix.shape[0], dtype=index.dtype, device=index.device) * _TABLE
        for curve, result in zip(self._curves, results, strict=True):
            table = xp.reshape(mix @ curve, (-1,))
            left, right = _taken(table, index), _taken(table[1:], index)
            right -= left
            right *= position
            right += left
            result[:, some] = right

    def _tabulate(self, low: float, high: float) -> None:
        from scipy.interpolate import CubicSpline  # slow to import, and needed here alone

        margin = 0.25 * (high - low) + 1e-3
        self.low, self.high = low - margin, high + margin
        scales = host(self.scales)
        bottom, top = float(scales.min()), float(scales.max())
        middle, half = (bottom + top) / 2, max((top - bottom) / 2, 1e-9 * top)
        nodes = middle + half * chebyshev_nodes(_SCALES)
        mix = chebyshev_basis(_SCALES, (scales - middle) / half) @ chebyshev_transform(_SCALES)
        # smooth functions: 24 points per scale b and a cubic spline between them are exact to 1e-7
        count = int(min(_TABLE, max(64, 24 * (self.high - self.low) / float(nodes.min()))))
        coarse = np.linspace(self.low, self.high, count)
        fine = np.linspace(self.low, self.high, _TABLE)
        tables = self.activation.smoothed(coarse, nodes[:, None])
        curves = [CubicSpline(coarse, table, axis=1)(fine) for table in tables]
        self._mix = like(mix, self.scales)
        self._curves = [like(curve, self.scales) for curve in curves]


def _taken(curves: Array, index: np.ndarray) -> Array:
    """curves[index] for a matrix of positions."""
    if isinstance(curves, np.ndarray):
        return curves.take(index, mode="clip")  # they are in range, and this is twice as fast
    xp = namespace(curves)
    flat: Array = xp.take(curves, xp.reshape(index, (-1,)))
    return xp.reshape(flat, index.shape)


def _memory(problem: Problem) -> int:
    return max(problem.width * problem.dim, 6 * problem.samples * problem.width)


MODEL = Model(
    "conditional-gaussian",
    "Gaussian features given the component and the projections on a few directions",
    Mark("^", size=8.5),
    fit=fit_conditional_gaussian,
    cites=("demir2025",),
    version=2,
    initial=True,
    noise="conditional-gaussian",
    memory=_memory,
)
