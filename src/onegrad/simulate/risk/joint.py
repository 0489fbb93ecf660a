"""Products of a label of several indices with functions of one projection each.

With z the indices made independent and r_i the correlations of neuron i's projection with them,
E g·σ_i = Σ_r ĉ_ri |r_i|^r E[g H_r(r̂_i·z)]/√r!: Mehler's series along the direction r̂_i. Averages
over z are those of rules that are split where g bends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.joint_rules import JointLaw
from onegrad.simulate.risk.series import Series, Sum

_ORDERS = (3, 4, 6, 8, 16, 40)
_PIECE = 1 << 20  # nodes × neurons at once


@dataclass(frozen=True)
class JointTerm:
    """factor·g(Ξᵀx): its law, and the directions (n × p) of the independent z."""

    law: JointLaw
    directions: Array
    factor: float

    @classmethod
    def of(cls, law: JointLaw, indices: Array, covariance: Array, factor: float) -> JointTerm:
        """z = L⁻¹(Ξᵀx − mean) with the covariance LLᵀ of Ξᵀx."""
        root = np.linalg.cholesky(
            covariance + 1e-14 * np.trace(covariance) * np.eye(len(covariance))
        )
        return cls(law, np.asarray(np.linalg.solve(root, indices.T).T, float), factor)

    @property
    def rest(self) -> float:
        """E g² beyond order 1."""
        return self.law.energy - self.law.mean**2 - float(self.law.first @ self.law.first)

    @property
    def off(self) -> float:
        """What fewer nodes make of it."""
        assert self.law.coarse is not None
        return abs(self.law.energy - self.law.coarse.energy)

    def cross(self, many: Series, factors: Array, along: Array, goal: float) -> Sum:
        """Σ_i factors_i·factor·E g(z)σ(s_i + b_i V_i) beyond order 1, along_i = corr(V_i, z)."""
        if many.linear:
            return Sum(0.0, 0.0, 0)
        size = np.linalg.norm(along, axis=1)
        unit = along / np.maximum(size, 1e-300)[:, None]
        size = np.minimum(size, 1.0)
        factors = self.factor * factors
        for most in _ORDERS:
            expansion = many.upto(most)
            bound = size ** (most + 1) * np.sqrt(max(self.rest, 0.0) * expansion.tail(most))
            left = float(np.abs(factors) @ bound)
            if left <= goal:
                break
        assert self.law.coarse is not None
        weights = (
            factors * expansion.coefficients[: most + 1] * size ** np.arange(most + 1)[:, None]
        )
        value = _summed(self.law, unit, weights)
        return Sum(value, left + abs(value - _summed(self.law.coarse, unit, weights)), most)


def _summed(law: JointLaw, unit: Array, weights: Array) -> float:
    """Σ_{r≥2} Σ_i weights_ri E[y H_r(unit_i·z)]/√r!."""
    total, step = 0.0, max(1, _PIECE // len(law.y))
    y = law.weights * law.y
    for start in range(0, len(unit), step):
        part = slice(start, start + step)
        x = law.z @ unit[part].T
        before, h = np.ones_like(x), x
        for r in range(2, len(weights)):
            before, h = h, (x * h - np.sqrt(r - 1) * before) / np.sqrt(r)
            total += float((y @ h) @ weights[r, part])
    return total
