"""Network and semi-parametric theory on disjoint images, given the same first layers."""

from dataclasses import dataclass

import numpy as np

from onegrad.equivalents import MODELS
from onegrad.equivalents.conditional_gaussian import leading_direction
from onegrad.experiments.real_data import sample_of
from onegrad.experiments.results import Estimate
from onegrad.network.risk.sampled import sampled_risk
from onegrad.network.trial import Trial
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.theory.semi_parametric import Ridge
from onegrad.theory.semi_parametric_predict import Layer, predict_from_layers

HALVES = ("first-half", "second-half")


def fashion(classes, activation, ratio, rate, part="all", ridge=1e-4, **data):
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


def compare(classes, activation, ratio, rate, seeds, directions=((0, 1), (1, 0)), root=11):
    """Networks on one half of the images; theory given their first layers and the other half."""
    simulated, predicted = [], []
    for node_half, network_half in directions:
        problem = fashion(classes, activation, ratio, rate, HALVES[network_half])
        other = fashion(classes, activation, ratio, rate, HALVES[node_half])
        sample = sample_of(other, np.arange(other.data.rows))
        layers = []
        for seed in range(seeds):
            trial = Trial(problem, Streams(root, seed), 4)
            weights = trial.updated_weights
            fitted = MODELS["network"](trial)
            risk = sampled_risk(trial, {0: fitted}, 4000)[0]
            simulated.append((risk, fitted.readout.train_error))
            direction = leading_direction(weights - trial.weights)
            layers.append(Layer(weights, direction[:, None], sample))
        ridge = Ridge(problem.samples, problem.effective_ridge)
        said = predict_from_layers(
            layers.__getitem__, problem.activation, ridge, fewest_draws=seeds, most_draws=seeds
        )
        predicted.append(said.errors[:2])
    pairs = tuple(Estimate.of(column) for column in np.array(simulated).T)
    mean = tuple(float(v) for v in np.mean(predicted, axis=0))
    return Agreement(pairs, mean, said.rank, said.error_estimate)
