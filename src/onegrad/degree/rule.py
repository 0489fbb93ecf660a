"""Which degree of the polynomial model is enough: the rule of the sources."""

from __future__ import annotations

import math

from onegrad.errors import AssumptionError

MOST_DEGREE = 4  # of the polynomial model, as the source of the rule computes it


def degree_rule(strength: float | None) -> int:
    """Degree of the polynomial model: the least that is enough, but at most 4.

    min(4, max(1, ⌈β/(1 − β + 1e-6)⌉)), and 4 for β ≥ 1  [demir2025, Thm. 2 and its code;
    moniri2024 with β = 2α]: the integer ℓ with (ℓ−1)/ℓ < β ≤ ℓ/(ℓ+1) up to β = 4/5.

    >>> [degree_rule(b) for b in (0.0, 0.3, 0.5, 0.6, 0.74, 0.8, 0.9, 1.2)]
    [1, 1, 1, 2, 3, 4, 4, 4]
    """
    if strength is None:
        raise AssumptionError(
            "no degree rule applies: η or θ was set by hand, spiked data meet the isotropic "
            "convention, or there is more than one step of gradient descent. Give [scaling] "
            'strength and weighting for one step, set compare.degree, or name the model "hermite:3"'
        )
    needed = needed_degree(strength)
    return MOST_DEGREE if needed is None else min(needed, MOST_DEGREE)


def needed_degree(strength: float) -> int | None:
    """The degree rule without its cap; None for β ≥ 1, where no finite degree is enough.

    >>> [needed_degree(b) for b in (-0.4, 0.8, 0.9, 1.0)]
    [1, 4, 9, None]
    """
    beta = max(0.0, strength)
    return None if beta >= 1 else max(1, math.ceil(beta / (1 - beta + 1e-6)))
