"""One repetition of a problem: its draws and the products that all models share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from onegrad.compute.backend import (
    NUMPY,
    Array,
    Backend,
    multiplied,
    namespace,
    pieces,
    product,
    read_only,
)  # fmt: skip
from onegrad.compute.randomness import Streams, gaussian_rows
from onegrad.compute.threads import several_threads, side_by_side
from onegrad.data.instance import Instance
from onegrad.data.label_base import flipped
from onegrad.data.population import Batch
from onegrad.problem import Problem
from onegrad.simulate.network.gram import Grams
from onegrad.simulate.network.step import Steps, residual, slopes_and_error
from onegrad.spec.tables import Training

_BLOCK = 2048
KEEP = 1 << 28  # bytes of noise that is kept for the next layer or drawn ahead; more is drawn again


@dataclass(frozen=True)
class Reuse:
    """What will be asked for more than once; all the rest is overwritten or freed.

    Nothing becomes wrong if it is asked for all the same: it is drawn or computed again.

    layers : other trained layers (activations, rates) on the same draw
    products : other models on the products with the trained weights
    initial : the initial weights and the samples of the step, once the step is made
    features : the features of a fitted model, for other ridges
    controls : control variates are computed beside the models
    noise : streams of m × k numbers that models draw on their own
    """

    layers: bool = True
    products: bool = True
    initial: bool = True
    features: bool = True
    controls: bool = False
    noise: tuple[str, ...] = ()


def draw_weights(problem: Problem, streams: Streams, out: Array | None = None) -> Array:
    """W (k × n) with entries N(0, weight_variance), or rows of norm √(n·weight_variance).

    A wider network extends a narrower one. In `out` if given, rounded where that is of single
    precision.
    """
    rng = streams.rng("weights")
    weights = np.empty((problem.width, problem.dim)) if out is None else out
    for rows in pieces(weights):
        with gaussian_rows(rng, weights[rows]) as drawn:
            if problem.network.rows == "unit":
                drawn *= np.sqrt(problem.dim) / np.linalg.norm(drawn, axis=1, keepdims=True)
            drawn *= np.sqrt(problem.weight_variance)
    return weights


def draw_readout(problem: Problem, streams: Streams) -> Array:
    """Initial a (k, or k × K): Gaussian with the convention's scale, every entry equal to it, or
    of that size with random signs."""
    shape = problem.width if problem.outputs == 1 else (problem.width, problem.outputs)
    if problem.network.readout == "constant":
        return np.full(shape, problem.readout_scale)
    if problem.network.readout == "signs":
        return streams.rng("readout").choice([-1.0, 1.0], shape) * problem.readout_scale
    return streams.rng("readout").standard_normal(shape) * problem.readout_scale


class Inputs:
    """A batch together with its products X·Wᵀ, each computed once for all models.

    The last two products are kept: those with the initial and with the trained weights. Unless
    `shared`, no product is asked for twice.
    """

    def __init__(self, batch: Batch, shared: bool = True) -> None:
        self.batch = batch
        self.shared = shared
        self._products: list[tuple[Array, Array]] = []

    def preactivation(self, weights: Array) -> Array:
        """XWᵀ (m × k); the caller must not change it."""
        for i, (known, made) in enumerate(self._products):
            if known is weights:
                self._products.append(self._products.pop(i))
                return made
        del self._products[:-1]
        made = read_only(product(self.batch.x, weights.T))
        self._products.append((weights, made))
        return made

    def keep_only(self, weights: Array) -> None:
        """Free the products with all other weights."""
        self._products = [pair for pair in self._products if pair[0] is weights]

    def workspace(self, weights: Array) -> tuple[Array, Array]:
        """XWᵀ to read, and an array of its shape to write to: the same one unless shared."""
        if self.shared:
            known = self.preactivation(weights)
            return known, namespace(known).empty_like(known)
        made = product(self.batch.x, weights.T)
        return made, made


class Draw:
    """What is random in one repetition and does not depend on activation, step or ridge.

    Computed on first use and then shared by all trials of the draw. Memory in bytes:
    8·(m̃n + mn + kn + m̃k) once everything is used, less what need not be reused.
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        reuse: Reuse | None = None,
        backend: Backend = NUMPY,
    ) -> None:
        self.problem = problem
        self.streams = streams
        self.reuse = reuse or Reuse()
        self.backend = backend
        self._noise: dict[str, list[Array]] = {}

    @cached_property
    def instance(self) -> Instance:
        """Directions and teacher, where the law of the data is known."""
        return self.problem.instance(self.streams)

    @cached_property
    def step_batch(self) -> Batch:
        """The samples of the gradient step (m̃)."""
        return self._without_linear(self._raw_step_batch())

    def _raw_step_batch(self) -> Batch:
        return self._batch(self.streams.rng("step-data"), 0, self.problem.step_samples)

    @cached_property
    def linear_part(self) -> tuple[float, Array] | None:
        """α = mean of y and β = mean of (y − α)·x over the step's sample, where the problem asks to
        learn y − α − βᵀx [damian2022, algorithm 1]."""
        if self.problem.labels.preprocess == "none":
            return None
        batch = self._raw_step_batch()
        mean = float(namespace(batch.y).mean(batch.y))
        return mean, batch.x.T @ (batch.y - mean) / batch.y.shape[0]

    def _without_linear(self, batch: Batch) -> Batch:
        if self.linear_part is None:
            return batch
        mean, slope = self.linear_part
        return replace(batch, y=batch.y - mean - batch.x @ slope)

    @cached_property
    def train(self) -> Inputs:
        """The samples of the readout (m)."""
        if self.problem.training.reuse:
            return Inputs(self.step_batch, self.reuse.products)
        start, rng = self.problem.step_rows, self.streams.rng("train-data")
        tasks: list[Callable[[], Any]] = [lambda: self._batch(rng, start, self.problem.samples)]
        if self.reuse.noise and several_threads():
            tasks.append(self._draw_ahead)
        batch = self._without_linear(side_by_side(*tasks)[0])
        return Inputs(batch, self.reuse.products)

    def later_batches(self, training: Training) -> Iterator[Batch]:
        """The samples of the second step, of the third, …: fresh, or the first step's again."""
        count = self.problem.step_samples
        if training.batch == "same":
            yield from [self.step_batch] * (training.steps - 1)
            return
        rng = self.streams.rng("later-step-data")
        for number in range(1, training.steps):
            yield self._without_linear(self._batch(rng, number * count, count))

    def test_batches(self, count: int) -> Iterator[Batch]:
        """The test set in blocks; labels are E[y|x], their noise is added to the risk exactly.

        Finite data have no more than the step and the readout leave: all of it where the data
        are used as they are, `count` images at most.
        """
        rng = self.streams.rng("test-data")
        if not self.problem.data.known:
            rest = self.rows[self.problem.step_rows + self.problem.samples :]
            rest = rest if self.problem.data.whole_test else rest[:count]
            for start in range(0, len(rest), _BLOCK):
                batch = self.problem.row_batch(rest[start : start + _BLOCK], rng)
                yield self._moved(replace(batch, y=self.problem.label_kept * batch.y))
            return
        population, teacher = self.instance.population, self.instance.teacher
        for x, component in population.sample(count, rng, block=_BLOCK):
            yield self._moved(Batch(x, teacher.mean(x, component), component))

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of finite data in this repetition's order: step, readout, test."""
        return self.problem.data.split(self.streams.rng("split"))

    def _batch(self, rng: np.random.Generator, start: int, count: int) -> Batch:
        problem = self.problem
        if problem.data.known:
            room = self._room(count, problem.dim)
            return self._moved(self.instance.sample(count, rng, out=room))
        batch = problem.row_batch(self.rows[start : start + count], rng)
        if problem.label_noise:
            noise = problem.label_noise * rng.standard_normal(batch.y.shape)
            batch = replace(batch, y=flipped(batch.y, problem.label_flip, rng) + noise)
        elif problem.label_flip:
            batch = replace(batch, y=flipped(batch.y, problem.label_flip, rng))
        return self._moved(batch)

    def _moved(self, batch: Batch) -> Batch:
        return Batch(self.backend.move(batch.x), self.backend.move(batch.y), batch.component)

    def _room(self, *shape: int) -> Array | None:
        """For random numbers that stay where they are drawn; others are copied to the device."""
        numpy = self.backend.xp is np
        return np.empty(shape, self.backend.dtype) if numpy else None

    @cached_property
    def weights(self) -> Array:
        """W₀ (k × n)."""
        room = self._room(self.problem.width, self.problem.dim)
        weights: Array = self.backend.move(draw_weights(self.problem, self.streams, room))
        return weights

    @cached_property
    def readout(self) -> Array:
        """a₀ (k)."""
        readout: Array = self.backend.move(draw_readout(self.problem, self.streams))
        return readout

    @cached_property
    def step_preactivation(self) -> Array:
        """X̃W₀ᵀ (m̃ × k)."""
        batch, weights = side_by_side(lambda: self.step_batch, lambda: self.weights)
        found: Array = product(batch.x, weights.T)
        return found

    def forget(self, *names: str) -> None:
        """Free some of the draws; they are made again, the same, if asked for."""
        for name in names:
            self.__dict__.pop(name, None)

    def noise(self, purpose: str, features: Array) -> Iterator[tuple[Any, Array]]:
        """Standard Gaussian rows of the model's own stream, in pieces; not to be changed.

        As many as the features (m × k) have. Kept for the next layer where there is one and they
        are not too large.
        """
        keep = self.reuse.layers and 8 * math.prod(features.shape) <= KEEP
        if purpose in self._noise:
            known = self._noise[purpose] if keep else self._noise.pop(purpose)
            yield from zip(pieces(features), known, strict=True)
            return
        rng = self.streams.rng(purpose)
        kept: list[Array] = []
        room = self._room(*features.shape) if keep else None
        for rows in pieces(features):
            if room is None:
                piece = self.backend.move(rng.standard_normal(features[rows].shape))
            else:
                piece = room[rows]
                with gaussian_rows(rng, piece):
                    pass
            if keep:
                kept.append(piece)
            yield rows, piece
        if keep:
            self._noise[purpose] = kept

    def _draw_ahead(self) -> None:
        """The first of the models' own streams, which is kept until it is asked for."""
        shape = self.problem.samples, self.problem.width
        room = self._room(*shape) if 8 * math.prod(shape) <= KEEP else None
        if room is None:
            return
        purpose = self.reuse.noise[0]
        rng = self.streams.rng(purpose)
        self._noise[purpose] = [room[rows] for rows in pieces(room)]
        for piece in self._noise[purpose]:
            with gaussian_rows(rng, piece):
                pass

    def add_noise(self, purpose: str, features: Array, variance: Array | float) -> None:
        """`noise` of that variance, one number or m × k, is added to features, in place."""
        xp = namespace(features)
        room: Array | None = None
        for rows, piece in self.noise(purpose, features):
            if isinstance(variance, float):
                deviation: Any = math.sqrt(variance)
            else:
                deviation = xp.sqrt(variance[rows])
            if room is None:  # written again and again: it stays in the cache
                room = xp.empty_like(piece)
            part = features[rows]
            part += multiplied(piece, deviation, room[: part.shape[0], ...])


def draw_key(problem: Problem) -> str:
    """Problems with the same key have the same draw: they differ in activation, step or ridge."""
    parts = (
        problem.data, problem.labels, problem.spread, problem.samples, problem.step_samples,
        problem.width, problem.weight_variance, problem.network.readout, problem.readout_scale,
        problem.rows_left, problem.network.rows, problem.training.reuse,
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
        self._error: Array | None = None
        self._seen: list[tuple[Array, Array]] = []

    @property
    def degree(self) -> int:
        """Degree of the polynomial models: as set in the spec, or by the rule."""
        return self._degree if self._degree is not None else self.problem.degree

    @property
    def instance(self) -> Instance:
        """The draw's population and teacher."""
        return self.draw.instance

    @property
    def step_batch(self) -> Batch:
        """The samples of the gradient step (m̃)."""
        return self.draw.step_batch

    @property
    def train(self) -> Inputs:
        """The samples of the readout (m)."""
        return self.draw.train

    def test_batches(self, count: int) -> Iterator[Batch]:
        """The draw's test set in blocks, labels without their noise."""
        return self.draw.test_batches(count)

    @property
    def weights(self) -> Array:
        """W₀ (k × n)."""
        return self.draw.weights

    @property
    def readout(self) -> Array:
        """a₀ (k)."""
        return self.draw.readout

    @property
    def label_noise_variance(self) -> float:
        """What `test_batches` left out of the labels."""
        return self.problem.label_noise_variance

    @cached_property
    def grams(self) -> Grams:
        """Products of weight matrices with themselves, shared by the exact risks of all models."""
        return Grams()

    def seen_weights(self, weights: Array) -> Array:
        """ŴΛ^{½} (k × n): those weights for whitened inputs (`Population.seen`), made once; the
        weights themselves where the bulk of the covariance is the identity."""
        if self.problem.data.bulk_eigenvalues is None:
            return weights
        for known, seen in self._seen:
            if known is weights:
                return seen
        self._seen = [*self._seen[-1:], (weights, self.instance.population.seen(weights))]
        return self._seen[-1][1]

    @property
    def step_error(self) -> Array:
        """The residual that drives the step: y − f₀, or y alone."""
        if self._error is None:
            if self.problem.training.gradient == "labels-only":
                self._error = self.step_batch.y
            else:
                y, z = self.step_batch.y, self.draw.step_preactivation
                self._error = residual(self.problem.activation, z, self.readout, y)
        return self._error

    @cached_property
    def updated_weights(self) -> Array:
        """Ŵ after all steps (k × n): W₀ + η·G after one of gradient descent; W₀ if nothing moves.

        Cost of a step: two products of 2km̃n operations, the first one of the first step shared by
        all trials of the draw, and the optimiser's own.
        """
        problem, draw = self.problem, self.draw
        if not problem.trained:
            return self.weights
        steps = Steps(problem)
        # Both first, so that they lie side by side in memory
        z, batch = draw.step_preactivation, draw.step_batch
        if draw.reuse.layers:
            slopes = namespace(z).empty_like(z)
        else:
            slopes = z
            draw.forget("step_preactivation")
        self._error = slopes_and_error(
            problem.activation, z, self.readout, batch.y, steps.next(batch),
            problem.training.gradient == "labels-only",
            out=slopes,
        )  # fmt: skip
        change = steps.change(product(slopes.T, batch.x))
        del slopes, z
        if draw.reuse.layers or draw.reuse.initial:
            change += self.weights
            weights = change
        else:  # W₀ is not needed any more: Ŵ takes its place
            weights = self.weights
            weights += change
            draw.forget("weights")
        del change
        for batch in draw.later_batches(problem.training):
            steps.move(weights, self.readout, batch)
        if not (draw.reuse.layers or draw.reuse.initial):
            draw.forget("step_batch")
        return weights
