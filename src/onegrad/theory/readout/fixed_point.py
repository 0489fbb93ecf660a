"""The fixed point of the conditional Gaussian theory.

The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² over m samples, whose features given κ = κ_s are
ν_s + D_s Ŵ_⊥ x_⊥ + E_s^{1/2} g (layers/features.py), with Ŵ_⊥ (k × n') of independent rows of norm
b_i. Sums over neurons are sums over types i with multiplicities c_i. Equations are named as in
docs/book/fixed-point.md. Arrays of a stack of problems have a leading axis.

A sample at node s that is left out has the residual u = y − f(x). When it is fitted as well, its
prediction moves by χ_s times its new residual, so that this is the minimum over f' of
(y − f')² + (f' − f)²/χ_s,

    y − f' = u/(1 + χ_s).

So a node counts in the sums over samples with w_s = ω_s/(1 + χ_s), and the mean squared residual
of the training samples is 1/(1 + χ_s)² times that of fresh ones (eqs. gains and test-and-train).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.features import NodeFeatures, one_of
from onegrad.theory.readout.anderson import Acceleration
from onegrad.theory.readout.woodbury import diagonal, product, woodbury_factors


def node_weights(weights: Array, chi: Array, softness: Array | float = 1.0) -> Array:
    """w_s = ω_s/(c_s + χ_s), c_s = 1; other losses have a `softness` c_s of their own
    (reweighted.py)."""
    return np.asarray(weights / (softness + chi))


def response_roots(weights: Array, chi: Array, softness: Array | float = 1.0) -> Array:
    """√D_s with D_s = −∂w_s/∂χ_s = ω_s/(c_s + χ_s)²."""
    return np.asarray(np.sqrt(weights) / (softness + chi))


def training_residuals(fresh: Array, chi: Array) -> Array:
    """Mean squared residuals of training samples: t_s/(1 + χ_s)², t_s the error of fresh ones."""
    return np.asarray(fresh / (1.0 + chi) ** 2)


@dataclass(frozen=True)
class FixedPoint:
    """Gains m_i > 0 and responses χ_s ≥ 0 that solve eqs. gains, bulk-matrices and response, and
    what it took."""

    features: NodeFeatures
    samples: Array
    ridge: Array
    gain: Array  # (T,) m_i
    chi: Array  # (S,) χ_s
    iterations: Array
    residual: Array
    softness: Array  # (S,) c_s, ones for the squared loss

    @property
    def weights(self) -> Array:
        """(S,) w_s of eq. gains."""
        return node_weights(self.features.weights, self.chi, self.softness)

    @property
    def roots(self) -> Array:
        """(S,) √D_s of eq. variance."""
        return response_roots(self.features.weights, self.chi, self.softness)

    def take(self, index: int) -> FixedPoint:
        """One problem of a stack."""
        return one_of(self, index, features=self.features.take(index))


def _map(features: NodeFeatures, samples: Array, ridge: Array, softness: Array, z: Array) -> Array:
    """The right-hand sides of the fixed point at z = (log m_i, log χ_s), as logarithms.

        w_s = ω_s/(c_s + χ_s),  c_s = 1,  W = diag(w)                         losses/  (eq. gains)
        Θ = (1/n') Σ_i c_i m_i b_i² d_i d_iᵀ,  P = (W⁻¹ + Θ)⁻¹  (eq. bulk-matrices)
        1/m_i = λ + Σ_s w_s e_is + b_i² d_iᵀ P d_i  (eq. gains)
        χ_s = (1/m) X_s,  X_s = Σ_i c_i m_i e_is + n' [Θ − ΘPΘ]_ss  (eq. response)

    Where there are harmonics, the last terms of eqs. gains and response are sums over blocks of
    tables (eq. blocks).
    """
    types = features.bulk.shape[-1]
    both = np.exp(z)
    gain, chi = both[..., :types], both[..., types:]
    w = node_weights(features.weights, chi, softness)
    inverse = ridge[..., None] + product(features.extra, w)
    x = product(features.extra.mT, features.counts * gain)
    for block in woodbury_factors(features, gain, w):
        inverse += block.copies * diagonal(block.u, block.gh)
        x += block.copies * block.coordinates[..., None] * diagonal(block.v, block.k)
    x = np.maximum(x / samples[..., None], 1e-300)
    return np.log(np.concatenate([1.0 / inverse, x], axis=-1))


def solve_fixed_point(
    features: NodeFeatures,
    samples: float | Array,
    ridge: float | Array,
    *,
    softness: Array | None = None,
    start: FixedPoint | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
) -> FixedPoint:
    """Solve eqs. gains, bulk-matrices and response by Anderson acceleration in (log m, log χ).

    The map is monotone and scalable in these variables, so the solution is unique and plain
    iteration converges; acceleration only makes it quick, and is restarted when it does not
    help. Raises ConvergenceError with advice if `max_iterations` is not enough. An iteration
    costs O((T + S) R²). Problems of a stack converge each on its own.

    softness : (S,) c_s, ones unless given; start : where to begin
    """
    m, ridges = np.asarray(samples, float), np.asarray(ridge, float)
    soft = np.ones_like(features.weights) if softness is None else softness
    if start is None:
        z = first_guess(features, m, ridges)
    else:
        z = np.log(np.concatenate([start.gain, np.maximum(start.chi, 1e-300)], axis=-1))
    shape, types = z.shape, features.bulk.shape[-1]
    z = z.reshape(-1, shape[-1])
    found, done = z.copy(), np.zeros(len(z), bool)
    iterations, left = np.zeros(len(z), int), np.full(len(z), np.inf)
    acceleration = Acceleration()
    for iteration in range(1, max_iterations + 1):
        image = _map(features, m, ridges, soft, z.reshape(shape)).reshape(z.shape)
        change = image - z
        residual = np.abs(change).max(axis=1)
        if not np.all(np.isfinite(residual)):
            raise ConvergenceError(
                "the fixed point of the theory left the numbers a computer can hold; ridge = "
                f"{ridges.min():.3g} is probably too small, or a label or spike too large."
            )
        new = ~done & (residual < tolerance)
        found[new], left[new], iterations[new] = image[new], residual[new], iteration
        done |= new
        if np.all(done):
            both, lead = np.exp(found).reshape(shape), shape[:-1]
            return FixedPoint(
                features, m, ridges, both[..., :types], both[..., types:],
                iterations.reshape(lead), left.reshape(lead), soft,
            )  # fmt: skip
        change[done] = 0.0
        z = z + acceleration.step(z, change, residual)
    raise ConvergenceError(
        f"the fixed point of the theory moved by {residual[~done].max():.1e} after "
        f"{max_iterations} iterations (wanted {tolerance:.0e}). A larger ridge than "
        f"{ridges.min():.3g} converges faster, above all where the width is close to the number "
        "of samples."
    )


def first_guess(features: NodeFeatures, samples: Array, ridges: Array) -> Array:
    """(log m, log χ) without any response."""
    w = features.weights
    inverse = ridges[..., None] + product(features.extra, w)
    inverse += product(features.slope**2, w) * features.bulk**2
    for harmonic in features.harmonics:
        inverse += harmonic.copies * product(harmonic.table**2, w)
    first = product(features.extra.mT, features.counts / inverse) / samples[..., None]
    return np.concatenate([-np.log(inverse), np.log(np.maximum(first, 1e-3))], axis=-1)
