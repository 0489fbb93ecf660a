"""Ridge regression with weights on the nodes, on one first layer: what a loss is iterated over.

Two engines have this form: neurons as types (`TypeStage`), and the actual matrix of a layer
(layers/losses.py). Losses (reweighted.py) are written once, on top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.layers.features import NodeFeatures
from onegrad.theory.readout.errors import Response, errors_of, mean_readout, response_of
from onegrad.theory.readout.fixed_point import FixedPoint, first_guess, solve_fixed_point
from onegrad.theory.readout.moments import LossMoments
from onegrad.theory.readout.woodbury import product, woodbury_factors

# Smallest curvature of a node in the system of the mean part, over the largest
_FLOOR = 0.01
_SOFTEST = 1e8  # softness c of a node without curvature
_SHARE = 1e-3  # tolerance of the linear system for q, in units of that of the fixed point

Inner = TypeVar("Inner")


@dataclass(frozen=True)
class State(Generic[Inner]):
    """f, q and χ of every node, and what the stage knows beside them."""

    prediction: Array
    variance: Array
    chi: Array
    inner: Inner


class Stage(Protocol[Inner]):
    """samples, ridge : m and λ of the readout; numbers, or one for each of a stack
    root : what its nodes count in an iteration over (f, log q, log χ)
    """

    @property
    def weights(self) -> Array:
        """(S,) ω_s, summing to one."""

    @property
    def labels(self) -> Array:
        """(S,) E[y|s]."""

    @property
    def noise(self) -> Array:
        """(S,) Var[y|s]."""

    @property
    def samples(self) -> Array | float:
        """m."""

    @property
    def root(self) -> Array | float:
        """What components of (f, log q, log χ) count in an iteration."""

    def with_labels(self, weights: Array, labels: Array) -> Stage[Inner]:
        """With weights and labels ±1 of another law on the same nodes."""

    def with_ridge(self, factor: float) -> Stage[Inner]:
        """With so many times the ridge."""

    def of_squared_loss(self, tolerance: float) -> State[Inner]:
        """The solution of ridge regression."""

    def step(self, at: State[Inner], found: LossMoments, tolerance: float) -> State[Inner]:
        """The next (f, q, χ) from the moments of a loss at the last (eq. loss-equations)."""

    def size(self, change: Array) -> Array:
        """Of the changes (P, 3S) of (f, log q, log χ) of a stack of P."""


@dataclass(frozen=True)
class TypeStage:
    """Neurons as types; problems of a stack have a leading axis."""

    features: NodeFeatures
    samples: Array
    ridge: Array
    root: float = 1.0

    @property
    def weights(self) -> Array:
        return self.features.weights

    @property
    def labels(self) -> Array:
        return self.features.labels

    @property
    def noise(self) -> Array:
        return self.features.noise

    def with_labels(self, weights: Array, labels: Array) -> TypeStage:
        f, noise = self.features, 1 - labels**2
        drawn = replace(f, weights=weights, labels=labels, noise=noise).with_factors(f)
        return replace(self, features=drawn)

    def with_ridge(self, factor: float) -> TypeStage:
        return replace(self, ridge=factor * self.ridge)

    def of_squared_loss(self, tolerance: float) -> State[FixedPoint]:
        point = solve_fixed_point(self.features, self.samples, self.ridge, tolerance=tolerance)
        first = errors_of(point)
        return State(first.prediction, first.variance, point.chi, point)

    def at(self, f: Array, q: Array, chi: Array) -> State[FixedPoint]:
        """Where these are given, with gains as they would be without any response."""
        first = first_guess(self.features, self.samples, self.ridge)
        gain = np.exp(first[..., : self.features.bulk.shape[-1]])
        none = np.zeros(f.shape[:-1])
        begin = FixedPoint(
            self.features, self.samples, self.ridge, gain, chi, none, none, np.ones_like(chi)
        )
        return State(f, q, chi, begin)

    def step(
        self, at: State[FixedPoint], found: LossMoments, tolerance: float
    ) -> State[FixedPoint]:
        """One fixed point of the squared loss with weights, and one second-order solution."""
        softness = np.minimum(1 / np.maximum(found.slope, 1e-300) - at.chi, _SOFTEST)
        point = solve_fixed_point(
            self.features, self.samples, self.ridge, softness=np.maximum(softness, 0.0),
            start=at.inner, tolerance=tolerance,
        )  # fmt: skip
        _, f, q, _ = self.outputs(point, at, found, _SHARE * tolerance)
        return State(f, q, point.chi, point)

    def outputs(
        self, point: FixedPoint, at: State[FixedPoint], found: LossMoments,
        tolerance: float = 1e-11,
    ) -> tuple[Array, Array, Array, Response]:  # fmt: skip
        """The readout, f and q that follow from the mean slopes at `at`, and the response.

        tolerance : of the linear system for q
        """
        omega = point.features.weights
        blocks = woodbury_factors(point.features, point.gain, point.weights)
        share = point.weights / omega
        share = np.maximum(share, _FLOOR * share.max(axis=-1, keepdims=True))
        labels = at.prediction + found.mean / share
        readout = mean_readout(point, blocks, omega * share, labels)
        prediction = product(point.features.mean.mT, readout)
        fixed = omega * found.square - point.roots**2 * at.variance
        response, variance = response_of(point, blocks, readout).solved(fixed, 1.0, tolerance)
        return readout, prediction, variance, response

    def size(self, change: Array) -> Array:
        return np.asarray(np.abs(change).max(axis=1))
