"""The first layer: random weights, and one gradient step in a metric that whitens the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.errors import ConvergenceError
from onegrad.gaussian.activation import Activation
from onegrad.tabular.estimators.rows import Block, Rows

_BIAS = 0.5  # standard deviation of the biases, in units of a preactivation's
_UNDERFLOW = 1e-300  # smaller squares have lost digits
_DENSE = 4096  # inputs up to which the covariance is a matrix; beyond, this many rows replace it


@dataclass(frozen=True)
class FirstLayer:
    """x ↦ σ(Ŵ(x − mean) + bias)."""

    activation: Activation
    mean: Array
    weights: Array
    bias: Array

    def features(self, x: Array) -> Array:
        """The features of some rows (double precision): one product of 2mnk operations."""
        preactivation = (x - self.mean) @ self.weights.T
        preactivation += self.bias
        return self.activation.into(preactivation, out=preactivation)


def _vary(x: Array, mean: Array) -> bool:
    """Whether rows differ by more than rounding."""
    return bool((np.abs(x - mean) > 1e-8 * np.abs(x)).any())


@dataclass(frozen=True)
class Covariance:
    """C = V·diag(values)·Vᵀ of the inputs, about their mean; V may have fewer columns than rows."""

    mean: Array
    vectors: Array
    values: Array
    trace: float

    @classmethod
    def of(cls, rows: Rows) -> Covariance:
        """Cost 2mn² and n³, memory n²; beyond 4096 inputs, a sample of 4096 rows serves."""
        total = rows.weight[rows.present].sum()
        mean = sum((b.weight @ b.x for b in rows.blocks()), np.zeros(rows.dim)) / total
        if rows.dim > _DENSE:
            return cls._sampled(rows.blocks(rows.numbered(0, _DENSE)), mean)
        matrix = np.zeros((rows.dim, rows.dim))
        with np.errstate(over="ignore", invalid="ignore"):
            for block in rows.blocks():
                scaled = (block.x - mean) * np.sqrt(block.weight)[:, None]
                matrix += scaled.T @ scaled
        matrix /= total
        if not np.isfinite(matrix.trace()):
            raise ConvergenceError(
                "the squares of the inputs overflowed. Scale them (StandardScaler)"
            )
        if matrix.trace() < _UNDERFLOW and any(_vary(block.x, mean) for block in rows.blocks()):
            raise ConvergenceError(
                "the squares of the inputs are too small to be numbers. Scale them (StandardScaler)"
            )
        values, vectors = eigh(matrix)
        return cls(mean, vectors, np.maximum(values, 0.0), float(np.trace(matrix)))

    @classmethod
    def _sampled(cls, blocks: Iterable[Block], mean: Array) -> Covariance:
        parts = [((b.x - mean) * np.sqrt(b.weight)[:, None], b.weight.sum()) for b in blocks]
        sample = np.concatenate([x for x, _ in parts]) / math.sqrt(sum(w for _, w in parts))
        _, scales, vectors = np.linalg.svd(sample, full_matrices=False)
        return cls(mean, vectors.T, scales**2, float((scales**2).sum()))

    def whiten(self, directions: Array, damping: float) -> Array:
        """directions · (C + δI)⁻¹ up to a factor, δ = damping · tr C/n; inf leaves them."""
        floor = damping * self.trace / len(self.mean)
        if math.isinf(floor) or self.trace == 0:
            return directions
        shrink = self.values / (self.values + floor)
        return directions - (directions @ self.vectors) * shrink @ self.vectors.T

    def unit(self, directions: Array) -> Array:
        """Scaled so that the projections of the data on these directions have mean square one."""
        squares = ((directions @ self.vectors) ** 2 @ self.values).mean()
        return directions / math.sqrt(squares) if squares > 0 else np.zeros_like(directions)


@dataclass(frozen=True)
class Step:
    """What the first layer is made of: the initial weights W and the direction G of the step.

    spread : standard deviation of each input
    size : what each row of G was multiplied by, one over the length of the two halves' gradients
    """

    activation: Activation
    mean: Array
    initial: Array
    direction: Array
    bias: Array
    spread: Array
    size: Array

    def at(self, rate: float) -> FirstLayer:
        """Ŵ = (W + rate·G)/√(1 + rate²): the preactivations keep their mean square.

        Both W and G make preactivations of mean square one, so `rate` is how much the step moves
        them in units of what they were.
        """
        weights = (self.initial + rate * self.direction) / math.sqrt(1 + rate**2)
        return FirstLayer(self.activation, self.mean, weights, self.bias)


def prepare_step(
    rows: Rows,
    scale: Array,
    activation: Activation,
    width: int,
    damping: float,
    step_rows: np.ndarray,
    streams: Streams,
) -> Step:
    """Draw the weights and compute the whitened gradient on the rows of the step (a mask).

    The gradient of the squared error of all outputs is G = (EAᵀ ⊙ σ'(XWᵀ))ᵀX with A ~ N(0, I):
    each neuron learns from a random combination of the outputs, taken in units of `scale`. For
    the first half of the neurons E is the centred labels, for the others what a linear fit leaves
    of them: without a linear part in E, the curvature of the labels shows. Then
    G → G(C + δI)⁻¹. Cost: two products of 2mnk operations over the rows of the step, after the
    covariance. Memory: n² + kn numbers and a block.
    """
    covariance = Covariance.of(rows)
    draw = streams.rng("weights")
    weights = draw.standard_normal((width, rows.dim))
    weights /= math.sqrt(covariance.trace) if covariance.trace > 0 else 1.0
    bias = _BIAS * draw.standard_normal(width)
    direction, size = np.zeros_like(weights), np.zeros(width)
    if step_rows.any():
        readout = streams.rng("readout").standard_normal((width, len(scale)))
        halves = slice((width + 1) // 2), slice((width + 1) // 2, width)
        centre, linear = _linear_fit(rows, step_rows, covariance)
        for block in rows.blocks(step_rows):
            x = block.x - covariance.mean
            error = block.y - centre
            for half, left in zip(halves, (error, error - x @ linear), strict=True):
                slopes = activation.derivative(x @ weights[half].T + bias[half])
                pull = slopes * ((left * block.weight[:, None] / scale) @ readout[half].T)
                direction[half] += pull.T @ x
        for half in halves:
            found = covariance.whiten(direction[half], damping)
            direction[half] = covariance.unit(found)
            size[half] = np.linalg.norm(direction[half]) / (np.linalg.norm(found) or 1.0)
    spread = np.sqrt(covariance.vectors**2 @ covariance.values)
    return Step(activation, covariance.mean, weights, direction, bias, spread, size)


def _linear_fit(rows: Rows, chosen: np.ndarray, covariance: Covariance) -> tuple[Array, Array]:
    """Mean of the targets on some rows, and the slopes (n × outputs) of a ridge regression there.

    Its ridge is tr C/m: nothing beside the data where there are many rows for each input, and
    enough where there are few.
    """
    present = chosen & (rows.weight > 0)
    total = rows.weight[present].sum()
    sums = sum(block.weight @ block.y for block in rows.blocks(chosen))
    centre = np.asarray(sums / total)
    products = np.zeros((rows.dim, len(centre)))
    for block in rows.blocks(chosen):
        products += (block.x - covariance.mean).T @ ((block.y - centre) * block.weight[:, None])
    if covariance.trace == 0:
        return centre, products
    per_input = len(np.unique(rows.copies[present])) / rows.dim
    floor = covariance.trace / rows.dim / per_input
    return centre, covariance.whiten(products.T, 1 / per_input).T / (floor * total)
