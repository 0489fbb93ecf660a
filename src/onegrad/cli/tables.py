"""Results and reports as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onegrad.cli.layout import new_table
from onegrad.degrees import means_in_words
from onegrad.results.reproduced import agreements
from onegrad.results.verdict import Deviation, verdicts

if TYPE_CHECKING:
    from rich.table import Table

    from onegrad.degrees import DegreeReport
    from onegrad.predicted import Prediction
    from onegrad.results.rows import Estimate, Results, Summary
    from onegrad.runs.reproduce import Reproduction
    from onegrad.specs.experiment import Experiment, Point
    from onegrad.spectra import SpectrumReport


FEWEST_SEEDS = 8  # whose standard error can be counted in, as `seeds = "auto"` has at least


def results_table(experiment: Experiment, results: Results) -> Table:
    """One line per point: the network's errors, and how far the other models are from it."""
    points: dict[str, dict[str, Summary]] = {}
    for s in results.summaries():
        points.setdefault(repr(s.point), {})[s.model] = s
    models = list(dict.fromkeys(m for at in points.values() for m in at))
    reference = "network" if "network" in models else models[0]
    others = [m for m in models if m != reference]
    table = new_table(experiment.name)
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    table.add_column(f"{reference}\ntest error", justify="right")
    table.add_column("\ntrain error", justify="right")
    relative = any(
        math.isfinite(s.relative_error.mean) for at in points.values() for s in at.values()
    )
    if relative:
        table.add_column("\ntest / Var y", justify="right")
    for model in others:
        word = model.replace("-", "-\n", 1) if len(model) > 14 else f"{model}\ntest"
        table.add_column(word, justify="right")
    for at in points.values():
        first = next(iter(at.values()))
        cells = [format_value(first.point[key]) for key in experiment.sweep]
        base = at.get(reference)
        good = base is not None and math.isfinite(base.test_error.mean)
        cells += [str(base.test_error), str(base.train_error)] if base and good else ["failed", ""]
        if relative:
            known = base and good and math.isfinite(base.relative_error.mean)
            cells.append(str(base.relative_error) if base and known else "")
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
    """Where each model is furthest from the network; None if there is nothing to compare.

    Standard errors of fewer than eight seeds are too rough to count differences in them: then the
    percentages stand alone.
    """
    rows = verdicts(results)
    if not rows:
        return None
    fewest = min((s.seeds for s in results.summaries() if s.model == "network"), default=0)
    counted = fewest >= FEWEST_SEEDS
    table = new_table("Verdict: how far from the network at worst")
    headers = ["model", "error", "largest", *(["in s.e."] * counted), "where"]
    headers += ["surest", "in s.e.", "where"] * counted
    for header in headers:
        number = header in ("largest", "surest", "in s.e.")
        table.add_column(header, justify="right" if number else "left")
    for v in rows:
        cells = [v.model, v.quantity.partition("_")[0], *_deviation(v.largest, counted)]
        same = v.surest is None or v.surest.point == v.largest.point
        if counted:
            cells += ("", "", "the same") if same else _deviation(v.surest, counted)
        table.add_row(*cells)
    table.caption = "largest: in percent of the network's error, paired seed by seed. "
    table.caption += (
        "surest: in standard errors of the difference (of the network alone for theories)"
        if counted
        else f"{fewest} seed{'s' * (fewest != 1)}: too few to count differences in standard errors"
    )
    return table


def published_table(experiment: Experiment, results: Results) -> Table | None:
    """How far network, models and theory are from the published points; None if there are none."""
    rows = agreements(experiment, results)
    if not rows:
        return None
    table = new_table(f"Published: {experiment.figure.published}")
    for header in ("", "points", "mean", "mean size", "r.m.s.", "largest", "far", "verdict"):
        table.add_column(header, justify="left" if header in ("", "verdict") else "right")
    for a in rows:
        verdict = "agrees" if a.agrees else "differs"
        table.add_row(
            a.what, str(len(a.comparisons)), f"{100 * a.mean:+.1f} %", f"{100 * a.mean_size:.1f} %",
            f"{a.root_mean_square:.1f}", f"{a.worst.spreads:.1f}", str(a.off), verdict,
        )  # fmt: skip
    table.caption = (
        "mean: ours less published, in percent of it; then in spreads between data sets (of gaps: "
        "in standard errors); agrees: at most 5 % of the points beyond 3 spreads, none beyond 5 "
        "(more where few seeds tell what a spread is)"
    )
    return table


def reproduction_table(done: Sequence[Reproduction]) -> Table:
    """One line per figure and model that has published points."""
    from onegrad.report.reproduction import SUMMARY, summary_rows

    table = new_table("Published points")
    for i, header in enumerate(SUMMARY):
        table.add_column(header, justify="right" if 1 < i < len(SUMMARY) - 1 else "left")
    for row in summary_rows(done):
        table.add_row(*row, style="bold red" if row[-1] == "differs" else "")
    return table


def _deviation(deviation: Deviation | None, counted: bool) -> tuple[str, ...]:
    assert deviation is not None
    sigmas = f"{deviation.sigmas:.1f}" if math.isfinite(deviation.sigmas) else "–"
    where = ", ".join(short_setting(k, v) for k, v in deviation.point.items())
    middle = (sigmas,) if counted else ()
    return percent(deviation.difference), *middle, where or "the only point"


def short_setting(key: str, value: Any) -> str:
    """A swept key and its value; names speak for themselves."""
    return value if isinstance(value, str) else f"{key.rpartition('.')[2]} = {format_value(value)}"


def prediction_table(experiment: Experiment, predictions: Sequence[Prediction]) -> Table:
    """One line per point: errors, how sure, and by which theory."""
    table = new_table(experiment.name)
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    good = [p for p in predictions if p.status != "failed"]
    binary = any(p.misclassification is not None for p in good)
    methods = list(dict.fromkeys(p.method for p in good))
    headers = ["test error", "train error", "train objective", "test / Var y", "error estimate"]
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
        cells.append(f"{p.relative_error:.4g}" if math.isfinite(p.relative_error) else "")
        unchecked = math.isnan(p.error_estimate)
        cells.append("draft" if unchecked else f"{100 * p.error_estimate:.2g} %")
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


def degree_table(experiment: Experiment, reports: Sequence[tuple[Point, DegreeReport]]) -> Table:
    """One line per point of a sweep: step and spread, the degree, and what it leaves out."""
    table = new_table(experiment.name)
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    for header in ("η", "θ", "degree", "to the next", "left out at most"):
        table.add_column(header, justify="right")
    for point, report in reports:
        problem = point.problem
        cells = [format_value(point.settings[key]) for key in experiment.sweep]
        cells += [f"{problem.rate:.4g}", f"{problem.spread:.4g}"]
        degree = "no rule" if report.degree is None else str(report.degree)
        left = max((t.norm_ratio for t in report.terms if not t.kept), default=0.0)
        cells += [degree + " (capped)" * (report.degree is not None and report.capped)]
        cells += ["–" if report.to_next is None else f"{report.to_next:.3g}", f"{left:.2f}"]
        table.add_row(*cells)
    table.caption = (
        "to the next: how far β (or α) is below the value from which one more degree counts. left "
        "out at most: the largest operator norm of a term that is not kept, over that of noise; "
        "above 1 structure is lost. One point by --set shows all terms"
    )
    return table


def degree_text(point: Point, report: DegreeReport) -> str:
    lines = []
    if point.settings:
        lines.append(", ".join(f"{k} = {format_value(v)}" for k, v in point.settings.items()))
    problem = point.problem
    sizes = f"n = {problem.dim}, m = {problem.samples}, k = {problem.width}"
    lines.append(f"η = {problem.rate:.4g}, θ = {problem.spread:.4g} ({sizes})")
    if report.degree is None:
        lines.append(
            "No degree by the rule: η or θ was set by hand, spiked data meet the isotropic "
            "convention, or there is more than one step of gradient descent. Choose one by the "
            "table below."
        )
    else:
        lines += _degree_reason(report)
        if report.means is not None and report.means.visible:
            lines.append(f"But {means_in_words(report.means, report.degree)}")
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
            f"Degree {report.degree}, the highest that the rule gives: the source stops there for "
            "numerical stability.",
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
    missed = report.means is not None and report.means.visible
    lines = [f"Degree {report.degree} {'by the rule' if missed else 'is enough as n grows'}."]
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
