"""Test error on a sampled test set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol, TypeVar

from onegrad.compute.backend import Array, namespace
from onegrad.network.trial import Inputs, Trial

Key = TypeVar("Key", bound=Hashable)


class Predicts(Protocol):
    """Mean prediction of each sample, and the variance of the model's own noise there."""

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]: ...


def sampled_risk(trial: Trial, models: Mapping[Key, Predicts], count: int) -> dict[Key, float]:
    """E(y − f(x))² of each model over the same `count` test samples.

    The noise of labels and of equivalent models is added exactly instead of sampled. Cost:
    2·count·k·n operations shared by all models with the same weights; memory one block.
    """
    totals = dict.fromkeys(models, 0.0)
    seen = 0
    for batch in trial.test_batches(count):
        inputs = Inputs(batch, pool=trial.draw.pool)
        for name, model in models.items():
            prediction, extra = model.predict(inputs)
            error = batch.y - prediction
            totals[name] += float(error @ error)
            if isinstance(extra, float):
                totals[name] += extra * len(batch)
            else:
                totals[name] += float(namespace(extra).sum(extra))
        seen += len(batch)
    return {name: total / seen + trial.label_noise_variance for name, total in totals.items()}
