"""What the worker processes compute for a page: one point, one view, numbers ready for JSON."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError, OnegradError
from onegrad.gaussian.polynomials import sqrt_factorial
from onegrad.neurons.report import neurons as report_neurons
from onegrad.page.scatter import scatter
from onegrad.page.steps import after_steps, learned_of_network, theory_after_steps
from onegrad.page.untrained import without_step
from onegrad.predict.predict import predict, predict_curve
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.simulate.models.network import fit_network
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment
from onegrad.spectrum import report as spectra
from onegrad.spectrum.report import MatrixSpectrum
from onegrad.theory.options import ACCURATE, DRAFT, Theory
from onegrad.theory.spectra.functions import DEGREES
from onegrad.theory.spectra.limits import MatrixLimit, spectral_limit

_DEGREES = 7
_GRID = 240
_BINS = 60
_NEURONS = 500  # drawn as dots
_DIRECTIONS = 8  # to choose from
_BEYOND = 1.3  # histograms end here, in units of the bulk's edge
_NAMES = (
    "test_error", "train_error", "train_objective", "relative_error", "misclassification",
    "test_loss", "train_loss", "label_variance", "method", "error_estimate",
)  # fmt: skip


Tables = Mapping[str, Any]


def perform(kind: str, tables: Sequence[Tables], options: Mapping[str, Any]) -> list[Any]:
    """One answer for each of the tables; a failure is {"error": advice}."""
    if kind in _ALONE:
        return [_guarded(_ALONE[kind], t, options) for t in tables]
    answers = _guarded(_TOGETHER[kind], tables, options)
    return answers if isinstance(answers, list) else [answers] * len(tables)


def _guarded(compute: Callable[..., Any], what: Any, options: Mapping[str, Any]) -> Any:
    """What it computes, or {"error": why not}: a worker survives whatever it is asked for."""
    try:
        return finite(compute(what, **options))
    except OnegradError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "this is too large for the memory of one worker of the page"}
    except Exception as error:
        return {"error": fault(error)}


def fault(error: Exception) -> str:
    """What the page says of a failure that nobody foresaw."""
    return f"this failed unexpectedly ({type(error).__name__}: {error}); it is a fault of onegrad"


def finite(value: Any) -> Any:
    """Arrays as lists, and NaN and infinity, which JSON does not know, as null."""
    if isinstance(value, Mapping):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def theory(tables: Sequence[Tables], seed: int = 0, **asked: Any) -> list[dict[str, Any]]:
    """Errors of the points of a curve, by `predict_curve`: smooth ones are interpolated."""
    return [_errors(one) for one in predict_curve(_problems(tables), _theory(**asked), rng=seed)]


def point(tables: Tables, seed: int = 0, **asked: Any) -> dict[str, Any]:
    """Errors of one setting by `onegrad predict`; rate : η; size : of the step, 1 is large."""
    problem = Problem.from_spec(tables)
    return _errors(predict(problem, _theory(**asked), rng=seed, throw=False)) | {
        "rate": problem.rate, "size": problem.step_size,
    }  # fmt: skip


def map_cells(
    tables: Sequence[Tables], gain: bool, seed: int = 0, **asked: Any
) -> list[dict[str, Any]]:
    """Points of the map: errors, degree of the equivalent polynomial, gain by the step.

    The gain is 1 − (test error)/(test error of the same network without the step).
    """
    problems = _problems(tables)
    options = _theory(**asked)
    cells = [_errors(found) for found in predict_curve(problems, options, rng=seed)]
    for problem, cell in zip(problems, cells, strict=True):
        if "error" not in cell:
            cell["degree"] = None
            with contextlib.suppress(AssumptionError):
                cell["degree"] = problem.degree
    if gain:
        untrained = [without_step(problem) for problem in problems]
        before = predict_curve(untrained, options, rng=seed)
        for cell, without in zip(cells, before, strict=True):
            # nothing to gain where there is no error, or none known (NaN)
            if "error" not in cell and without.test_error > 0:
                cell["gain"] = 1 - cell["test_error"] / without.test_error
    return cells


def _errors(found: Prediction) -> dict[str, Any]:
    if found.error:
        return {"error": found.error}
    return {name: getattr(found, name) for name in _NAMES}


def _problems(tables: Sequence[Tables]) -> list[Problem]:
    return [Problem.from_spec(t) for t in tables]


def _theory(
    coarse: bool, method: str = "auto", accuracy: float = ACCURATE, finite_size: bool = True
) -> Theory:
    return Theory(method, DRAFT if coarse else accuracy, finite_size=finite_size)


def features(
    tables: Tables, coarse: bool, direction: str, component: int, step: bool
) -> dict[str, Any]:
    """E[f|t] along one direction, and its coefficients c_j√j!, with or without the step.

    Of several outputs that of the component's own class, in one trained network: the theory of
    types has one output.
    """
    problem = Problem.from_spec(tables)
    shown = problem if step else without_step(problem)
    component = min(component, problem.components - 1)
    if problem.outputs > 1:
        trial = Trial(shown, Streams(0, 0))
        known, found = learned_of_network(trial, fit_network(trial), direction, component, _DEGREES)
        method = "one network, drawn and trained"
    else:
        prediction = predict(shown, _theory(coarse, "conditional"))
        known, method = list(prediction.directions), "conditional Gaussian theory"
        direction = direction if direction in known or not known else known[0]
        found = prediction.learned(direction, component, _DEGREES)
    if found is None:
        raise AssumptionError("these data have no special direction: no spike, mean or teacher")
    scale = sqrt_factorial(_DEGREES)
    return {
        "directions": known,
        "direction": found.direction,
        "components": problem.components,
        "t": found.t,
        "learned": found.learned,
        "target": found.target,
        "learned_coefficients": found.learned_coefficients * scale,
        "target_coefficients": found.target_coefficients * scale,
        "method": method,
    }


def spectrum(tables: Tables) -> dict[str, Any]:
    """Limiting densities of the singular values, and the spikes, of weights and features.

    At typical overlaps, for views that follow a slider; `draw` has them for one network.
    """
    problem = Problem.from_spec(tables)
    found = spectral_limit(problem)
    return {
        "degree": problem.degree,
        "rate": problem.rate,
        "weights": _law(found.weights, ())
        | {"teacher_cosine": max((o.alignments.get("teacher", 0.0) for o in found.weights.outliers),
                                 default=0.0)},
        "features": _law(found.features, ())
        | {"cosines": [_with_polynomials(o.alignments) for o in found.features.outliers]},
    }  # fmt: skip


def _with_polynomials(alignments: Mapping[str, float]) -> list[float]:
    """Cosines with the constant and with Hermite polynomials along the step, by degree."""
    names = ["constant", "step", *(f"step H{degree}" for degree in range(2, DEGREES + 1))]
    return [alignments.get(name, 0.0) for name in names]


def spikes(tables: Tables) -> dict[str, Any]:
    """Only where the spikes stand: for their path as the step grows."""
    limit = spectral_limit(Problem.from_spec(tables))
    return {
        "weights": [one.singular_value for one in limit.weights.outliers],
        "features": [one.singular_value for one in limit.features.outliers],
    }


def draw(tables: Tables, seed: int) -> dict[str, Any]:
    """What `onegrad spectrum` says of one trained network, as histograms with spikes and limits."""
    report = spectra.spectrum(Problem.from_spec(tables), seed)
    return {
        "note": report.note,
        "weights": _drawn(report.weights),
        "features": _drawn(report.features),
    }


def _drawn(one: MatrixSpectrum) -> dict[str, Any]:
    """Histograms without and with the step, outliers where an edge is known, and the limit."""
    known = math.isfinite(one.edge)
    top = _BEYOND * one.edge if known else 1.05 * float(one.leading[0])
    outliers = one.leading[: one.outliers or 0]
    found = _binned(one.after, top) | {"before": _binned(one.before, top)["heights"], "top": top}
    return found | {
        "edge": one.edge if known else None,
        "spikes": outliers,
        "counted": one.outliers is not None,
        "limit": None if one.limit is None else _law(one.limit, one.doubts),
    }


def _law(limit: MatrixLimit, doubts: Sequence[str]) -> dict[str, Any]:
    """Density and outliers of a limit; along : what each outlier looks at most, with the cosine;
    doubts : why that differs from draw to draw."""
    edge = math.sqrt(limit.law.edge)
    values = np.linspace(0.0, 1.02 * edge, _GRID)
    along = [
        max(one.alignments.items(), key=lambda item: item[1], default=None)
        for one in limit.outliers
    ]
    return {
        "edge": edge, "values": values, "density": limit.law.singular_density(values),
        "spikes": [one.singular_value for one in limit.outliers],
        "along": along, "doubts": list(doubts),
    }  # fmt: skip


def neurons(tables: Tables, seed: int) -> dict[str, Any]:
    """Cosines of some neurons before and after all steps, as `onegrad neurons` draws them."""
    report = report_neurons(Problem.from_spec(tables), seed)
    chosen = np.unique(np.linspace(0, len(report.readout) - 1, _NEURONS).astype(int))
    named = report.directions[:_DIRECTIONS]
    law = report.law
    return {
        "directions": named,
        "before": {"cosines": report.cosines[0, chosen, : len(named)]},
        "after": {"cosines": report.cosines[-1, chosen, : len(named)]},
        "readout": report.readout[chosen],
        "rms": report.rms()[:, : len(named)],
        "law": law and {"cosines": law.cosines[:, : len(named)], "weights": law.weights},
        "note": report.note,
    }


def repetition(tables: Tables, seed: int) -> list[dict[str, Any]]:
    """Every simulated model on one seed of one point: the rows that `onegrad run` stores."""
    point = Experiment.from_tables(tables).points[0]
    rows = run_group([point], point.compare.simulated, seed)
    return [asdict(row) | {"relative_error": row.relative_error} for row in rows]


def _binned(values: Array, top: float) -> dict[str, Any]:
    counts, edges = np.histogram(values, bins=_BINS, range=(0.0, top))
    height = counts * (_BINS / top) / max(values.size, 1)
    return {"bins": edges, "heights": height}


# Kinds of which several points are cheaper together, and those that come one by one.
_TOGETHER: dict[str, Callable[..., list[dict[str, Any]]]] = {"theory": theory, "map": map_cells}
_ALONE: dict[str, Callable[..., Any]] = {
    "point": point,
    "features": features,
    "steps": after_steps,
    "steps-theory": theory_after_steps,
    "data": scatter,
    "spectrum": spectrum,
    "spikes": spikes,
    "draw": draw,
    "neurons": neurons,
    "repetition": repetition,
}
