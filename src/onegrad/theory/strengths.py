"""Spikes whose strengths are drawn: the theory at some of them, averaged over their law.

Strengths are θ·U(0, 1), sorted, those of later components scaled to the sum of the first
[demir2025, Fig. 2c]. The mean over them is taken at 16 points of a Sobol sequence, strongest spikes
first, with 1/‖Σ̄‖ as a control variate: labels, and errors with them, are proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.task import Solution

_POINTS = 16
_MANY = 4096  # points at which the control variate alone is averaged
_SEED = 20250424


@dataclass(frozen=True)
class StrengthNodes:
    """Relative strengths of each component at each point, and the control variate there.

    strengths : (points, components) of (r_c,)
    control : (points,) 1/‖Σ̄‖ up to chance overlaps; `control_mean` its mean over the law
    """

    strengths: tuple[tuple[Array, ...], ...]
    control: Array
    control_mean: float

    def mean(self, solutions: Sequence[Solution]) -> Solution:
        """The average solution; what it says node by node is that of a typical point, and so will
        its 1/n correction be.

        The error estimate covers the average too: twice the standard error that the residuals of
        the control variate's regression would have if the points were independent.
        """
        design = np.column_stack([np.ones(len(self.control)), self.control])
        wanted = np.array([1.0, self.control_mean])
        if np.ptp(self.control) < 1e-12 * abs(self.control_mean):
            design, wanted = design[:, :1], wanted[:1]
        weights = wanted @ np.linalg.pinv(design)

        def average(name: str) -> Array:
            return np.asarray(weights @ np.array([getattr(s, name) for s in solutions]))

        spread = 0.0
        for name in ("test_error", "train_error"):
            values = np.array([getattr(s, name) for s in solutions])
            left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
            error = math.sqrt(float(left @ left)) / (len(values) - 2)
            spread = max(spread, 2 * error / float(average(name)))
        first = solutions[int(np.argmin(np.abs(self.control - self.control_mean)))]
        names = ("test_error", "train_error", "train_objective", "misclassification", "test_loss",
                 "train_loss", "calibration")  # fmt: skip
        means: dict[str, Any] = {
            n: float(average(n)) for n in names if getattr(first, n) is not None
        }
        return replace(
            first,
            **means,
            component_test=average("component_test"),
            component_train=average("component_train"),
            degrees_left=min(s.degrees_left for s in solutions),
            iterations=max(s.iterations for s in solutions),
            residual=max(s.residual for s in solutions),
            error_estimate=max(s.error_estimate for s in solutions) + spread,
        )


@lru_cache(maxsize=64)
def strength_nodes(
    ranks: tuple[int, ...], weights: tuple[float, ...], spread: float
) -> StrengthNodes:
    """Points of the law of the strengths of components with these ranks."""
    points = _relative(ranks, _POINTS)
    many = _relative(ranks, _MANY)
    return StrengthNodes(
        tuple(tuple(p[i] for p in points) for i in range(_POINTS)),
        _control(points, weights, spread),
        float(_control(many, weights, spread).mean()),
    )


def _relative(ranks: tuple[int, ...], count: int) -> list[Array]:
    """(count, r_c) strengths over θ of each component, strongest first.

    The largest of r uniform numbers is U^{1/r}, the next one that times U'^{1/(r−1)}, and so on:
    the first coordinates of the sequence, which are its best, decide about the strongest spikes.
    """
    from scipy.stats import qmc  # half a second to import, and needed here alone

    size = sum(ranks)
    drawn = qmc.Sobol(size, scramble=True, rng=np.random.default_rng(_SEED)).random(count)
    order = sorted((i, c) for c, r in enumerate(ranks) for i in range(r))
    place = {key: j for j, key in enumerate(order)}
    found = []
    for c, r in enumerate(ranks):
        roots = [drawn[:, place[i, c]] ** (1 / (r - i)) for i in range(r)]
        found.append(np.cumprod(np.stack(roots, axis=1), axis=1) if r else np.zeros((count, 0)))
    total = found[0].sum(axis=1)
    scales = [total / s.sum(axis=1) if s.size and ranks[0] else np.ones(count) for s in found]
    return [np.asarray(s * scale[:, None]) for s, scale in zip(found, scales, strict=True)]


def _control(relative: list[Array], weights: tuple[float, ...], spread: float) -> Array:
    parts = [rho * s for rho, s in zip(weights, relative, strict=True) if s.size]
    strongest = np.max(np.concatenate(parts, axis=1), axis=1)
    return np.asarray(1.0 / (1.0 + spread * strongest))
