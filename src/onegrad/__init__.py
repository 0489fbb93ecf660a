"""What a two-layer neural network learns from one gradient step, and what error it then reaches.

State a Problem once; `simulate` trains networks with error bars, `predict` computes the errors
without sampling, `run` does both over a sweep and stores every row. `spectrum` and `degree` say
what the step has put into the features.
"""

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# OpenBLAS's threads wait actively for their next product, for 2²⁸ ticks of the clock unless told
# otherwise: a tenth of a second in which they take the cores from the work between two products.
# It is read when NumPy is loaded; who loads it earlier, or says it themselves, has it their way.
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")

# Public names and their modules. A module is loaded with the first use of a name, for
# `onegrad --help` must not wait for SciPy. Type checkers read the second list.
_PUBLIC = {
    "onegrad.data.arrays": ("Arrays",),
    "onegrad.data.digits": ("Digits",),
    "onegrad.data.fashion_mnist": ("FashionMnist",),
    "onegrad.data.isotropic": ("Isotropic",),
    "onegrad.data.labels": ("ComponentLabels", "SingleIndex"),
    "onegrad.data.mixture": ("Mixture",),
    "onegrad.data.mixture_fit": ("fit_mixture",),
    "onegrad.data.multi_index": ("MultiIndex",),
    "onegrad.degree.report": ("DegreeReport", "degree"),
    "onegrad.errors": ("AssumptionError", "ConvergenceError", "OnegradError", "SpecError"),
    "onegrad.gaussian.activation": (
        "Activation",
        "get_activation",
        "hermite_activation",
        "register_activation",
    ),
    "onegrad.neurons.report": ("Neurons", "neurons"),
    "onegrad.predict.layers": ("predict_readout",),
    "onegrad.predict.predict": ("predict", "predict_curve"),
    "onegrad.predict.prediction": ("Prediction",),
    "onegrad.problem": ("Network", "Problem", "Scaling", "Training"),
    "onegrad.results.estimates": ("Estimate",),
    "onegrad.results.exponents": ("ScalingExponent", "scaling_exponents"),
    "onegrad.results.results": ("Results",),
    "onegrad.results.rows": ("Row",),
    "onegrad.results.summaries": ("Summary",),
    "onegrad.runs.engines": ("Dask", "Local"),
    "onegrad.runs.load": ("load_results",),
    "onegrad.runs.run": ("run", "sweep"),
    "onegrad.simulate.simulate": ("Simulation", "simulate"),
    "onegrad.spectrum.report": (
        "LimitingSpectrum",
        "SpectrumReport",
        "limiting_spectrum",
        "spectrum",
    ),
    "onegrad.tabular.estimators": ("OneStepClassifier", "OneStepRegressor"),
    "onegrad.tabular.learning.curve": ("LearningCurve", "learning_curve"),
    "onegrad.theory.options": ("Theory",),
    "onegrad.validate.audit": ("audit",),
    "onegrad.validate.audit_report": ("Audit",),
}
if TYPE_CHECKING:
    from onegrad.data.arrays import Arrays as Arrays
    from onegrad.data.digits import Digits as Digits
    from onegrad.data.fashion_mnist import FashionMnist as FashionMnist
    from onegrad.data.isotropic import Isotropic as Isotropic
    from onegrad.data.labels import ComponentLabels as ComponentLabels
    from onegrad.data.labels import SingleIndex as SingleIndex
    from onegrad.data.mixture import Mixture as Mixture
    from onegrad.data.mixture_fit import fit_mixture as fit_mixture
    from onegrad.data.multi_index import MultiIndex as MultiIndex
    from onegrad.degree.report import DegreeReport as DegreeReport
    from onegrad.degree.report import degree as degree
    from onegrad.errors import AssumptionError as AssumptionError
    from onegrad.errors import ConvergenceError as ConvergenceError
    from onegrad.errors import OnegradError as OnegradError
    from onegrad.errors import SpecError as SpecError
    from onegrad.gaussian.activation import Activation as Activation
    from onegrad.gaussian.activation import get_activation as get_activation
    from onegrad.gaussian.activation import hermite_activation as hermite_activation
    from onegrad.gaussian.activation import register_activation as register_activation
    from onegrad.neurons.report import Neurons as Neurons
    from onegrad.neurons.report import neurons as neurons
    from onegrad.predict.layers import predict_readout as predict_readout
    from onegrad.predict.predict import predict as predict
    from onegrad.predict.predict import predict_curve as predict_curve
    from onegrad.predict.prediction import Prediction as Prediction
    from onegrad.problem import Network as Network
    from onegrad.problem import Problem as Problem
    from onegrad.problem import Scaling as Scaling
    from onegrad.problem import Training as Training
    from onegrad.results.estimates import Estimate as Estimate
    from onegrad.results.exponents import ScalingExponent as ScalingExponent
    from onegrad.results.exponents import scaling_exponents as scaling_exponents
    from onegrad.results.results import Results as Results
    from onegrad.results.rows import Row as Row
    from onegrad.results.summaries import Summary as Summary
    from onegrad.runs.engines import Dask as Dask
    from onegrad.runs.engines import Local as Local
    from onegrad.runs.load import load_results as load_results
    from onegrad.runs.run import run as run
    from onegrad.runs.run import sweep as sweep
    from onegrad.simulate.simulate import Simulation as Simulation
    from onegrad.simulate.simulate import simulate as simulate
    from onegrad.spectrum.report import LimitingSpectrum as LimitingSpectrum
    from onegrad.spectrum.report import SpectrumReport as SpectrumReport
    from onegrad.spectrum.report import limiting_spectrum as limiting_spectrum
    from onegrad.spectrum.report import spectrum as spectrum
    from onegrad.tabular.estimators import OneStepClassifier as OneStepClassifier
    from onegrad.tabular.estimators import OneStepRegressor as OneStepRegressor
    from onegrad.tabular.learning.curve import LearningCurve as LearningCurve
    from onegrad.tabular.learning.curve import learning_curve as learning_curve
    from onegrad.theory.options import Theory as Theory
    from onegrad.validate.audit import audit as audit
    from onegrad.validate.audit_report import Audit as Audit

_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted(["__version__", *_HOME])


class _Package(_ModuleType):
    """`onegrad.predict` is the function, also after something has imported the folder predict/:
    the import system binds a folder's module to its parent under the folder's name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'onegrad' has no attribute {name!r}")
    return getattr(_import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
