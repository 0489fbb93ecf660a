"""Where the degree rule's assumption fails: labels whose means the polynomial model cannot fit.

The rule is about what a term adds to the *fluctuations* of the features. A label also has a mean
ȳ_c in each component c, and features fit it by their own means ν_ic = E[φ_i(x)|c], which are a
direction of feature space of their own. Where the kept terms have none (a centred activation has
no term of degree 0, and H_1 no mean), the model cannot fit ȳ at all, while the network does by its
even terms of higher degree: E H_2(wᵀx) = ‖w‖² − 1 differs from neuron to neuron, and over k of
them adds up to a constant that does not vanish with n.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.label_power import component_laws
from onegrad.gaussian.polynomials import hermite_series, sqrt_factorial
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import MOST_DEGREE, Problem

VISIBLE = 0.05  # share of the test error below which the features' means are ignored
_NEURONS = 512  # neurons drawn for the estimate; all neurons have one law


@dataclass(frozen=True)
class MeansCheck:
    """How well the polynomial model of some degree fits the labels' means, beside the network.

    lost : by how much that alone raises the model's test error over the network's, relative;
        simulations show one to three times as much
    mended_by : the least degree from this one to 4 for which that is not visible, or None
    """

    lost: float
    mended_by: int | None

    @property
    def visible(self) -> bool:
        """Whether the rule's assumption visibly fails here."""
        return abs(self.lost) > VISIBLE


def check_means(problem: Problem, degree: int, seed: int = 0) -> MeansCheck | None:
    """What the model of that degree cannot say about the means; None where data are not known.

    Ridge regression on k features with means ν_i and independent fluctuations of variance v leaves
    r = (I + NW)⁻¹ȳ of the means, N = M Σ_i ν_iν_iᵀ, W = diag(ρ)/(1+χ), with 1/M = λ + v/(1+χ) and
    χ = kvM/m: the conditional theory with the components as its only nodes, on the initial layer.
    lost = Σ ρ_c(r_c² − r'_c²)/(Σ ρ_c r'_c² + E Var[y|c]), r' the network's.
    """
    if not problem.data.known:
        return None
    fit = _Fit.of(problem, seed)
    network = fit.left(fit.network)
    scale = network + fit.within

    def lost(degree: int) -> float:
        return (fit.left(fit.polynomial(degree)) - network) / scale if scale > 0 else 0.0

    more: Iterable[int] = range(degree, MOST_DEGREE + 1)
    mended = next((d for d in more if abs(lost(d)) <= VISIBLE), None)
    return MeansCheck(lost(degree), mended)


@dataclass(frozen=True)
class _Fit:
    """Neurons by the law of their preactivation in each component: N(shifts, scales²), (K, C)."""

    problem: Problem
    shifts: Array
    scales: Array
    weights: Array  # ρ
    labels: Array  # ȳ_c
    within: float  # E Var[y|c]

    @classmethod
    def of(cls, problem: Problem, seed: int) -> _Fit:
        instance = problem.instance(seed)
        population = instance.population
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((min(problem.width, _NEURONS), problem.dim))
        w *= np.sqrt(problem.weight_variance)
        w, whitened = population.seen(w), population.whitened
        variances = [
            np.sum(w * w, axis=1) + (w @ spikes) ** 2 @ strengths
            for spikes, strengths in zip(whitened.spikes, whitened.strengths, strict=True)
        ]
        means, spreads = component_laws(population, instance.teacher)
        within = float(np.sum(population.weights @ spreads))
        within += instance.teacher.outputs * instance.teacher.noise_variance
        scales = np.sqrt(np.stack(variances, axis=1))
        return cls(problem, w @ whitened.means.T, scales, population.weights, means, within)

    @property
    def network(self) -> Array:
        """ν_ic = E σ(N(shift, scale²))."""
        return np.asarray(self.problem.activation.smoothed(self.shifts, self.scales).value)

    def polynomial(self, degree: int) -> Array:
        """The same of Σ_{j≤ℓ} h_j/j!·H_j(·/b)."""
        b = self.problem.bulk_scale
        series = self.problem.activation.projections(degree, b) / sqrt_factorial(degree) ** 2
        nodes, weights = gauss_hermite(degree // 2 + 1)
        at = (self.shifts[..., None] + self.scales[..., None] * nodes) / b
        return np.asarray(hermite_series(series, at) @ weights)

    def left(self, means: Array) -> float:
        """Σ_c ρ_c r_c²: what ridge regression leaves of the labels' means."""
        problem = self.problem
        variance = self.problem.activation.smoothed(self.shifts, self.scales).variance
        v = float(np.mean(variance @ self.weights))
        ratio, ridge = problem.width / problem.samples, problem.effective_ridge
        if v <= 0:
            response, inflation = 1 / ridge, 1.0
        else:  # t = vM solves λ/v·t + t/(1 + ratio·t) = 1
            small = ridge / v
            half = small + 1 - ratio
            root = np.sqrt(half**2 + 4 * small * ratio)
            t = 2 / (half + root) if half > 0 else (root - half) / (2 * small * ratio)
            response, inflation = t / v, 1 + ratio * t
        gram = response * problem.width / len(means) * means.T @ means
        rest = np.linalg.solve(np.eye(len(self.weights)) + gram * self.weights / inflation,
                               self.labels)  # fmt: skip
        return float(np.sum(self.weights @ rest**2))
