"""Results of runs as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onegrad.cli.layout import new_table
from onegrad.text.display import count_of, settings_text, value_text

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
FEWEST_SEEDS = 8  # seeds from which a standard error is reliable
_SKEWED = 30  # seeds below which a skewed law of errors is worth a warning


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
    table.caption = "\n".join(_what_it_shows(experiment, results, reference, others))
    return table


def _what_it_shows(
    experiment: Experiment, results: Results, reference: str, others: Sequence[str]
) -> list[str]:
    """What stands in the columns, and how far a standard error of so many seeds goes."""
    simulated = [s for s in results.summaries() if s.seeds]
    counts = sorted({s.seeds for s in simulated})
    lines = []
    if counts:
        seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        lines.append(f"Mean ± standard error over {seeds} seed{'s' * (counts[-1] > 1)}.")
        if all(s.corrected for s in simulated):
            lines[-1] += " Means are corrected by control variates."
    if reference == "network" and others:
        paired = ", paired seed by seed" * bool(set(others) - set(experiment.compare.theories))
        lines.append(
            f"{', '.join(others)}: difference to the network's test error in percent, ± its "
            f"standard error{paired}."
        )
    if counts and len(experiment.points) > 1:
        lines.append(
            "Points use the same random numbers where they can: what one of them is off by chance, "
            "its neighbours are off too."
        )
    return lines + _few_seeds(experiment, counts)


def _few_seeds(experiment: Experiment, counts: Sequence[int]) -> list[str]:
    """How uncertain the standard errors are themselves."""
    from scipy.special import stdtrit

    if not counts:
        return []
    fewest, lines = counts[0], []
    if fewest == 1:
        lines.append("One seed has no standard error.")
    elif fewest < FEWEST_SEEDS:
        lines.append(
            f"{fewest} seeds know their standard error to about "
            f"{100 / (2 * (fewest - 1)) ** 0.5:.0f} %: an interval of 95 % "
            f"is ± {stdtrit(fewest - 1, 0.975):.1f} of them (Student)."
        )
    by_class = any(
        p.problem.labels_binary and not getattr(p.problem.data, "fixed_counts", False)
        for p in experiment.points
    )
    if by_class and fewest < _SKEWED:
        lines.append(
            "With labels ±1 errors depend on the training set's surplus of one class. Their law "
            f"over draws may be skewed, and {fewest} seeds may miss its tail: compare with more."
        )
    return lines


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


def verdict_text(results: Results) -> str:
    """Whether each model agrees with the network, and its largest deviation; empty where there is
    nothing to compare.

    A model agrees where its difference is within 1 % and the interval of the difference: Student's,
    of 99 % for all points together.
    """
    from onegrad.results.verdict import BAND, LEVEL, verdicts

    found = verdicts(results.rows)
    if not found:
        return ""
    fewest = min((s.seeds for s in results.summaries() if s.model == "network"), default=0)
    lines = ["Verdict (difference to the network, in percent of its error)"]
    for model in dict.fromkeys(v.model for v in found):
        own = [v for v in found if v.model == model]
        off = {repr(d.point): d for v in own for d in v.beyond(BAND, LEVEL, fewest)}
        count = max(v.points for v in own)
        if fewest < 2:
            said = "one seed cannot tell chance from a difference"
        elif off:
            said = f"differs at {len(off)} of {count_of(count, 'point')}"
        else:
            said = f"agrees at all {count} points" if count > 1 else "agrees"
        worst = "; ".join(f"{_LONG[v.quantity]} {_deviation(v.largest)}" for v in own)
        lines.append(f"  {model}: {said}. Largest: {worst}.")
        if off:
            surest = max(off.values(), key=lambda d: d.sigmas)
            lines.append(f"    Most significant: {_deviation(surest)}, z = {surest.sigmas:.1f}.")
    return "\n".join(lines)


_LONG = {
    "test_error": "test error", "train_error": "training error",
    "misclassification": "misclassification", "test_loss": "test loss",
    "train_loss": "training loss",
}  # fmt: skip


def published_table(experiment: Experiment, results: Results) -> Table | None:
    """How far network, models and theory are from the published points; None if there are none."""
    from onegrad.validate.reproduced import agreements

    rows = agreements(experiment, results)
    if not rows:
        return None
    table = new_table(f"Published: {experiment.figure.published}")
    for header in ("", "points", "mean", "mean size", "r.m.s. z", "largest z", "z > 3", "verdict"):
        table.add_column(header, justify="left" if header in ("", "verdict") else "right")
    for a in rows:
        verdict = "agrees" if a.agrees else "differs"
        table.add_row(
            a.what, str(len(a.comparisons)), f"{100 * a.mean:+.1f} %", f"{100 * a.mean_size:.1f} %",
            f"{a.root_mean_square:.1f}", f"{a.worst.spreads:.1f}", str(a.off), verdict,
        )  # fmt: skip
    table.caption = (
        "Mean and mean size: ours less published, in percent.\n"
        "z: the difference in units of the spread between data sets (gaps: in standard errors), as "
        "root mean square and at its largest.\n"
        "Agrees: at most 5 % of the points have z above 3, none above 5 (more where few seeds tell "
        "what a spread is)."
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


def _deviation(deviation: Deviation) -> str:
    where = ", ".join(
        v if isinstance(v, str) else settings_text({k: v}) for k, v in deviation.point.items()
    )
    return percent(deviation.difference) + f" ({where})" * bool(where)


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
        where = settings_text(first)
        where = f" at {len(places)} points" if more else f" at {where}" * bool(where)
        lines.append(f"{models}{where}: {error}")
    return lines
