"""From a case to its numbers, a flat dict of name -> float.

All calls of onegrad's API are in the functions under "adapters": where the API is renamed, those
are edited and nothing else. They give back plain numbers, arrays and dicts.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.tables import table_of, write_table

Numbers = dict[str, float]
ERRORS = ("test_error", "train_error", "train_objective")
_STATUS = {"ok": 0.0, "draft": 1.0, "not settled": 2.0, "failed": 3.0}

# --- adapters -------------------------------------------------------------------------------


def run_spec(tables: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Every stored row of a run, and what it says in the end (docs/spec.md, `--json`)."""
    import onegrad as og

    with tempfile.TemporaryDirectory() as out:
        results = og.run(tables, out, og.Local(1))
    return [vars(row) for row in results.rows], results.as_json()


def simulate_problem(tables: dict[str, Any], options: dict[str, Any]) -> tuple[Any, Any]:
    """Rows and summaries of `simulate`."""
    import onegrad as og

    outcome = og.simulate(og.Problem.from_spec(tables), **options)
    return [vars(row) for row in outcome.results.rows], outcome.results.as_json()


def predict_problems(
    problems: list[dict[str, Any]], options: dict[str, Any], along: list[Any], single: bool
) -> list[dict[str, Any] | None]:
    """What the theory says of each problem; None where it refuses."""
    import onegrad as og

    wanted = [og.Problem.from_spec(tables) for tables in problems]
    if single:
        try:
            answers: list[Any] = [og.predict(wanted[0], **options)]
        except (og.AssumptionError, og.ConvergenceError):
            answers = [None]
    else:
        answers = list(og.predict_curve(wanted, **options))
    said: list[dict[str, Any] | None] = []
    for answer in answers:
        if answer is None or answer.status == "failed":
            said.append(None)
            continue
        found = {name: getattr(answer, name) for name in ERRORS}
        found["status"], found["error_estimate"] = answer.status, answer.error_estimate
        for name in ("component_test", "component_train", "misclassification"):
            if getattr(answer, name) is not None:
                found[name] = getattr(answer, name)
        if answer.solution is not None:
            nodes = answer.by_projection()
            for name in ("prediction", "variance", "test_error", "train_error"):
                found[f"nodes {name}"] = float(nodes["weight"] @ nodes[name] ** 2)
        for direction, component in along:
            learned = answer.learned(direction, component, degree=4)
            found[f"learned {direction}"] = learned.learned_coefficients
            found[f"target {direction}"] = learned.target_coefficients
            found[f"curve {direction}"] = learned.learned[:: len(learned.t) // 5]
        said.append(found)
    return said


def fit_of(x: np.ndarray, y: np.ndarray | None) -> tuple[dict[str, Any], Any]:
    """A fitted mixture as numbers, and as the `data` of a problem."""
    import onegrad as og

    fit = og.fit_mixture(x, y)
    numbers: dict[str, Any] = {
        "scale": fit.scale, "weights": fit.mixture.weights, "ranks": fit.mixture.ranks,
        "mean norms": np.linalg.norm(fit.mixture.means, axis=1),
        "strengths": np.concatenate(fit.mixture.own_strengths),
        "group sizes": np.bincount(fit.group),
    }  # fmt: skip
    if fit.labels is not None:
        numbers["labels"] = fit.labels
    return numbers, fit.mixture


def activation_values(name: str) -> dict[str, Any]:
    import onegrad as og

    sigma = og.get_activation(name)
    smoothed = sigma.smoothed(np.array([-1.5, 0.0, 0.4, 3.0]), np.array([0.5, 1.0, 2.0, 0.0]))
    return {
        "projections": sigma.projections(6, 0.8), "coefficients": sigma.coefficients(5),
        "remainder": sigma.remainder(2, 0.8), "second moment": sigma.second_moment(1.3),
        "centred": sigma.centred()(np.array([0.3])), "smoothed": smoothed.value,
        "smoothed slope": smoothed.slope, "smoothed variance": smoothed.variance,
        "slope": sigma.slope(np.array([-0.7, 0.9])),
    }  # fmt: skip


def degree_of(tables: dict[str, Any]) -> dict[str, Any]:
    import onegrad as og

    report = og.degree(og.Problem.from_spec(tables)).as_json()
    for text in ("symbol", "failure"):
        report.pop(text)
    return report


def spectrum_of(tables: dict[str, Any]) -> dict[str, Any]:
    """The measured spectrum of one draw, and the limiting one."""
    import onegrad as og

    problem = og.Problem.from_spec(tables)
    report, limit = og.spectrum(problem, 2), og.limiting_spectrum(problem)
    draw = report.as_json()
    for name in ("note", "expected_outliers"):
        draw.pop(name)
    for matrix in ("weights", "features"):
        draw[matrix].pop("alignment_doubts")
    return {
        "draw": draw,
        "values": [v[::7] for v in (*report.weight_values, *report.feature_values)],
        "limit": {
            name: {
                "law": [one.law.edge, one.law.atom, one.law.threshold(60)],
                "density": one.law.densities[::9],
                "outliers": [vars(outlier) for outlier in one.outliers],
            }
            for name, one in (("weights", limit.weights), ("features", limit.features))
        },
    }


def estimator_of(x: np.ndarray, y: np.ndarray, options: dict[str, Any]) -> dict[str, Any]:
    import onegrad as og

    classes = len(np.unique(y)) < 5
    model = (og.OneStepClassifier if classes else og.OneStepRegressor)(**options)
    cut = 2 * len(y) // 3
    model.fit(x[:cut], y[:cut])
    output = model.decision_function(x[cut:]) if classes else model.predict(x[cut:])
    return {
        "score": model.score(x[cut:], y[cut:]), "output": output[:5], "rate": model.rate_,
        "ridge": model.ridge_, "error": model.error_, "rate errors": model.rate_errors_,
        "norms": [np.linalg.norm(a) for a in (model.coef_, model.intercept_, model.weights_)],
    }  # fmt: skip


def analysis_of(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The numbers of a learning curve."""
    import onegrad as og

    classes = len(np.unique(y)) < 5
    kind = og.OneStepClassifier if classes else og.OneStepRegressor
    labels = np.array([f"class {v:g}" for v in y]) if classes else y
    curve = og.learning_curve(x, labels, kind(40, random_state=0))
    return {
        "rows": [one.rows for one in curve.subsets],
        "errors": curve.measured.errors,
        "ahead": [curve.score.best - point.score for point in curve.ahead()],
        "bars": [curve.score.best - point.low for point in curve.ahead()],
    }


# --- from a case to its numbers -------------------------------------------------------------


def measure(case: Mapping[str, Any]) -> Numbers:
    return _MEASURES[case["what"]](case)


def _run(case: Mapping[str, Any]) -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        return _of_rows(*run_spec(_with_data(case, Path(folder))))


def _simulate(case: Mapping[str, Any]) -> Numbers:
    return _of_rows(*simulate_problem(_with_data(case), case["options"]))


def _of_rows(rows: list[dict[str, Any]], said: dict[str, Any]) -> Numbers:
    """Per-seed errors and statuses; means, standard errors and verdicts beside them."""
    found: Numbers = {}
    for row in rows:
        name = f"{_at(row['point'])}{row['model']} seed {row['seed']}"
        found[f"{name} status"] = _STATUS[row["status"]]
        found |= {f"{name} {error}": row[error] for error in ERRORS}
        for which, control in zip(("teacher", "power"), row["controls"], strict=False):
            name = f"{_at(row['point'])}{row['model']} control {which} seed {row['seed']}"
            found |= {f"{name} {error}": getattr(control, error) for error in ERRORS}
    dropped = ("point", "model", "seconds", "error")
    for row in said["rows"]:
        own = {key: value for key, value in row.items() if key not in dropped}
        for name in ("test", "train"):  # the squared loss is the squared error once more
            if own.get(f"{name}_loss", math.nan) == own[f"{name}_error"]:
                own.pop(f"{name}_loss"), own.pop(f"{name}_loss_se")
        own["status"] = _STATUS[own["status"]]
        found |= _flat(own, f"mean {_at(row['point'])}{row['model']}")
    for verdict in said["verdict"]:
        name = f"verdict difference {verdict['model']} {verdict['quantity']}"
        found[f"{name} points"] = verdict["points"]
        for which in ("largest", "surest"):
            if verdict[which]:
                own = {key: value for key, value in verdict[which].items() if key != "point"}
                found |= _flat(own, f"{name} {which} {_at(verdict[which]['point'])}")
    return found


def _predict(case: Mapping[str, Any]) -> Numbers:
    along = case.get("learned", [])
    (said,) = predict_problems([_with_data(case)], case["options"], along, single=True)
    return _of_prediction(said, "")


def _curve(case: Mapping[str, Any]) -> Numbers:
    ((table, values),) = case["values"].items()
    spec = _with_data(case)
    problems = [{**spec, table: {**spec[table], **value}} for value in values]
    answers = predict_problems(problems, case["options"], [], single=False)
    found: Numbers = {}
    for value, said in zip(values, answers, strict=True):
        found |= _of_prediction(said, _at(value))
    return found


def _of_prediction(said: dict[str, Any] | None, name: str) -> Numbers:
    if said is None:
        return {f"{name}status": _STATUS["failed"]}
    return _flat({**said, "status": _STATUS[said["status"]]}, name)


def _fit(case: Mapping[str, Any]) -> Numbers:
    x, y = table_of(**case["table"])
    return _flat(fit_of(x, y if case["with_labels"] else None)[0])


def _activations(case: Mapping[str, Any]) -> Numbers:
    return _flat({name: activation_values(name) for name in case["names"]})


_MEASURES: dict[str, Callable[[Mapping[str, Any]], Numbers]] = {
    "run": _run,
    "simulate": _simulate,
    "predict": _predict,
    "curve": _curve,
    "fit": _fit,
    "activations": _activations,
    "degree": lambda case: _flat(degree_of(_with_data(case))),
    "spectrum": lambda case: _flat(spectrum_of(_with_data(case))),
    "estimator": lambda case: _flat(estimator_of(*table_of(**case["table"]), case["options"])),
    "analysis": lambda case: _flat(analysis_of(*table_of(**case["table"]))),
}


# --- data, and names of numbers -------------------------------------------------------------


def _with_data(case: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """The case's spec, with its table as arrays, in a file or as a fitted mixture."""
    spec = dict(case["spec"])
    if case["what"] != "run":
        spec.pop("compare", None)
    if "table" not in case:
        return spec
    x, y = table_of(**case["table"])
    if case.get("fitted"):
        return {**spec, "data": fit_of(x, y)[1], "labels": {"model": "component"}}
    kind = case["table"].get("file")
    if not kind or folder is None:
        return {**spec, "data": {"model": "arrays", "x": x, "y": y}}
    return {**spec, "data": {"model": "file", **write_table(folder, kind, x, y)}}


def _at(point: Mapping[str, Any]) -> str:
    return "".join(f"{key}={value} " for key, value in point.items())


def _flat(value: Any, name: str = "") -> Numbers:
    return dict(_pairs(value, name.strip()))


def _pairs(value: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _pairs(part, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from _pairs(part, f"{name} {i}")
    else:
        yield name, math.nan if value is None else float(value)
