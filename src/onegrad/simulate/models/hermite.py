"""The Hermite model: σ replaced by a polynomial plus noise of the same variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from onegrad.compute.backend import Array, pieces
from onegrad.gaussian.activation import Activation, hermite_activation
from onegrad.gaussian.polynomials import hermite_series, sqrt_factorial
from onegrad.simulate.models.base import Fitted, Mark, Model, fit_features
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.component import Neurons
from onegrad.simulate.risk.exact import Predictor

MOST_DEGREES = 30


@dataclass(frozen=True)
class HermiteFeatures:
    """σ̂_ℓ(Wx) = Σ_{j≤ℓ} h_j/j!·H_j(Wx/b) + h* z  [demir2025, Thm. 2] (eq. hermite).

    h_j = E[σ(bZ)H_j(Z)], h*² = E σ(bZ)² − Σ_{j≤ℓ} h_j²/j!, b the bulk scale of a preactivation;
    z is fresh for every sample and neuron.
    """

    weights: Array
    scale: float
    coefficients: Array
    remainder: float

    @classmethod
    def of(
        cls, activation: Activation, weights: Array, scale: float, degree: int
    ) -> HermiteFeatures:
        return cls(weights, scale, *_expansion(activation, degree, scale))

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        product, out = inputs.workspace(self.weights)
        for rows in pieces(product):
            hermite_series(self.coefficients, product[rows], out[rows], self.scale)
        return out, self.remainder**2

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        polynomial = hermite_activation(*(float(c) for c in self.coefficients))
        neurons = Neurons(polynomial, self.weights, a, self.scale)
        return Predictor(neurons, noise=self.remainder**2 * float(a @ a))


@lru_cache(maxsize=256)
def _expansion(activation: Activation, degree: int, scale: float) -> tuple[Array, float]:
    """h_j/j! and h*: the same for every repetition of a problem."""
    coefficients = activation.projections(degree, scale) / sqrt_factorial(degree) ** 2
    coefficients.setflags(write=False)
    return coefficients, activation.remainder(degree, scale)


def fit_hermite(trial: Trial, degree: int | None = None) -> Fitted:
    """The polynomial model of the trained network; the degree is set, or follows from the rule.

    All degrees share their noise.
    """
    return fit_features(trial, _features(trial, trial.updated_weights, degree), noise="hermite")


def _features(trial: Trial, weights: Array, degree: int | None) -> HermiteFeatures:
    problem = trial.problem
    degree = trial.degree if degree is None else degree
    return HermiteFeatures.of(problem.activation, weights, problem.bulk_scale, degree)


def untrained_hermite(trial: Trial, degree: int | None = None) -> HermiteFeatures:
    """Features of the polynomial model at the initial weights."""
    return _features(trial, trial.weights, degree)


def _of_degree(text: str) -> Model | None:
    """hermite:1, hermite:2, …: the degree fixed, whatever the rule or compare.degree says."""
    if not text.isdecimal() or not 1 <= int(text) <= MOST_DEGREES or text != str(int(text)):
        return None
    return Model(
        f"hermite:{text}",
        f"activation → polynomial of degree {text}, plus noise",
        Mark("d" if text == "1" else "p", size=7.0),
        fit=partial(fit_hermite, degree=int(text)),
        cites=("demir2025",),
        noise="hermite",
        untrained=partial(untrained_hermite, degree=int(text)),
    )


MODEL = Model(
    "hermite",
    "activation → polynomial of the degree that data spread and step ask for, plus noise",
    Mark("s"),
    fit=fit_hermite,
    cites=("demir2025",),
    polynomial=True,
    noise="hermite",
    untrained=untrained_hermite,
    version=2,  # since 0.1: the degree rule
    variant=_of_degree,
    variants=f"hermite:1 to hermite:{MOST_DEGREES}",
)
