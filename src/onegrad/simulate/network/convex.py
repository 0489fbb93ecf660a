"""Readouts with any convex loss: minimise (1/m) Σ ℓ(y_i, f_i) + λ‖a‖², f = Φa.

The one place that knows which solver belongs to which loss: the ridge regression of readout.py for
the squared one, Newton's method or an interior-point method for the others (minimisers.py), which
NumPy does in double precision whatever the device of the features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onegrad.compute.backend import Array, host, like
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.gaussian.convex_losses import Loss, Softmax
from onegrad.simulate.network.minimisers import (
    FeatureSystem,
    KernelSystem,
    Minimum,
    System,
    minimise,
)
from onegrad.simulate.network.readout import Readout, RidgeSolver, fit_dual


class ConvexSolver:
    """The minimisers for given features (m × k) at any number of ridges, from one Gram matrix.

    Each ridge starts from the solution at the last one. Cost: the Gram matrix of mk·min(m, k)
    operations where k ≥ m, and 5 to 25 factorisations of min(m, k)³/3 (and as many products of mk²
    where k < m), of a softmax one for each class now and then. Memory 16·min(m, k)² bytes, for a
    softmax 8·(K + 1)·min(m, k)², and 8mk where k < m (K as many of a softmax).
    """

    def __init__(self, features: Array, y: Array, loss: Loss | Softmax) -> None:
        self._given, self.loss = features, loss
        self.features = np.asarray(host(features), float)
        self.y = checked_labels(y, loss)
        m, k = self.features.shape
        self._gram = self.features @ self.features.T if k >= m else None
        self._last: tuple[float, Array] | None = None

    def fit(self, ridge: float, last: bool = False) -> Readout:
        """The minimiser at this ridge; `last` changes nothing here."""
        shift = ridge * len(self.y)
        system: System
        if self._gram is None:
            system = FeatureSystem(self.features, shift)
        else:
            system = KernelSystem(self._gram, shift)
        start = None if self._last is None else self._last[1] * min(ridge / self._last[0], 1.0)
        found = minimise(self.loss, system, self.y, start)
        self._last = ridge, found.slopes
        coefficients = found.coefficients
        if coefficients is None:
            coefficients = self.features.T @ found.slopes / shift
        return _readout(self.loss, ridge, self.y, found, like(coefficients, self._given))


def readout_solver(features: Array, y: Array, loss: Loss | Softmax) -> RidgeSolver | ConvexSolver:
    """What fits the readout with this loss."""
    if loss.name == "squared":
        return RidgeSolver(features, y)
    return ConvexSolver(features, y, loss)


def fit_kernel_readout(gram: Array, y: Array, ridge: float, loss: Loss | Softmax) -> Readout:
    """Coefficients α of f = Kα for a kernel matrix K, which is overwritten."""
    if loss.name == "squared":
        return fit_dual(gram, y, ridge)
    labels = checked_labels(y, loss)
    shift = ridge * len(labels)
    found = minimise(loss, KernelSystem(np.asarray(host(gram), float), shift), labels)
    return _readout(loss, ridge, labels, found, like(found.slopes / shift, gram))


def held_out_ridge(
    features: Array, y: Array, loss: Loss | Softmax, ridges: Sequence[float]
) -> float:
    """The ridge with the least loss on the last fifth of the samples, fitted on the others."""
    phi, labels = np.asarray(host(features), float), checked_labels(y, loss)
    part = max(1, len(labels) - len(labels) // 5)
    solver = ConvexSolver(phi[:part], labels[:part], loss)
    rest, target = (phi[part:], labels[part:]) if part < len(labels) else (phi, labels)

    def held_out(ridge: float) -> float:
        try:
            outputs = rest @ solver.fit(ridge).coefficients
        # No fit exists at so small a ridge on separable data: do not choose it
        except ConvergenceError:
            return math.inf
        return float(np.mean(loss.value(target, outputs)))

    return min(sorted(ridges, reverse=True), key=held_out)


def checked_labels(y: Array, loss: Loss | Softmax) -> Array:
    """The labels as a NumPy array; a loss of signs or of classes refuses all other labels."""
    labels = np.asarray(host(y), float)
    if isinstance(loss, Softmax):
        one_hot = np.all((labels == 0) | (labels == 1)) and np.all(labels.sum(axis=1) == 1)
        if not one_hot:
            raise AssumptionError(
                f'training.loss = "{loss.name}" of several classes is for labels that name one '
                'class each, 1 for it and 0 for the others. Use "squared" for others'
            )
    if loss.signs and not np.all(np.abs(labels) == 1):
        raise AssumptionError(
            f'training.loss = "{loss.name}" is for labels ±1, and these data have others (for '
            f'example {labels[np.abs(labels) != 1][0]:.4g}). Use "squared", "huber" or "absolute"'
        )
    return labels


def _readout(
    loss: Loss | Softmax, ridge: float, y: Array, found: Minimum, coefficients: Array
) -> Readout:
    value = float(np.mean(loss.value(y, found.outputs)))
    if found.coefficients is None:
        penalty = float(np.vdot(found.slopes, found.outputs)) / len(y)
    else:
        penalty = ridge * float(np.vdot(found.coefficients, found.coefficients))
    error = float(np.sum((y - found.outputs) ** 2)) / len(y)
    return Readout(ridge, coefficients, error, value + penalty, value)
