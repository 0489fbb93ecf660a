"""The published procedure, written straightforwardly: what `onegrad bench` measures against.

Plain NumPy, as one writes it from the formulas [demir2025, eqs. 1–8]: each activation and each
model starts from its own draws and shares nothing, the Gram matrix is a general product, the
ridge system is solved by LU, and the test error is measured on a test set. It uses nothing of the
rest of the package, so that a test can hold the two together (tests/agreement/test_plain.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from scipy.integrate import quad
from scipy.special import expit

Array = np.ndarray
Function = Callable[[Array], Array]


def relu(z: Array) -> Array:
    return np.maximum(z, 0)


def relu_slope(z: Array) -> Array:
    return (z > 0) * 1.0


def tanh_slope(z: Array) -> Array:
    return 1 - np.tanh(z) ** 2


def sigmoid_slope(z: Array) -> Array:
    return expit(z) * (1 - expit(z))


ACTIVATIONS: dict[str, tuple[Function, Function]] = {
    "relu": (relu, relu_slope),
    "tanh": (np.tanh, tanh_slope),
    "sigmoid": (expit, sigmoid_slope),
}


@dataclass(frozen=True)
class Ridge:
    """Readout and errors of one model."""

    coefficients: Array
    train_error: float
    train_objective: float


@dataclass(frozen=True)
class Expansion:
    """σ(bz) ≈ Σ_{j≤degree} coefficients[j]·H_j(z) + remainder·noise."""

    scale: float
    coefficients: Array
    remainder: float


def step(weights: Array, a: Array, x: Array, y: Array, activation: str, rate: float) -> Array:
    """Ŵ = W + (η/m)·(σ'(WXᵀ) ⊙ a(y − f)ᵀ)X, one gradient step on ½·MSE."""
    sigma, slope = ACTIVATIONS[activation]
    z = weights @ x.T
    error = y - a @ sigma(z)
    gradient = (slope(z) * np.outer(a, error)) @ x / len(y)
    return weights + rate * gradient


def network_features(weights: Array, x: Array, activation: str) -> Array:
    """σ(XWᵀ), m × k."""
    return ACTIVATIONS[activation][0](x @ weights.T)


@lru_cache
def expand(activation: str, degree: int, scale: float) -> Expansion:
    """h_j = E σ(bZ)H_j(Z), over j!, and h*² = E σ(bZ)² − Σ h_j²/j!, by quadrature, once."""

    def sigma(z: float) -> float:
        return float(ACTIVATIONS[activation][0](np.array(z)))

    def mean(function: Callable[[float], float]) -> float:
        def integrand(z: float) -> float:
            return function(z) * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

        # in two halves: relu has its breakpoint at zero
        halves = [
            quad(integrand, *ends, epsabs=1e-13, epsrel=1e-12) for ends in ((-12, 0), (0, 12))
        ]
        return float(halves[0][0] + halves[1][0])

    h = [
        mean(lambda z, j=j: sigma(scale * z) * float(hermeval(z, [0] * j + [1])))  # type: ignore[misc]
        for j in range(degree + 1)
    ]
    kept = sum(h[j] ** 2 / math.factorial(j) for j in range(degree + 1))
    square = mean(lambda z: sigma(scale * z) ** 2)
    coefficients = np.array([h[j] / math.factorial(j) for j in range(degree + 1)])
    return Expansion(scale, coefficients, math.sqrt(max(square - kept, 0)))


def hermite_features(weights: Array, x: Array, model: Expansion, noise: Array | None) -> Array:
    """Σ_j h_j/j!·H_j(XWᵀ/b) + h*·noise, m × k."""
    features = hermeval(x @ weights.T / model.scale, model.coefficients)
    if noise is not None:
        features = features + model.remainder * noise
    return np.asarray(features)


def ridge(features: Array, y: Array, strength: float) -> Ridge:
    """argmin (1/m)‖y − Φa‖² + λ‖a‖² = (ΦᵀΦ/m + λI)⁻¹Φᵀy/m."""
    m, k = features.shape
    # a copy, because NumPy halves the product of an array with its own transpose
    gram = features.T @ features.copy() / m + strength * np.eye(k)
    a = np.linalg.solve(gram, features.T @ y / m)
    error = float(np.mean((y - features @ a) ** 2))
    return Ridge(a, error, error + strength * float(np.sum(a**2)))


@dataclass(frozen=True)
class Tested:
    """Mean squared error on a test set, and the variance of that mean."""

    mean: float
    variance: float


def tested(features: Array, y: Array, a: Array) -> Tested:
    squares = (y - features @ a) ** 2
    return Tested(float(np.mean(squares)), float(np.var(squares)) / len(y))


@dataclass(frozen=True)
class Setting:
    """The numbers of one problem: a mixture of two spiked components, labels relu(ξᵀx)."""

    dim: int
    width: int
    samples: int
    rate: float
    spread: float
    ridge: float
    degree: int


def repetition(
    setting: Setting, activation: str, model: str, rng: np.random.Generator, test_factor: int = 5
) -> tuple[Ridge, Tested]:
    """One seed of one curve: draw, step, fit, test. Readout with its errors, and the test error.

    Cost: 2kmn·(3 + test_factor) operations in products with the data, 2mk² in the Gram matrix and
    ⅔k³ in the solution. Memory in bytes: 8·test_factor·m·(n + 2k) and more while testing.
    """
    n, k, m = setting.dim, setting.width, setting.samples
    spikes = rng.standard_normal((2, n))
    spikes /= np.linalg.norm(spikes, axis=1)[:, None]
    teacher = rng.standard_normal(n)
    # ‖ξ‖ = 1/√‖Σ̄‖ with Σ̄ = I + θ/2·(γ₁γ₁ᵀ + γ₂γ₂ᵀ)
    norm = 1 + setting.spread / 2 * (1 + abs(spikes[0] @ spikes[1]))
    teacher /= np.linalg.norm(teacher) * math.sqrt(norm)

    def sample(count: int) -> tuple[Array, Array]:
        component = rng.integers(2, size=count)
        along = math.sqrt(setting.spread) * rng.standard_normal(count)
        x = rng.standard_normal((count, n)) + along[:, None] * spikes[component]
        return x, relu(x @ teacher)

    trace = n + setting.spread
    weights = rng.standard_normal((k, n)) / math.sqrt(trace)
    a = rng.standard_normal(k) / k
    x_step, y_step = sample(m)
    x, y = sample(m)
    x_test, y_test = sample(test_factor * m)
    trained = step(weights, a, x_step, y_step, activation, setting.rate)
    if model == "network":
        fitted = ridge(network_features(trained, x, activation), y, setting.ridge)
        return fitted, tested(
            network_features(trained, x_test, activation), y_test, fitted.coefficients
        )
    expansion = expand(activation, setting.degree, math.sqrt(n / trace))
    noise = rng.standard_normal((m, k))
    fitted = ridge(hermite_features(trained, x, expansion, noise), y, setting.ridge)
    noise = rng.standard_normal((test_factor * m, k))
    features = hermite_features(trained, x_test, expansion, noise)
    return fitted, tested(features, y_test, fitted.coefficients)
