"""By how much chance overlaps change the power of labels, for drafts, without solving anything."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.chance import Law
from onegrad.theory.geometry import Geometry


def label_change(law: Law) -> float:
    """By how much Var y within a component differs between the points that a screening looks at."""
    points = np.vstack([law.typical, law.screen])
    try:
        tasks = [law.task(point) for point in points]
        found = np.array([
            _label_variances(task.geometry, law.problem.links, law.problem.label_noise_variance)
            for task in tasks
        ])  # fmt: skip
    except AssumptionError:  # no room for such overlaps: the screening will say so
        return math.inf
    return float((found.max(axis=0) / np.maximum(found.min(axis=0), 1e-300)).max() - 1)


@lru_cache(maxsize=64)
def _label_variances(
    geometry: Geometry, links: tuple[Activation, ...] | None, noise: float
) -> list[float]:
    """Var y of each component, to which constants add nothing; 1 where labels are constants."""
    if links is None:
        return [1.0]
    found, (z, w) = [], gauss_hermite(32)
    for link, mean, covariance in zip(links, geometry.means, geometry.covariances, strict=True):
        xi = geometry.teacher
        values = link(float(xi @ mean) + math.sqrt(float(xi @ covariance @ xi)) * z)
        found.append(float(w @ values**2 - (w @ values) ** 2) + noise)
    return found
