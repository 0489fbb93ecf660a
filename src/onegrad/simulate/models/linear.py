"""The best linear baseline: ridge regression on the inputs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from onegrad.compute.backend import Array, namespace
from onegrad.errors import ConvergenceError
from onegrad.gaussian.pair_moments import IDENTITY
from onegrad.simulate.models.base import Fitted, LinearInFeatures, Mark, Model
from onegrad.simulate.network.convex import ConvexSolver, held_out_ridge
from onegrad.simulate.network.readout import Decomposition, Readout
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.component import Single
from onegrad.simulate.risk.exact import Predictor


@dataclass(frozen=True)
class LinearFeatures:
    """A constant and the inputs."""

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        x = inputs.batch.x
        xp = namespace(x)
        x = xp.astype(x, xp.float64, copy=False)
        return xp.concat([xp.ones_like(x[:, :1]), x], axis=1), 0.0

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        return Predictor(singles=(Single(IDENTITY, a[1:], 1.0),), constant=float(a[0]))


def fit_linear(trial: Trial, everything: bool = False) -> Fitted:
    """Ridge on (1, x) with the ridge chosen by exact leave-one-out over ten decades; with another
    loss than the squared one, by a fifth of the samples held out, over six decades.

    The network's ridge means nothing here; a baseline that is to be beaten gets its own best.
    everything : also the samples of the gradient step, which the network has seen too
    """
    features = LinearFeatures()
    design, _ = features.moments(trial.train)
    xp = namespace(design)
    y = xp.astype(trial.train.batch.y, design.dtype)
    if everything:
        step = trial.draw.step_batch
        design = xp.concat([design, features.moments(Inputs(step))[0]], axis=0)
        y = xp.concat([y, xp.astype(step.y, design.dtype)])
    size = float(xp.mean(design**2)) * trial.problem.dim
    loss = trial.problem.readout_loss
    if loss.name != "squared":
        few = (np.geomspace(1e-5, 10.0, 7) * size / y.shape[0]).tolist()
        best = held_out_ridge(design, y, loss, few)
        return LinearInFeatures(features, _along_ridges(ConvexSolver(design, y, loss), few, best))
    ridges = (np.geomspace(1e-7, 1e3, 41) * size / y.shape[0]).tolist()
    spectrum = Decomposition(design, y)
    best = min(ridges, key=spectrum.leave_one_out)
    return LinearInFeatures(features, spectrum.fit(best))


def _along_ridges(solver: ConvexSolver, ridges: list[float], best: float) -> Readout:
    """The fit with the ridge `best`; from those with larger ones where it is not found at once."""
    try:
        return solver.fit(best)
    except ConvergenceError:
        larger = sorted((r for r in ridges if r >= best), reverse=True)
        return [solver.fit(ridge) for ridge in larger][-1]


def _on_all_samples(text: str) -> Model | None:
    if text != "all":
        return None
    return Model(
        "linear:all",
        "the same on the samples of step and readout together, as many as the network has seen",
        Mark("1", filled=True, size=9.0),
        fit=partial(fit_linear, everything=True),
        products="none",
        initial=True,
    )


MODEL = Model(
    "linear",
    "baseline: ridge on (1, x) with its own best ridge, on the samples of the readout",
    Mark("+", filled=True),
    fit=fit_linear,
    products="none",
    variant=_on_all_samples,
    variants="linear:all",
)
