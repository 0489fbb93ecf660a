"""One repetition of a problem: its draws and the products that all models share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from onegrad.data.arrays import Arrays, File
from onegrad.data.population import Batch
from onegrad.hermite import Array
from onegrad.network.gram import Grams
from onegrad.network.init import draw_readout, draw_weights
from onegrad.network.step import descent_direction, residual
from onegrad.problem import Problem, World
from onegrad.randomness import Streams

_BLOCK = 2048


class Inputs:
    """A batch together with its products X·Wᵀ, each computed once for all models."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._products: list[tuple[Array, Array]] = []

    def preactivation(self, weights: Array) -> Array:
        """XWᵀ (m × k); the caller must not change it."""
        for known, product in self._products:
            if known is weights:
                return product
        product = self.batch.x @ weights.T
        product.setflags(write=False)
        self._products.append((weights, product))
        return product


class Trial:
    """The draws of one repetition; everything is computed on first use and then shared.

    `degree` overrules the degree rule for the polynomial models.
    """

    def __init__(self, problem: Problem, streams: Streams, degree: int | None = None) -> None:
        self.problem = problem
        self.streams = streams
        self._degree = degree

    @property
    def degree(self) -> int:
        return self._degree if self._degree is not None else self.problem.degree

    @cached_property
    def world(self) -> World:
        return self.problem.world(self.streams)

    @cached_property
    def grams(self) -> Grams:
        """Products ŴŴᵀ that the exact risks of several models share."""
        return Grams()

    # --- samples ------------------------------------------------------------------------

    @cached_property
    def step_batch(self) -> Batch:
        return self._batch("step-data", 0, self.problem.step_samples)

    @cached_property
    def train(self) -> Inputs:
        start = self.problem.step_samples
        return Inputs(self._batch("train-data", start, self.problem.samples))

    def test_batches(self, count: int) -> Iterator[Batch]:
        """The test set in blocks; labels are E[y|x], their noise is added to the risk exactly."""
        if isinstance(self.problem.data, Arrays | File):
            rest = self._rows[self.problem.step_samples + self.problem.samples :]
            x, y = self.problem.data.load()
            for start in range(0, len(rest), _BLOCK):
                rows = rest[start : start + _BLOCK]
                yield Batch(x[rows], y[rows], np.zeros(len(rows), dtype=int))
            return
        population, teacher = self.world.population, self.world.teacher
        rng = self.streams.rng("test-data")
        for x, component in population.sample(count, rng, block=_BLOCK):
            yield Batch(x, teacher.mean(x, component), component)

    @property
    def label_noise_variance(self) -> float:
        """What `test_batches` left out of the labels."""
        return float(getattr(self.problem.labels, "noise", 0.0) ** 2)

    @cached_property
    def _rows(self) -> np.ndarray:
        """Rows of given data in this repetition's order: step, readout, test."""
        assert isinstance(self.problem.data, Arrays | File)
        return self.streams.rng("split").permutation(self.problem.data.rows)

    def _batch(self, purpose: str, start: int, count: int) -> Batch:
        data = self.problem.data
        if isinstance(data, Arrays | File):
            rows = self._rows[start : start + count]
            x, y = data.load()
            return Batch(x[rows], y[rows], np.zeros(count, dtype=int))
        rng = self.streams.rng(purpose)
        ((x, component),) = self.world.population.sample(count, rng, data.fixed_counts)
        noise = rng.standard_normal(count)
        return Batch(x, self.world.teacher.labels(x, component, noise), component)

    # --- the network --------------------------------------------------------------------

    @cached_property
    def weights(self) -> Array:
        """W₀ (k × n)."""
        return draw_weights(self.problem, self.streams)

    @cached_property
    def readout(self) -> Array:
        """a₀ (k)."""
        return draw_readout(self.problem, self.streams)

    @cached_property
    def _step_preactivation(self) -> Array:
        return self.step_batch.x @ self.weights.T

    @cached_property
    def step_error(self) -> Array:
        """The residual that drives the step: y − f₀, or y alone."""
        if self.problem.training.gradient == "labels-only":
            return self.step_batch.y
        return residual(
            self.problem.activation, self._step_preactivation, self.readout, self.step_batch.y
        )

    @cached_property
    def updated_weights(self) -> Array:
        """Ŵ = W₀ + η·G (k × n); W₀ itself if η = 0."""
        if self.problem.rate == 0:
            return self.weights
        direction = descent_direction(
            self.problem.activation,
            self._step_preactivation,
            self.readout,
            self.step_batch.x,
            self.step_error,
        )
        direction *= self.problem.rate
        direction += self.weights
        return direction
