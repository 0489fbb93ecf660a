"""What a two-layer neural network learns from one gradient step, and what error it then reaches.

State a Problem once; `simulate` trains networks with error bars, `predict` computes the errors
without sampling, `run` does both over a sweep and stores every row. `spectrum` and `degree` say
what the step has put into the features.
"""

import os as _os
import re as _re
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

# OpenBLAS's threads wait actively for their next product, for 2²⁸ ticks of the clock unless told
# otherwise: a tenth of a second in which they take the cores from the work between two products.
# It is read when NumPy is loaded; who loads it earlier, or says it themselves, has it their way.
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")

if TYPE_CHECKING:
    __version__: str

# The public names. Type checkers read this list as it stands, and so does `_HOME`: a module is
# loaded with the first use of a name, for `onegrad --help` must not wait for SciPy.
if TYPE_CHECKING:
    from onegrad.data.arrays import Arrays as Arrays
    from onegrad.data.digits import Digits as Digits
    from onegrad.data.fashion_mnist import FashionMnist as FashionMnist
    from onegrad.data.fit import fit_mixture as fit_mixture
    from onegrad.data.isotropic import Isotropic as Isotropic
    from onegrad.data.labels import ComponentLabels as ComponentLabels
    from onegrad.data.labels import SingleIndex as SingleIndex
    from onegrad.data.mixture import Mixture as Mixture
    from onegrad.data.multi_index import MultiIndex as MultiIndex
    from onegrad.degrees import DegreeReport as DegreeReport
    from onegrad.degrees import degree as degree
    from onegrad.errors import AssumptionError as AssumptionError
    from onegrad.errors import ConvergenceError as ConvergenceError
    from onegrad.errors import OnegradError as OnegradError
    from onegrad.errors import SpecError as SpecError
    from onegrad.estimators import OneStepClassifier as OneStepClassifier
    from onegrad.estimators import OneStepRegressor as OneStepRegressor
    from onegrad.gaussian.activation import Activation as Activation
    from onegrad.gaussian.activation import get_activation as get_activation
    from onegrad.gaussian.activation import hermite_activation as hermite_activation
    from onegrad.gaussian.activation import register_activation as register_activation
    from onegrad.learning.curve_of_rows import LearningCurve as LearningCurve
    from onegrad.learning.curve_of_rows import learning_curve as learning_curve
    from onegrad.predicted import Prediction as Prediction
    from onegrad.prediction import predict as predict
    from onegrad.prediction import predict_curve as predict_curve
    from onegrad.problem import Network as Network
    from onegrad.problem import Problem as Problem
    from onegrad.problem import Scaling as Scaling
    from onegrad.problem import Training as Training
    from onegrad.readouts import predict_readout as predict_readout
    from onegrad.results.audit_report import Audit as Audit
    from onegrad.results.estimates import Estimate as Estimate
    from onegrad.results.results import Results as Results
    from onegrad.results.rows import Row as Row
    from onegrad.results.scaling import ScalingExponent as ScalingExponent
    from onegrad.results.scaling import scaling_exponents as scaling_exponents
    from onegrad.results.summaries import Summary as Summary
    from onegrad.runs.audit import audit as audit
    from onegrad.runs.engines import Dask as Dask
    from onegrad.runs.engines import Local as Local
    from onegrad.runs.load import load_results as load_results
    from onegrad.runs.run import run as run
    from onegrad.runs.run import sweep as sweep
    from onegrad.simulation import Simulation as Simulation
    from onegrad.simulation import simulate as simulate
    from onegrad.spectra import LimitingSpectrum as LimitingSpectrum
    from onegrad.spectra import SpectrumReport as SpectrumReport
    from onegrad.spectra import limiting_spectrum as limiting_spectrum
    from onegrad.spectra import spectrum as spectrum
    from onegrad.theory.options import Theory as Theory

_HOME = {
    name: module
    for module, name in _re.findall(
        r"^    from (onegrad\.[\w.]+) import (\w+) as \2$",
        _Path(__file__).read_text(encoding="utf-8"),
        _re.MULTILINE,
    )
}
__all__ = sorted(["__version__", *_HOME])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onegrad")
    if name not in _HOME:
        raise AttributeError(f"module 'onegrad' has no attribute {name!r}")
    return getattr(_import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
