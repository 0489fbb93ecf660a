"""How much CPU time a standard error costs: seeds that it takes × CPU seconds of a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from onegrad.results.estimates import corrected_values
from onegrad.runs.schedule import FEWEST, FEWEST_CONTROLLED, caution

Curve = tuple[str, str]  # activation, model


def relative_variance(values: Sequence[float], controls: Sequence[Sequence[float]] = ()) -> float:
    """Of one seed: (standard error)² × seeds, relative to the mean squared; with control variates
    what their known factors leave."""
    array = np.array(values)
    if len(controls):
        array = corrected_values(array, controls)
    return float(np.var(array, ddof=1) / np.mean(array) ** 2)


def seeds_for(variance: float, target: float, fewest: int = FEWEST) -> float:
    """Seeds until the standard error, with the caution of few, is `target` of the mean: never less
    than `seeds = "auto"` begins with."""
    needed = variance / target**2
    if needed >= FEWEST:
        return needed
    return next(float(n) for n in range(fewest, FEWEST + 1) if needed * caution(n) ** 2 <= n)


def cost_together(
    variances: Mapping[Curve, float], target: float, cpu: Callable[[Sequence[str]], float]
) -> float:
    """CPU seconds until all curves have their seeds, where a seed with controls serves them all.

    Activations that have theirs drop out, as with `seeds = "auto"`. cpu : of one seed of some
    activations
    """
    activations = list(dict.fromkeys(a for a, _ in variances))
    needed = {
        a: max(
            seeds_for(v, target, FEWEST_CONTROLLED)
            for (other, _), v in variances.items()
            if other == a
        )
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
