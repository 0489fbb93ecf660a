"""How much CPU time a standard error costs: seeds that it takes × CPU seconds of a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from onegrad.control_variates import CONTROLS
from onegrad.results.estimates import Estimate
from onegrad.specs.experiment import Compare

Curve = tuple[str, str]  # activation, model


def relative_variance(values: Sequence[float], controls: Sequence[Sequence[float]] = ()) -> float:
    """Of one seed: (standard error)² × seeds, relative to the mean squared."""
    mean, error = Estimate.of(values, controls)
    return len(values) * (error / mean) ** 2


def seeds_for(variance: float, target: float, fitted: int = 0) -> float:
    """Seeds until the standard error is `target` of the mean, never less than `seeds = "auto"`.

    fitted : control variates
    """
    return max(Compare().fewest_seeds + fitted, variance / target**2)


def cost_together(
    variances: Mapping[Curve, float], target: float, cpu: Callable[[Sequence[str]], float]
) -> float:
    """CPU seconds until all curves have their seeds, where a seed with controls serves them all.

    Activations that have theirs drop out, as with `seeds = "auto"`. cpu : of one seed of some
    activations
    """
    activations = list(dict.fromkeys(a for a, _ in variances))
    needed = {
        a: max(seeds_for(v, target, CONTROLS) for (other, _), v in variances.items() if other == a)
        for a in activations
    }
    total = begun = 0.0
    left = sorted(activations, key=needed.__getitem__)
    while left:
        if needed[left[0]] > begun:
            total += (needed[left[0]] - begun) * cpu(left)
            begun = needed[left[0]]
        left.pop(0)
    return total


def cost_alone(
    variances: Mapping[Curve, float], target: float, cpu: Mapping[Curve, float]
) -> float:
    """CPU seconds until each curve, computed by itself, has its seeds."""
    return float(np.sum([seeds_for(v, target) * cpu[c] for c, v in variances.items()]))
