"""What the isotropic theory knows of a problem: two Hermite series and a few numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.problem import Problem
from onegrad.theory.isotropic.series import ActivationSeries, LinkSeries, slope_moment
from onegrad.theory.isotropic.traces import Traces, limiting_traces


@dataclass(frozen=True)
class IsotropicSetting:
    """One step on isotropic data: d inputs, N neurons, n₁ samples for the step, n for the readout
    (eq. spike-length).

    activation : σ; the theory takes its mean off
    features, link : the series of σ and of the teacher's link
    phi, psi, step_phi : φ = d/n, ψ = d/N, d/n₁
    ridge : λ of (1/n)‖y − F a‖² + λ‖a‖²
    noise_variance : σ_ε² of the labels
    rate, exponent : η, and α of η ~ n^α (−∞ without a step)
    width : N
    gradient : "exact" (residual y − f₀) or "labels-only" (residual y, the source's idealisation)

    phi, psi, step_phi, ridge and noise_variance may be arrays that broadcast: `direction_norm2`,
    `traces`, `random_features_losses` and `closed_form_drops` then are arrays too.
    """

    activation: Activation
    features: ActivationSeries
    link: LinkSeries
    phi: float
    psi: float
    step_phi: float
    ridge: float
    noise_variance: float
    rate: float
    exponent: float
    width: float
    gradient: str

    @classmethod
    def of(cls, problem: Problem) -> IsotropicSetting:
        """From a problem with isotropic data, the isotropic convention and single-index labels."""
        links = problem.links
        if not problem.data.isotropic or links is None or problem.network.convention != "isotropic":
            raise AssumptionError(
                'closed forms and limiting spectra are known for data.model = "isotropic" with '
                'convention = "isotropic" and single-index labels. Other problems have the '
                "conditional Gaussian theory; `onegrad degree` measures the terms of any"
            )
        activation, rate, exponent = problem.network.activation, problem.rate, -math.inf
        given = problem.scaling.exponent
        if given is not None:
            exponent = given[0] if isinstance(given, tuple) else given
        elif rate > 0 and problem.samples > 1:
            exponent = math.log(rate) / math.log(problem.samples)
        return cls(
            activation=activation,
            features=ActivationSeries.of(activation),
            link=LinkSeries.of(links[0]),
            phi=problem.dim / problem.samples,
            psi=problem.dim / problem.width,
            step_phi=problem.dim / problem.step_samples,
            ridge=problem.effective_ridge,
            noise_variance=problem.label_noise_variance,
            rate=rate,
            exponent=exponent,
            width=problem.width,
            gradient=problem.training.gradient,
        )

    @cached_property
    def traces(self) -> Traces:
        """m₁, m₂ and their derivatives at φ, ψ and λ."""
        return limiting_traces(self.features.c1, self.features.rest, self.phi, self.psi, self.ridge)

    @property
    def residual_moment(self) -> float:
        """E r² on the first step: E f² + σ_ε², plus E f₀² = c₁² + C with the exact gradient."""
        own = self.features.c1**2 + self.features.rest if self.gradient == "exact" else 0.0
        return self.link.second_moment + self.noise_variance + own

    @cached_property
    def direction_norm2(self) -> float:
        """s² = lim |β|², β = X̃₁ᵀr/n₁.

        "labels-only" (r = y): c_{*1}² + (d/n₁)(E f² + σ_ε²)  [moniri2024]. "exact" (r = y − f₀):
        the initial output f₀ = F₀a is of order one and adds c₁² + (d/n₁)(c₁² + C).
        """
        s2 = self.link.linear**2 + self.step_phi * self.residual_moment
        if self.gradient == "exact":
            s2 = s2 + self.features.c1**2
        if not np.all(np.asarray(s2) > 0):
            raise AssumptionError(
                "the labels vanish, so the first step has no direction; use a link or a noise "
                "variance that is not zero"
            )
        return s2

    @property
    def direction_norm(self) -> float:
        """s."""
        return math.sqrt(self.direction_norm2)

    @property
    def slope_variance(self) -> float:
        """Var σ'(Z) = E σ'² − c₁²."""
        return max(slope_moment(self.activation) - self.features.c1**2, 0.0)

    @cached_property
    def norm_inflation(self) -> float:
        """κ = (d/n₁) E r² (E σ'² − c₁²)/(c₁s)²: how much the step lengthens a neuron across β.

        Row j of the gradient is a_j(c₁β + noise), the noise of squared norm
        (d/n₁)E r²(E σ'² − c₁²) and orthogonal to β and w_j: |w_j|² grows by κ(ηc₁s a_j)². Small
        as a matrix, this shifts the mean of feature j by c₂ times as much, so that beside
        c₂(ηc₁X̃β)²(a²)ᵀ there is the equally strong c₂κ(ηc₁s)²1(a²)ᵀ, which [moniri2024] leaves
        out.
        """
        noise = self.step_phi * self.residual_moment
        return noise * self.slope_variance / (self.features.c1**2 * self.direction_norm2)

    def check_linear_part(self) -> None:
        if 1 not in self.features.active(1):
            raise AssumptionError(
                f"the activation has c₁ = E[σ(Z)Z] = {self.features.c1:.2g}: without a linear part "
                "the first step is not rank one and this theory does not apply. Use an activation "
                "with c₁ ≠ 0, or the conditional Gaussian theory, which makes no such assumption"
            )

    def check_centred_labels(self) -> None:
        mean = self.link.coefficients[0]
        if mean != 0 and 2 in self.features.active(2):
            raise AssumptionError(
                f"the labels have mean c₀ = {mean:.3g} and the activation c₂ ≠ 0: the first spike "
                "then learns a constant too, which the formulas degree by degree do not contain. "
                "Take the mean off the labels, or use the finite-step version (method "
                '"isotropic")'
            )
