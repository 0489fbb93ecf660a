"""Results of runs as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onegrad.cli.layout import new_table
from onegrad.text.display import value_text

if TYPE_CHECKING:
    from rich.table import Table

    from onegrad.results.estimates import Estimate
    from onegrad.results.results import Results
    from onegrad.results.summaries import Summary
    from onegrad.results.verdict import Deviation
    from onegrad.spec.experiment import Experiment
    from onegrad.validate.reproduce import Reproduction

_SHORT = {
    "test_error": "test", "train_error": "train", "misclassification": "misclassified",
    "test_loss": "test loss", "train_loss": "train loss",
}  # fmt: skip
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
    more = _more_columns([s for at in points.values() for s in at.values()])
    for quantity in more:
        table.add_column(f"\n{_SHORT[quantity]}", justify="right")
    for model in others:
        word = model.replace("-", "-\n", 1) if len(model) > 14 else f"{model}\ntest"
        table.add_column(word, justify="right")
    for at in points.values():
        first = next(iter(at.values()))
        cells = [value_text(first.point[key]) for key in experiment.sweep]
        base = at.get(reference)
        good = base is not None and math.isfinite(base.test_error.mean)
        cells += [str(base.test_error), str(base.train_error)] if base and good else ["failed", ""]
        if relative:
            known = base and good and math.isfinite(base.relative_error.mean)
            cells.append(str(base.relative_error) if base and known else "")
        for quantity in more:
            value = getattr(base, quantity) if base and good else None
            cells.append(str(value) if value and math.isfinite(value.mean) else "")
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


def _more_columns(summaries: Sequence[Summary]) -> list[str]:
    """Misclassification of labels ±1, and the test loss where it is not the squared error."""
    found = []
    if any(math.isfinite(s.misclassification.mean) for s in summaries):
        found.append("misclassification")
    if any(
        math.isfinite(s.test_loss.mean) and s.test_loss.mean != s.test_error.mean for s in summaries
    ):
        found.append("test_loss")
    return found


def verdict_table(results: Results) -> Table | None:
    """Where each model is furthest from the network; None if there is nothing to compare.

    Standard errors of fewer than eight seeds are too rough to count differences in them: then the
    percentages stand alone.
    """
    from onegrad.results.verdict import verdicts

    rows = verdicts(results.rows)
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
        cells = [v.model, _SHORT[v.quantity], *_deviation(v.largest, counted)]
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
    from onegrad.validate.reproduced import agreements

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
    from onegrad.validate.reproduction_page import SUMMARY, summary_rows

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
    return value if isinstance(value, str) else f"{key.rpartition('.')[2]} = {value_text(value)}"


def percent(difference: Estimate) -> str:
    if not math.isfinite(difference.mean):
        return ""
    error = difference.standard_error
    spread = f" ± {100 * error:.2f}" if math.isfinite(error) else ""
    return f"{100 * difference.mean:+.2f}{spread} %"


def failures(results: Results) -> list[str]:
    """One line for each cause: which models it stopped, and where."""
    causes: dict[str, list[Summary]] = {}
    for s in results.summaries():
        if s.status != "ok":
            causes.setdefault(s.error, []).append(s)
    lines = []
    for error, stopped in causes.items():
        models = ", ".join(dict.fromkeys(s.model for s in stopped))
        places = {repr(s.point): s.point for s in stopped}
        (first, *more) = places.values()
        where = ", ".join(f"{k} = {value_text(v)}" for k, v in first.items())
        where = f" at {len(places)} points" if more else f" at {where}" * bool(where)
        lines.append(f"{models}{where}: {error}")
    return lines
