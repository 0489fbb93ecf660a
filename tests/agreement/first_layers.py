"""Trained first layers, and what the readout on them really does: several training sets each."""

from typing import NamedTuple

import numpy as np

import onegrad as og
from onegrad.models.base import NetworkFeatures, exact_risk, fit_features
from onegrad.network.inputs import Inputs
from onegrad.network.trial import Trial
from onegrad.randomness import Streams
from onegrad.theory.any_layer import layer_errors, own_directions
from onegrad.theory.geometry import drawn_geometry


def problem(n, activation="tanh", data=None, width=None, **training):
    given = {"samples": n, "ridge": 1e-4} | training
    return og.Problem(
        data=data or {"model": "mixture", "dim": n, "spread": 8.0},
        network={"width": width or (3 * n) // 5, "activation": activation},
        training=given,
    )


class Layer(NamedTuple):
    """A first layer of a draw, and errors of its readout over training sets: (sets, 2)."""

    trial: Trial
    weights: np.ndarray
    errors: np.ndarray

    @property
    def geometry(self):
        return drawn_geometry(self.trial.instance.population, self.trial.instance.teacher.direction)

    def predicted(self, own=True):
        """Test and training error by the engine; own : with the directions of the layer itself."""
        geometry, start = self.geometry, self.trial.weights
        directions = own_directions(self.weights, geometry.basis, start)
        found = layer_errors(self.trial.problem, geometry, self.weights, directions[:, : 4 * own])
        return np.array(found.errors[:2])


def trained(p, draw=0, sets=6):
    trial = Trial(p, Streams(0, draw))
    weights, errors = trial.updated_weights, []
    for number in range(sets):
        batch = trial.instance.sample(p.samples, np.random.default_rng([draw, number]))
        other = Trial(p, trial.streams, draw=trial.draw)
        other.draw.__dict__["train"] = Inputs(batch, True, trial.draw.pool)
        fitted = fit_features(other, NetworkFeatures(other, weights))
        errors.append((exact_risk(other, fitted).value, fitted.readout.train_error))
    return Layer(trial, weights, np.array(errors))


def gaps(layers, predicted):
    """Relative differences of test and training error to the networks', and their standard error,
    over layers."""
    ratio = [p / layer.errors.mean(axis=0) - 1 for layer, p in zip(layers, predicted, strict=True)]
    spread = [layer.errors.std(axis=0, ddof=1) / layer.errors.mean(axis=0) for layer in layers]
    sets = len(layers[0].errors)
    se = np.sqrt(np.sum(np.square(spread), axis=0) / sets) / len(layers)
    return np.mean(ratio, axis=0), se
