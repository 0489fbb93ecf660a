"""E(y − f(x))² within one Gaussian component, order by order of the Hermite expansions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.population import Population
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.joint_links import JointLink
from onegrad.gaussian.joint_rules import JointLaw, joint_law
from onegrad.simulate.risk.pairs import PairSum
from onegrad.simulate.risk.series import Series, Sum, cross_sum

_ORDERS = (3, 4, 6, 8, 16, 40)  # orders tried for products with a label of several indices
_PIECE = 1 << 20  # nodes × neurons at once, in these
_CROSS = 1e-6  # allowed error of a product of two functions, over the part of the risk known so far


@dataclass(frozen=True)
class Single:
    """factor·f(directionᵀx): the label, a linear model, a learned polynomial."""

    activation: Activation
    direction: Array
    factor: float


@dataclass(frozen=True)
class Several:
    """factor·g(Ξᵀx): a label of several indices, the columns of `directions`."""

    link: JointLink
    directions: Array
    factor: float


@dataclass(frozen=True)
class Neurons:
    """Σ_i readout_i·σ(w_iᵀx/scale). The weights stay on their device, the rest is NumPy's.

    With an orthonormal `basis` V, the features are Gaussian given Vᵀx: the conditional model; V
    is a basis for whitened inputs, where the bulk of the covariance is not the identity.
    """

    activation: Activation
    weights: Array
    readout: Array
    scale: float = 1.0
    basis: Array | None = None


class ComponentRisk:
    """E(constant + Σ singles + several − Σ_i a_iσ(w_iᵀx/scale))² for x ~ N(μ_c, Σ_c), bulk white.

    With neurons, the steps are: `columns` → `attach` (needs Ŵ·columns) → `add_slope` (needs
    Ŵᵀ·first) → the blocks of ŴŴᵀ into `pairs`. So the caller makes each product once for all
    components.
    """

    def __init__(
        self,
        population: Population,
        c: int,
        singles: list[Single],
        constant: float,
        noise: float,
        several: Several | None = None,
    ) -> None:
        self.weight = float(population.weights[c])
        self.mean = population.means[c]
        self.structure = population.spikes[c] * np.sqrt(population.strengths[c])
        self.singles = singles
        self.noise = noise
        self.series = [self._series_of(single) for single in singles]
        self.bias = constant
        self.slope = np.zeros(population.dim)
        self.value = self.error = 0.0
        self.order = 0
        self.pairs: PairSum | None = None
        for single, series in zip(singles, self.series, strict=True):
            expansion = series.upto(1)
            self.bias += single.factor * float(expansion.coefficients[0, 0])
            if series.scale[0] > 0:
                first = float(expansion.coefficients[1, 0]) / float(series.scale[0])
                self.slope += single.factor * first * single.direction
            self.value += single.factor**2 * float(expansion.tail(1)[0])
            self.error += expansion.accuracy * single.factor**2 * float(expansion.energy[0])
        self._pair_singles()
        self.several = None if several is None else self._of_several(several)

    def _of_several(self, label: Several) -> JointTerm:
        """Orders 0 and 1 of the label, its energy, and its products with the singles."""
        mine = self.structure.T @ label.directions
        covariance = label.directions.T @ label.directions + mine.T @ mine
        law = joint_law(label.link, self.mean @ label.directions, covariance)
        term = JointTerm.of(law, label.directions, covariance, label.factor)
        self.bias += label.factor * law.mean
        self.slope += label.factor * term.directions @ law.first
        self.value += label.factor**2 * term.rest
        self.error += label.factor**2 * term.off
        for single, series in zip(self.singles, self.series, strict=True):
            if series.scale[0] > 0:
                seen = self._seen(single.direction) / series.scale[0]
                along = (seen @ term.directions)[None]
                self._add(term.cross(series, np.array([2 * single.factor]), along, 1e-9))
        return term

    def _covariance(self, u: Array, v: Array) -> float:
        return float(u @ v + (self.structure.T @ u) @ (self.structure.T @ v))

    def _seen(self, u: Array) -> Array:
        """Σ_c u."""
        return np.asarray(u + self.structure @ (self.structure.T @ u))

    def _series_of(self, single: Single) -> Series:
        w = single.direction
        scale = math.sqrt(self._covariance(w, w))
        return Series(single.activation, np.array([w @ self.mean]), np.array([scale]))

    def _pair_singles(self) -> None:
        size = self.value
        for i in range(len(self.singles)):
            for j in range(i):
                one, other = self.singles[i], self.singles[j]
                scale = float(self.series[i].scale[0] * self.series[j].scale[0])
                both = self._covariance(one.direction, other.direction)
                x = np.clip(np.array([both / scale if scale else 0.0]), -1, 1)
                factor = np.array([2 * one.factor * other.factor])
                self._add(cross_sum(self.series[i], self.series[j], factor, x, None, 1e-9 * size))

    def _add(self, total: Sum) -> None:
        self.value += total.value
        self.error += total.error
        self.order = max(self.order, total.order)

    @property
    def columns(self) -> Array:
        """What Ŵ is multiplied with: the structure, the mean, and Σ_c times each direction."""
        seen = [self._seen(single.direction) for single in self.singles]
        if self.several is not None:
            seen += [self._seen(v) for v in self.several.directions.T]
        return np.column_stack([self.structure, self.mean, *seen])

    def attach(self, neurons: Neurons, norms: Array, products: Array, along: Array | None) -> Array:
        """Expand the neurons, given |w_i|², Ŵ·columns and Ŵ·basis; returns `first`."""
        rank = self.structure.shape[1]
        inner, shift = products[:, :rank], products[:, rank]
        self._variance = norms + np.einsum("ij,ij->i", inner, inner)
        deviation = np.sqrt(self._variance)
        self._inverse = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        self._many = Series(neurons.activation, shift / neurons.scale, deviation / neurons.scale)
        self._neurons, self._products, self._along = neurons, products, along
        expansion = self._many.upto(1)
        self.bias -= float(neurons.readout @ expansion.coefficients[0])
        self._diagonal = float(neurons.readout**2 @ expansion.tail(1))
        self.value += self._diagonal
        self.error += expansion.accuracy * float(neurons.readout**2 @ expansion.energy)
        return neurons.readout * expansion.coefficients[1] * self._inverse

    def add_slope(self, slope: Array, dtype: np.dtype) -> None:
        """Orders 0 and 1 are complete with slope = Ŵᵀ·first; then the cross terms."""
        self.slope -= slope
        known = self.noise + self.bias**2 + self._covariance(self.slope, self.slope)
        self._cross(_CROSS * (known + self._diagonal))
        neurons, near = self._neurons, None
        if neurons.basis is not None:
            assert self._along is not None
            inner = neurons.basis.T @ self.structure
            near = self._along @ np.linalg.cholesky(np.eye(len(inner)) + inner @ inner.T)
        structure = self._products[:, : self.structure.shape[1]]
        self.pairs = PairSum(
            self._many, neurons.readout, self._variance, structure, near, known, dtype
        )

    def _cross(self, goal: float) -> None:
        """−2Σ_i a_i E f(t)σ(z_i) beyond order 1, for each single f(t)."""
        neurons, start = self._neurons, self.structure.shape[1] + 1
        for j, (single, series) in enumerate(zip(self.singles, self.series, strict=True)):
            if series.scale[0] == 0:
                continue
            scale = self._inverse / series.scale[0]
            x = np.clip(self._products[:, start + j] * scale, -1, 1)
            rest = None
            if neurons.basis is not None:
                assert self._along is not None
                near = self._along @ (neurons.basis.T @ self._seen(single.direction)) * scale
                x, rest = near, x - near
            factors = -2 * single.factor * neurons.readout
            self._add(cross_sum(series, self._many, factors, x, rest, goal))
        if self.several is not None:
            if neurons.basis is not None:
                raise AssumptionError(
                    "the exact risk of the conditional Gaussian model is not known for labels of "
                    "several indices; use a sampled test set"
                )
            along = self._products[:, start + len(self.singles) :] * self._inverse[:, None]
            self._add(self.several.cross(self._many, -2 * neurons.readout, along, goal))

    def result(self) -> Sum:
        """The error of this component, its accuracy, and the order of the series."""
        if self.pairs is not None and self.pairs.needed:
            self._add(self.pairs.result())
            self.pairs = None
        value = self.value + self.bias**2 + self._covariance(self.slope, self.slope)
        return Sum(value, self.error, self.order)


@dataclass(frozen=True)
class JointTerm:
    """factor·g(Ξᵀx): its law, and the directions (n × p) of the independent z.

    With r_i the correlations of neuron i's projection with z, E g·σ_i =
    Σ_r ĉ_ri |r_i|^r E[g H_r(r̂_i·z)]/√r!: Mehler's series along the direction r̂_i. Averages over z
    are by rules that are split where g bends.
    """

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
