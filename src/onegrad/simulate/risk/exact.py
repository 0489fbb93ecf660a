"""The test error E(y − f(x))² of a trained model under its own population, without a test set.

Given the component of the mixture, a label g(ξᵀx) and features σ(ŵ_iᵀx) are functions of jointly
Gaussian projections. With their Hermite expansions the error of y − f splits by orders:

    risk = Σ_c ρ_c [ (Σ_α b_α ĉ_0α)² + gᵀΣ_c g + Σ_α b_α² (E f_α² − ĉ_0α² − ĉ_1α²)
                     + Σ_{α≠β} b_αb_β Σ_{r≥2} ĉ_rα ĉ_rβ ρ_αβ^r ]  + noise,

where α runs over the label (b = 1) and the neurons (b = −a_i), ĉ_rα = E f_α H_r/√r! at the mean
and variance of its projection w_αᵀx in component c, g = Σ_α b_α ĉ_1α/√q_α · w_α, and ρ_αβ are the
correlations. Every line but the last is exact at O(kn) cost; the last one is in
`pairs`. A bulk covariance Λ other than the identity is taken into the weights and directions: the
inputs are Λ^{−½}x then. Means other than zero only shift the coefficients. Which model has which
predictor is told by its `FeatureMap.predictor`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array, host, like
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.simulate.network.gram import precision
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk.component import ComponentRisk, Neurons, Several, Single
from onegrad.simulate.risk.pairs import PairSum, add_block

_ACCEPTED = 1e-3  # largest estimated error, relative to the risk


@dataclass(frozen=True)
class ExactRisk:
    """E(y − f)², an estimate of the error of that number, and how it was computed."""

    value: float
    error: float
    method: str


Risk = ExactRisk | AssumptionError | ConvergenceError  # or why there is none


@dataclass(frozen=True)
class Predictor:
    """f(x) = neurons + singles + constant, and the variance of the model's own fresh noise."""

    neurons: Neurons | None = None
    singles: tuple[Single, ...] = ()
    constant: float = 0.0
    noise: float = 0.0


def predictor_risks(
    trial: Trial, predictors: Sequence[Predictor], dtype: np.dtype | None = None, output: int = 0
) -> list[Risk]:
    """Test errors of predictors in this trial's population, noise of labels and model included, or
    why there is none: predictors with the same weights share the powers of the correlations between
    their neurons (eq. exact-risk).

    Closed forms for centred relu [cho2009] and erf [williams1998] where they are faster, else
    Mehler's series with its error. Cost: k²n operations for ŴŴᵀ (shared by all models with the
    same weights, in single precision from k = 512 on) and k²(R + 5)/2 elementwise ones per
    component; memory 2k² to 4k² bytes for ŴŴᵀ. `dtype` overrules the precision of that part.
    `output`: of several, the one that is meant. A ConvergenceError if the estimated error exceeds
    0.1 % of the risk.
    """
    found: list[Risk] = []
    ready: dict[int, list[ComponentRisk]] = {}
    for i, predictor in enumerate(predictors):
        try:
            ready[i] = _prepared(trial, predictor, dtype, output)
        except (AssumptionError, ConvergenceError) as error:
            # Its frames would keep the trial's arrays alive
            found.append(error.with_traceback(None))
        else:
            found.append(ExactRisk(math.nan, math.inf, ""))
    _add_pairs(trial, {i: (predictors[i], components) for i, components in ready.items()}, dtype)
    for i, components in ready.items():
        found[i] = _total(trial.label_noise_variance + predictors[i].noise, components)
    return found


def _total(noise: float, components: list[ComponentRisk]) -> ExactRisk | ConvergenceError:
    value, error, order = noise, 0.0, 0
    for component in components:
        part = component.result()
        value += component.weight * part.value
        error += component.weight * part.error
        order = max(order, part.order)
    if not (math.isfinite(value) and error <= _ACCEPTED * value):
        return ConvergenceError(
            f"the exact risk {value:.4g} is only known to ±{error:.1e}: the neurons are too "
            "strongly correlated for the series of this activation. Use a sampled test set, or "
            "lower the rate or the spread"
        )
    return ExactRisk(value, error, f"Mehler series, order {order}" if order else "closed form")


def _prepared(
    trial: Trial, predictor: Predictor, dtype: np.dtype | None, output: int
) -> list[ComponentRisk]:
    """The components, complete but for the pairs of neurons."""
    if not trial.problem.data.known:
        raise AssumptionError(
            "the exact risk needs a known population; for images and arrays use a test set"
        )
    components = _components(trial, predictor, output)
    if predictor.neurons is not None:
        _add_neurons(trial, predictor.neurons, components, dtype)
    return components


def _components(trial: Trial, predictor: Predictor, output: int) -> list[ComponentRisk]:
    population, teacher = trial.instance.population, trial.instance.teacher
    seen, whitened = population.seen, population.whitened
    noise = trial.label_noise_variance + predictor.noise
    components = []
    for c in np.flatnonzero(population.weights):
        singles = [Single(s.activation, seen(s.direction), -s.factor) for s in predictor.singles]
        constant = -predictor.constant
        several = None
        if teacher.joint is not None:
            several = Several(teacher.joint, seen(teacher.direction.T).T, teacher.kept)
        elif teacher.values is not None:
            constant += teacher.kept * float(np.reshape(teacher.values[c], -1)[output])
        else:
            link = teacher.links[c if len(teacher.links) > 1 else 0]
            singles.append(Single(link, seen(teacher.direction), teacher.kept))
        components.append(ComponentRisk(whitened, int(c), singles, constant, noise, several))
    return components


def _add_neurons(
    trial: Trial, neurons: Neurons, components: list[ComponentRisk], dtype: np.dtype | None
) -> None:
    """Each product with Ŵ once for all components: columns and slopes."""
    weights = trial.seen_weights(neurons.weights)
    dtype = np.dtype(dtype or precision(weights))
    parts = [component.columns for component in components]
    if neurons.basis is not None:
        parts.append(neurons.basis)
    product, norms = trial.grams.products(weights, np.hstack(parts))
    products = np.split(product, np.cumsum([p.shape[1] for p in parts])[:-1], axis=1)
    along = products.pop() if neurons.basis is not None else None
    first = [
        component.attach(neurons, norms, product, along)
        for component, product in zip(components, products, strict=True)
    ]
    for component, vector in zip(components, first, strict=True):
        # one by one: a product with few rows is slower than as many with vectors
        component.add_slope(host(like(vector, weights) @ weights), dtype)


def _add_pairs(
    trial: Trial,
    ready: dict[int, tuple[Predictor, list[ComponentRisk]]],
    dtype: np.dtype | None,
) -> None:
    """Blocks of ŴŴᵀ, once for all models with the same weights."""
    by_weights: dict[int, tuple[Array, list[list[PairSum]]]] = {}
    for predictor, components in ready.values():
        if predictor.neurons is None:
            continue
        weights = trial.seen_weights(predictor.neurons.weights)
        groups = by_weights.setdefault(id(weights), (weights, []))[1]
        for component in components:
            pairs = component.pairs
            if pairs is None or not pairs.needed:
                continue
            alike = next((group for group in groups if pairs.shares(group[0])), None)
            if alike is None:
                groups.append([pairs])
            else:
                alike.append(pairs)
    for weights, groups in by_weights.values():
        if groups:
            for start, block in trial.grams.blocks(weights, dtype or precision(weights)):
                add_block(groups, start, block)
