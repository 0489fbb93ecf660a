"""What a two-layer neural network learns from one gradient step, and what error it then reaches."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

__version__ = _version("onegrad")

# Public name -> module. Loaded on first use: `onegrad --help` must not wait for SciPy.
_HOME = {
    "Activation": "activation",
    "get_activation": "activation",
    "hermite_activation": "activation",
    "register": "activation",
    "Isotropic": "data.isotropic",
    "Mixture": "data.mixture",
    "Arrays": "data.arrays",
    "FashionMnist": "data.fashion_mnist",
    "Digits": "data.digits",
    "fit_mixture": "data.fit",
    "SingleIndex": "data.labels",
    "ComponentLabels": "data.labels",
    "Network": "problem",
    "Training": "problem",
    "Scaling": "problem",
    "Problem": "problem",
    "Estimate": "experiments.results",
    "simulate": "experiments.simulate",
    "degree_report": "experiments.degree",
    "run": "experiments.run",
    "load": "experiments.load",
    "predict": "experiments.predict",
    "predict_curve": "experiments.predict",
    "OneStepClassifier": "estimators",
    "OneStepRegressor": "estimators",
    "SpecError": "errors",
    "AssumptionError": "errors",
    "ConvergenceError": "errors",
}
__all__ = [
    "Activation",
    "Arrays",
    "AssumptionError",
    "ComponentLabels",
    "ConvergenceError",
    "Digits",
    "Estimate",
    "FashionMnist",
    "Isotropic",
    "Mixture",
    "Network",
    "OneStepClassifier",
    "OneStepRegressor",
    "Problem",
    "Scaling",
    "SingleIndex",
    "SpecError",
    "Training",
    "__version__",
    "degree_report",
    "fit_mixture",
    "get_activation",
    "hermite_activation",
    "load",
    "predict",
    "predict_curve",
    "register",
    "run",
    "simulate",
]

if TYPE_CHECKING:
    from onegrad.activation import Activation, get_activation, hermite_activation, register
    from onegrad.data.arrays import Arrays
    from onegrad.data.digits import Digits
    from onegrad.data.fashion_mnist import FashionMnist
    from onegrad.data.fit import fit_mixture
    from onegrad.data.isotropic import Isotropic
    from onegrad.data.labels import ComponentLabels, SingleIndex
    from onegrad.data.mixture import Mixture
    from onegrad.errors import AssumptionError, ConvergenceError, SpecError
    from onegrad.estimators import OneStepClassifier, OneStepRegressor
    from onegrad.experiments.degree import degree_report
    from onegrad.experiments.load import load
    from onegrad.experiments.predict import predict, predict_curve
    from onegrad.experiments.results import Estimate
    from onegrad.experiments.run import run
    from onegrad.experiments.simulate import simulate
    from onegrad.problem import Network, Problem, Scaling, Training


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'onegrad' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"onegrad.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
