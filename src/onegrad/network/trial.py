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
    """A batch together with its products X·Wᵀ, each computed once for all models.

    The last two products are kept: those with the initial and with the trained weights.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._products: list[tuple[Array, Array]] = []

    def preactivation(self, weights: Array) -> Array:
        """XWᵀ (m × k); the caller must not change it."""
        for i, (known, product) in enumerate(self._products):
            if known is weights:
                self._products.append(self._products.pop(i))
                return product
        product = self.batch.x @ weights.T
        product.setflags(write=False)
        self._products = [*self._products[-1:], (weights, product)]
        return product


class Draw:
    """What is random in one repetition and does not depend on activation, step or ridge.

    Computed on first use and then shared by all trials of the draw. Memory in bytes:
    8·(m̃n + mn + kn + m̃k) once everything is used.
    """

    def __init__(self, problem: Problem, streams: Streams) -> None:
        self.problem = problem
        self.streams = streams

    @cached_property
    def world(self) -> World:
        return self.problem.world(self.streams)

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

    @cached_property
    def weights(self) -> Array:
        """W₀ (k × n)."""
        return draw_weights(self.problem, self.streams)

    @cached_property
    def readout(self) -> Array:
        """a₀ (k)."""
        return draw_readout(self.problem, self.streams)

    @cached_property
    def step_preactivation(self) -> Array:
        """X̃W₀ᵀ (m̃ × k)."""
        return self.step_batch.x @ self.weights.T


def draw_key(problem: Problem) -> str:
    """Problems with the same key have the same draw: they differ in activation, step or ridge."""
    parts = (
        problem.data, problem.labels, problem.spread, problem.samples, problem.step_samples,
        problem.width, problem.weight_variance, problem.network.readout, problem.readout_scale,
    )  # fmt: skip
    return repr(parts)


class Trial:
    """A problem on one draw: the trained first layer and what the models need of it.

    degree : overrules the degree rule for the polynomial models
    draw : shared between trials that differ in activation, step or ridge only
    many_ridges : more ridges than the problem's own will be asked for (`Fitted.at_ridge`)
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        degree: int | None = None,
        draw: Draw | None = None,
        many_ridges: bool = False,
    ) -> None:
        self.problem = problem
        self.streams = streams
        self.draw = draw or Draw(problem, streams)
        self.many_ridges = many_ridges
        self._degree = degree

    @property
    def degree(self) -> int:
        return self._degree if self._degree is not None else self.problem.degree

    @property
    def world(self) -> World:
        return self.draw.world

    @property
    def step_batch(self) -> Batch:
        return self.draw.step_batch

    @property
    def train(self) -> Inputs:
        return self.draw.train

    def test_batches(self, count: int) -> Iterator[Batch]:
        return self.draw.test_batches(count)

    @property
    def weights(self) -> Array:
        return self.draw.weights

    @property
    def readout(self) -> Array:
        return self.draw.readout

    @property
    def label_noise_variance(self) -> float:
        """What `test_batches` left out of the labels."""
        return float(getattr(self.problem.labels, "noise", 0.0) ** 2)

    @cached_property
    def grams(self) -> Grams:
        """Products of weight matrices with themselves, shared by the exact risks of all models."""
        return Grams()

    @cached_property
    def step_error(self) -> Array:
        """The residual that drives the step: y − f₀, or y alone."""
        if self.problem.training.gradient == "labels-only":
            return self.step_batch.y
        return residual(
            self.problem.activation, self.draw.step_preactivation, self.readout, self.step_batch.y
        )

    @cached_property
    def updated_weights(self) -> Array:
        """Ŵ = W₀ + η·G (k × n); W₀ itself if η = 0."""
        if self.problem.rate == 0:
            return self.weights
        direction = descent_direction(
            self.problem.activation,
            self.draw.step_preactivation,
            self.readout,
            self.step_batch.x,
            self.step_error,
        )
        direction *= self.problem.rate
        direction += self.weights
        return direction
