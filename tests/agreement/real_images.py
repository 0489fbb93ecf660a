"""Network and semi-parametric theory on disjoint images, given the same first layers."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from onegrad.compute.linalg import leading_direction
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.results.estimates import Estimate
from onegrad.simulate.models import MODELS
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk.sampled import sampled_risk
from onegrad.theory.layers.matrix import DrawnLayer
from onegrad.theory.layers.semi_parametric import predict_from_layers

HALVES = ("first-half", "second-half")
RIDGE = 1e-4


def fashion(classes, activation, ratio, rate, part="all", ridge=RIDGE, **data):
    """The paper's setting, with η by hand: m = 500, θ = n."""
    return Problem(
        data={"model": "fashion-mnist", "classes": classes, "part": part, "spread": 784, **data},
        network={"width_ratio": ratio, "activation": activation},
        training={"samples": 500, "ridge": ridge, "rate": rate},
    )


@dataclass(frozen=True)
class Agreement:
    """Test and training error: simulated (mean, s.e.) and predicted."""

    simulated: tuple[Estimate, Estimate]
    predicted: tuple[float, float]
    rank: int
    estimate: float

    @property
    def gaps(self):
        return tuple(p / s.mean - 1 for s, p in zip(self.simulated, self.predicted, strict=True))

    @property
    def errors(self):
        return tuple(s.standard_error / s.mean for s in self.simulated)

    def within(self, bound=0.02):
        return all(abs(g) <= bound + 2 * e for g, e in zip(self.gaps, self.errors, strict=True))


@lru_cache(maxsize=2)  # both halves of a setting, for its control too
def networks(*setting, seeds):
    """Test and training error of each, and its first layer."""
    errors, layers = [], []
    for seed in range(seeds):
        trial = Trial(fashion(*setting), Streams(11, seed), 4)
        weights = trial.updated_weights
        fitted = MODELS["network"].fit(trial)
        risk = sampled_risk(trial, {0: fitted}, 4000)[0].value
        errors.append((risk, fitted.readout.train_error))
        direction = leading_direction(weights - trial.weights)
        layers.append(DrawnLayer(weights, direction[:, None]))
    return errors, layers


def compare(classes, activation, ratio, rate, seeds, ridge_factor=1):
    """Networks on one half of the images; theory given their first layers and the other half.

    ridge_factor : by which the theory's ridge is larger than the networks'
    """
    simulated, predicted = [], []
    for node_half, network_half in ((0, 1), (1, 0)):
        setting = (classes, activation, ratio, rate)
        errors, layers = networks(*setting, HALVES[network_half], seeds=seeds)
        other = fashion(*setting, HALVES[node_half], ridge=ridge_factor * RIDGE)
        nodes = other.row_nodes(np.arange(other.data.rows))
        given = [(layer, nodes) for layer in layers]
        found = predict_from_layers(other, given.__getitem__, draws=(seeds, seeds))
        simulated += errors
        predicted.append(found.errors[:2])
    pairs = tuple(Estimate.of(column) for column in np.array(simulated).T)
    mean = tuple(float(v) for v in np.mean(predicted, axis=0))
    return Agreement(pairs, mean, found.rank, found.open.total)
