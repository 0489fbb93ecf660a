"""Results and reports as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onegrad.results.verdict import Deviation, verdicts

if TYPE_CHECKING:
    from rich.table import Table

    from onegrad.degrees import DegreeReport
    from onegrad.predicted import Prediction
    from onegrad.results.rows import Estimate, Results, Summary
    from onegrad.specs.experiment import Experiment, Point
    from onegrad.spectra import SpectrumReport


def results_table(experiment: Experiment, results: Results) -> Table:
    """One line per point: the network's errors, and how far the other models are from it."""
    from rich.table import Table

    points: dict[str, dict[str, Summary]] = {}
    for s in results.summaries():
        points.setdefault(repr(s.point), {})[s.model] = s
    models = list(dict.fromkeys(m for at in points.values() for m in at))
    reference = "network" if "network" in models else models[0]
    others = [m for m in models if m != reference]
    table = Table(title=experiment.name, title_justify="left")
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    table.add_column(f"{reference}: test error", justify="right")
    table.add_column("train error", justify="right")
    for model in others:
        table.add_column(f"{model}: test", justify="right")
    for at in points.values():
        first = next(iter(at.values()))
        cells = [format_value(first.point[key]) for key in experiment.sweep]
        base = at.get(reference)
        good = base is not None and math.isfinite(base.test_error.mean)
        cells += [str(base.test_error), str(base.train_error)] if base and good else ["failed", ""]
        for model in others:
            other = at.get(model)
            if other is None or not math.isfinite(other.test_error.mean):
                cells.append("failed")
            elif reference == "network" and good:
                cells.append(percent(other.test_difference))
            else:
                cells.append(str(other.test_error))
        table.add_row(*cells)
    simulated = [s for at in points.values() for s in at.values() if s.seeds]
    counts = sorted({s.seeds for s in simulated})
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "no"
    corrected = ", corrected by control variates" * (
        bool(counts) and all(s.corrected for s in simulated)
    )
    table.caption = (
        f"mean ± standard error over {seeds} seeds{corrected}; other models as difference "
        "to the network in percent (± its standard error, paired seed by seed)"
    )
    return table


def verdict_table(results: Results) -> Table | None:
    """Where each model is furthest from the network; None if there is nothing to compare."""
    from rich.table import Table

    rows = verdicts(results)
    if not rows:
        return None
    table = Table(title="Verdict: how far from the network at worst", title_justify="left")
    headers = ("model", "error", "largest", "in s.e.", "where", "surest", "in s.e.", "where")
    for header in headers:
        number = header in ("largest", "surest", "in s.e.")
        table.add_column(header, justify="right" if number else "left")
    for v in rows:
        cells = [v.model, v.quantity.partition("_")[0], *_deviation(v.largest)]
        same = v.surest is None or v.surest.point == v.largest.point
        table.add_row(*cells, *(("", "", "the same") if same else _deviation(v.surest)))
    table.caption = (
        "largest: in percent of the network's error; surest: in standard errors of the difference, "
        "paired seed by seed (of the network alone for theories)"
    )
    return table


def _deviation(deviation: Deviation | None) -> tuple[str, str, str]:
    assert deviation is not None
    sigmas = f"{deviation.sigmas:.1f}" if math.isfinite(deviation.sigmas) else "–"
    where = ", ".join(short_setting(k, v) for k, v in deviation.point.items())
    return percent(deviation.difference), sigmas, where or "the only point"


def short_setting(key: str, value: Any) -> str:
    """A swept key and its value; names speak for themselves."""
    return value if isinstance(value, str) else f"{key.rpartition('.')[2]} = {format_value(value)}"


def prediction_table(experiment: Experiment, predictions: Sequence[Prediction]) -> Table:
    """One line per point: errors, how sure, and by which theory."""
    from rich.table import Table

    table = Table(title=experiment.name, title_justify="left")
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    good = [p for p in predictions if p.status != "failed"]
    binary = any(p.misclassification is not None for p in good)
    methods = list(dict.fromkeys(p.method for p in good))
    headers = ["test error", "train error", "train objective", "numerics to"]
    headers += ["wrong sign"] if binary else []
    headers += ["theory"] if len(methods) > 1 else []
    for header in headers:
        table.add_column(header, justify="left" if header == "theory" else "right")
    for point, p in zip(experiment.points, predictions, strict=True):
        cells = [format_value(point.settings[key]) for key in experiment.sweep]
        if p.status == "failed":
            table.add_row(*cells, "failed")
            continue
        cells += [f"{v:.5g}" for v in (p.test_error, p.train_error, p.train_objective)]
        unchecked = math.isnan(p.error_estimate)
        cells.append("draft" if unchecked else f"{100 * p.error_estimate:.1g} %")
        if binary:
            wrong = p.misclassification
            cells.append("" if wrong is None else f"{100 * wrong:.2f} %")
        table.add_row(*cells, *([p.method] if len(methods) > 1 else []))
    table.caption = " ".join([f"{methods[0]}:", *good[0].assumptions]) if good else None
    return table


def format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def percent(difference: Estimate) -> str:
    if not math.isfinite(difference.mean):
        return ""
    error = difference.standard_error
    spread = f" ± {100 * error:.2f}" if math.isfinite(error) else ""
    return f"{100 * difference.mean:+.2f}{spread} %"


def failures(results: Results) -> list[str]:
    """One line for each model that could not be computed somewhere."""
    lines: dict[str, None] = {}
    for s in results.summaries():
        if s.status != "ok":
            where = ", ".join(f"{k} = {format_value(v)}" for k, v in s.point.items())
            lines[f"{s.model}{' at ' + where if where else ''}: {s.error}"] = None
    return list(lines)


def degree_text(point: Point, report: DegreeReport) -> str:
    lines = []
    if point.settings:
        lines.append(", ".join(f"{k} = {format_value(v)}" for k, v in point.settings.items()))
    problem = point.problem
    sizes = f"n = {problem.dim}, m = {problem.samples}, k = {problem.width}"
    lines.append(f"η = {problem.rate:.4g}, θ = {problem.spread:.4g} ({sizes})")
    if report.degree is None:
        lines.append(
            "No degree by the rule: η or θ was set by hand, or spiked data meet the isotropic "
            "convention. Choose one by the table below."
        )
    else:
        lines += _degree_reason(report)
    lines.append("")
    lines.append("degree  kept  share of E σ²   norm over noise   bound grows as")
    for t in report.terms:
        ratio = f"{t.norm_ratio:.2f}" if t.norm_ratio else "absent"
        bound = "" if t.exponent is None else f"n^{t.exponent:+.2f}"
        mark = "yes" if t.kept else "no"
        share = t.share if t.norm_ratio else 0.0
        lines.append(f"{t.degree:>6}  {mark:<4}  {share:>13.2e}   {ratio:>15}   {bound}")
    lines.append(
        "norm over noise: the term's operator norm in one draw of the trained network, over that "
        "of the same polynomial of pure noise.\nWhat is not kept is replaced by noise: near 1 that "
        "is harmless, above 1 structure is lost."
    )
    return "\n".join(lines) + "\n"


def _degree_reason(report: DegreeReport) -> list[str]:
    """Why the rule gives this degree, and how far the next one is."""
    assert report.degree is not None and report.value is not None
    assert report.interval is not None
    given, following = f"{report.symbol} = {report.value:g}", report.degree + 1
    low, high = report.interval
    if report.capped:
        short = "no finite degree is"
        if report.needed is not None:
            short = f"degree {report.needed - 1} is not"
        return [
            f"Degree {report.degree}, the highest that the rule gives.",
            f"At {given} {short} enough as n grows.",
            f"compare.degree = {following} keeps one term more.",
        ]
    assert high is not None and report.to_next is not None
    if report.on_boundary:
        return [
            f"Degree {report.degree}, at the boundary: {given} is where the term of degree "
            f"{following} begins to count.",
            f"There it neither grows nor vanishes with n: compare.degree = {following} keeps it.",
        ]
    lines = [f"Degree {report.degree} is enough as n grows."]
    further = (
        f"the term of degree {following} begins to count at {high:.4g}, {report.to_next:.4g} "
        "further up"
    )
    if low is not None:
        lines.append(f"Because {given} lies in ({low:.4g}, {high:.4g}); {further}.")
    elif report.value <= 0:
        lines.append(
            f"Because {given} is not above 0: step and spread do not grow with n, and the linear "
            f"term is all that random features need; {further}."
        )
    else:
        lines.append(f"Because {given} lies below {high:.4g}; {further}.")
    return lines


def spectrum_text(point: Point, report: SpectrumReport) -> str:
    """What one draw of weights and features shows, in sentences and a small table."""
    problem, w, f = point.problem, report.weights, report.features
    lines = []
    if point.settings:
        lines.append(", ".join(f"{k} = {format_value(v)}" for k, v in point.settings.items()))
    sizes = f"n = {problem.dim}, m = {problem.samples}, k = {problem.width}"
    lines.append(f"η = {problem.rate:.4g}, degree ℓ = {report.degree} ({sizes})")
    spike = report.weight_spike
    limit = f"limit {spike.singular_value:.3f}" if spike.present else "limit: none"
    lines.append(
        f"Weights: bulk edge {w.edge:.3f}, {count_of(w.spikes, 'spike')}, largest singular value "
        f"{w.singular_values[0]:.3f} ({limit}).\n  Its singular vectors: cosine "
        f"{report.readout_cosine:.3f} with the readout (limit {spike.readout_cosine:.3f}), "
        f"{report.teacher_cosine:.3f} with the teacher (limit {spike.teacher_cosine:.3f})."
    )
    active = [
        j for j in range(1, report.degree + 1) if abs(problem.activation.coefficients(j)[j]) > 1e-9
    ]
    degrees = ", ".join(map(str, active)) or "none"
    lines.append(
        f"Features: bulk edge {f.edge:.3f}, counted from {f.threshold:.3f}: "
        f"{count_of(f.spikes, 'spike')}; the model of degree {report.degree} has {len(active)} "
        f"(degrees {degrees})."
    )
    if f.spikes:
        lines.append("  singular value   limit    cosine with (Xβ)^k and, behind |, with H_k:")
    for i in range(f.spikes):
        known = i < report.feature_spikes.count
        limit = f"{report.feature_spikes.singular_values[i]:.3f}" if known else "–"
        powers = "  ".join(f"{c:.3f}" for c in f.power_cosines[i, 1:4])
        hermite = "  ".join(f"{c:.3f}" for c in f.hermite_cosines[i, 1:4])
        lines.append(
            f"  {f.singular_values[i]:>14.3f}  {limit:>6}    k = 1…3: {powers} | {hermite}"
        )
    shown = ", ".join(f"{d:.3f}" for d in report.distances)
    lines.append(f"Distance to the model with 0, 1, … spikes, ‖F − F_ℓ‖/√m: {shown}.")
    return "\n".join(lines) + "\n"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
