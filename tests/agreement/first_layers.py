"""Trained first layers, and what the readout on them really does: several training sets each."""

from typing import NamedTuple

import numpy as np

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.models.base import NetworkFeatures, exact_risk, fit_features
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.sampled import sampled_risk
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.layers.any_layer import layer_errors, own_directions

TESTED = 16_000  # samples for losses other than the squared one


def cases(width):
    """Trainings of the first layer beyond one step of gradient descent."""
    return {
        "two steps, same batch": {"steps": 2, "batch": "same", "rate": 1.0 * width},
        "two steps, fresh": {"steps": 2, "rate": 1.0 * width},
        "three steps, fresh": {"steps": 3, "rate": 2 / 3 * width},
        "sign": {"optimiser": "sign", "rate": 1.0},
        "muon": {"optimiser": "muon", "rate": 3.0},
        "five steps of adam": {"optimiser": "adam", "steps": 5, "rate": 0.4},
        "kfac": {"optimiser": "kfac", "rate": 1.0 * width},
    }


def problem(n, activation="tanh", data=None, width=None, link="relu", **training):
    given = {"samples": n, "ridge": 1e-4} | training
    return og.Problem(
        data=data or {"model": "mixture", "dim": n, "spread": 8.0},
        labels={"link": link},
        network={"width": width or (3 * n) // 5, "activation": activation},
        training=given,
    )


class Layer(NamedTuple):
    """A first layer of a draw, and errors of its readout over training sets: (sets, 2), those of
    the readout's own loss, and of signs (sets,)."""

    trial: Trial
    weights: np.ndarray
    errors: np.ndarray
    wrong: np.ndarray

    @property
    def geometry(self):
        return drawn_geometry(self.trial.instance.population, self.trial.instance.teacher.direction)

    def solved(self, own=True):
        """By the engine; own : with the directions of the layer itself."""
        geometry, seen = self.geometry, self.trial.instance.population.seen
        weights, start = seen(self.weights), seen(self.trial.weights)
        directions = own_directions(weights, geometry.basis, start)
        return layer_errors(self.trial.problem, geometry, weights, directions[:, : 4 * own])

    def predicted(self, own=True):
        """Test and training loss by the engine."""
        found = self.solved(own)
        return np.array([found.test_loss, found.train_loss])


def trained(p, draw=0, sets=6):
    """Test errors are exact for the squared loss, others on samples with it as control variate."""
    trial = Trial(p, Streams(0, draw))
    weights, errors, fits = trial.updated_weights, [], {}
    for number in range(sets):
        batch = trial.instance.sample(p.samples, np.random.default_rng([draw, number]))
        other = Trial(p, trial.streams, draw=trial.draw)
        other.draw.__dict__["train"] = Inputs(batch, True)
        fitted = fit_features(other, NetworkFeatures(other, weights))
        errors.append([exact_risk(other, fitted).value, fitted.readout.loss])
        fits[number] = fitted
    wrong = np.full(sets, np.nan)
    if p.labels_binary:
        risks = sampled_risk(trial, fits, TESTED)
        for number, risk in risks.items():
            wrong[number] = risk.misclassification
            errors[number][0] = risk.loss_given(errors[number][0])
    return Layer(trial, weights, np.array(errors), wrong)


def gaps(layers, predicted):
    """Relative differences of test and training loss to the networks', and their standard error,
    over layers."""
    ratio = [p / layer.errors.mean(axis=0) - 1 for layer, p in zip(layers, predicted, strict=True)]
    spread = [layer.errors.std(axis=0, ddof=1) / layer.errors.mean(axis=0) for layer in layers]
    sets = len(layers[0].errors)
    se = np.sqrt(np.sum(np.square(spread), axis=0) / sets) / len(layers)
    return np.mean(ratio, axis=0), se
