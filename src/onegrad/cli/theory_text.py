"""Predictions, degrees and spectra as text for a terminal."""

from __future__ import annotations

import math
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onegrad.cli.layout import new_table
from onegrad.degree.report import in_percent, means_in_words
from onegrad.text.display import count_of, value_text
from onegrad.theory.options import Theory

if TYPE_CHECKING:
    from rich.table import Table

    from onegrad.degree.report import DegreeReport
    from onegrad.predict.prediction import Prediction
    from onegrad.problem import Problem
    from onegrad.spec.experiment import Experiment, Point


def prediction_table(experiment: Experiment, predictions: Sequence[Prediction]) -> Table:
    """One line per point: errors, how sure, and by which theory."""
    table = new_table(experiment.name)
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    good = [p for p in predictions if p.status != "failed"]
    binary = any(p.misclassification is not None for p in good)
    methods = list(dict.fromkeys(p.method for p in good))
    headers = ["test error", "train error", "train objective", "test / Var y", "error estimate"]
    losses = any(p.test_loss != p.test_error for p in good)
    headers += ["misclassified"] if binary else []
    headers += ["test loss", "train loss"] if losses else []
    headers += ["theory"] if len(methods) > 1 else []
    for header in headers:
        table.add_column(header, justify="left" if header == "theory" else "right")
    for point, p in zip(experiment.points, predictions, strict=True):
        cells = [value_text(point.settings[key]) for key in experiment.sweep]
        if p.status == "failed":
            table.add_row(*cells, "failed")
            continue
        cells += [f"{v:.5g}" for v in (p.test_error, p.train_error, p.train_objective)]
        cells.append(f"{p.relative_error:.4g}" if math.isfinite(p.relative_error) else "")
        unchecked = math.isnan(p.error_estimate)
        cells.append("not checked" if unchecked else f"{100 * p.error_estimate:.2g} %")
        if binary:
            wrong = p.misclassification
            cells.append("" if wrong is None else f"{100 * wrong:.2f} %")
        cells += [f"{v:.5g}" for v in (p.test_loss, p.train_loss)] if losses else []
        table.add_row(*cells, *([p.method] if len(methods) > 1 else []))
    return table


def prediction_text(
    experiment: Experiment, predictions: Sequence[Prediction], why: bool = False
) -> str:
    """What the numbers mean; how they were computed if somebody asks why."""
    good = [p for p in predictions if p.status != "failed"]
    lines = step_in_words([p.problem for p in experiment.points])
    lines += assumptions_in_words(good)
    if why:
        for method in dict.fromkeys(p.method for p in good):
            own = [p.reasons for p in good if p.method == method]
            lines += _alike(own)
    return "\n".join(lines)


def answer_line(p: Prediction) -> str:
    """Test and training error of a single point with their uncertainty."""
    sure = "a draft, its error is not known"
    if not math.isnan(p.error_estimate):
        sure = f"both to about {100 * p.error_estimate:.2g} %"
        if p.error_estimate >= 1:
            sure = "neither is known to better than a factor of 2"
    power = ""
    if math.isfinite(p.relative_error):
        power = f" The best constant has test error {p.label_variance:.4g}."
    return f"Test error {p.test_error:.4g}, training error {p.train_error:.4g}: {sure}.{power}"


def step_in_words(problems: Sequence[Problem]) -> list[str]:
    """How large the step is, where that is known."""
    sizes = [p.step_size for p in problems if p.step_size]
    if not sizes:
        return []
    low, high = (f"{100 * size:.2g}" for size in (min(sizes), max(sizes)))
    size = low if low == high else f"{low} to {high}"
    return [
        f"Step: on average over samples it moves preactivations by {size} % of their own size; it "
        "is large from about 100 % on."
    ]


@contextmanager
def waiting_line(experiment: Experiment, theory: Theory, patience: float = 1.0) -> Iterator[None]:
    """After so many seconds a line on the terminal that says what is being computed."""
    count = count_of(len(experiment.points), "prediction")
    line = f"Computing {count} to {100 * theory.accuracy:.2g} % …"
    timer = threading.Timer(patience, print, (line,), {"file": sys.stderr, "flush": True})
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _from_to(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


_NUMBER = re.compile(r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def assumptions_in_words(predictions: Sequence[Prediction]) -> list[str]:
    """What each theory of a sweep means and assumes, a sentence a line.

    Sentences that differ in their numbers alone become one with the range of each number; what
    does not hold at all points says at how many.
    """
    lines = []
    methods = list(dict.fromkeys(p.method for p in predictions))
    for method in methods:
        if len(methods) > 1:
            lines.append(f"{method[:1].upper()}{method[1:]}:")
        lines += _alike([p.assumptions for p in predictions if p.method == method])
    return lines


def _alike(own: Sequence[Sequence[str]]) -> list[str]:
    """The sentences of several points, those that differ in their numbers alone as one."""
    alike: dict[str, list[str]] = {}
    for sentence in (s for one in own for s in one):
        if len(own) > 1:  # columns of one answer need not be those of the next
            sentence = " ".join(sentence.split())
        alike.setdefault(_NUMBER.sub("#", sentence), []).append(sentence)
    said = []
    for sentences in alike.values():
        where = f"At {len(sentences)} of {len(own)} points: " * (len(sentences) < len(own))
        said.append(where + with_ranges(sentences))
    return said


def with_ranges(sentences: Sequence[str]) -> str:
    """Sentences alike but for their numbers as one.

    >>> with_ranges(["about 2 % of 1/n.", "about 0.5 % of 1/n.", "about 1 % of 1/n."])
    'about 0.5 to 2 % of 1/n.'
    """
    columns = list(zip(*map(_NUMBER.findall, sentences), strict=True))
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), sentences[0])


def _range(numbers: Sequence[str]) -> str:
    def value(text: str) -> float:
        return float(text.replace("−", "-").replace(",", ""))

    least, most = min(numbers, key=value), max(numbers, key=value)
    return least if value(least) == value(most) else f"{least} to {most}"


def degree_table(experiment: Experiment, reports: Sequence[tuple[Point, DegreeReport]]) -> Table:
    """One line per point of a sweep: the degree that is enough at this size, the rule's degree, and
    the difference of each polynomial model to the network."""
    table = new_table(experiment.name)
    for key in experiment.sweep:
        table.add_column(key.rpartition(".")[2])
    upto = max(len(report.terms) for _, report in reports)
    degrees = [f"hermite:{j}" for j in range(1, upto + 1)]
    for header in ("enough", "rule", "to the next", *degrees):
        table.add_column(header, justify="right")
    for point, report in reports:
        cells = [value_text(point.settings[key]) for key in experiment.sweep]
        here = f"above {len(report.terms)}" if report.measured is None else str(report.measured)
        rule = "none" if report.degree is None else str(report.degree)
        cells += ["–" if report.failure else here]
        cells += [rule + " (capped)" * (report.degree is not None and report.capped)]
        cells += ["–" if report.to_next is None else f"{report.to_next:.3g}"]
        cells += [in_percent(term.difference) for term in report.terms]
        table.add_row(*cells)
    draws = [report.draws for _, report in reports]
    lines = [_MEASURED.format(_from_to([min(draws), max(draws)])), _ENOUGH]
    if any(report.to_next is not None for _, report in reports):
        lines.append("rule, to the next: the degree that is enough as n grows, and by how much "
                     "β (or α) may grow before it takes another one.")  # fmt: skip
    without = [why_no_rule(p.problem) for p, report in reports if report.degree is None]
    lines += [f"No rule: {why}." for why in dict.fromkeys(without)]
    lines += dict.fromkeys(f"Not measured: {r.failure}" for _, r in reports if r.failure)
    table.caption = "\n".join(lines)
    return table


_MEASURED = (
    "hermite:1, 2, …: test error of the model with a polynomial of that degree in the place of the "
    "activation, minus the network's, in percent of it; mean ± standard error over {} draws."
)
_ENOUGH = (
    "Enough at this size: from this degree on no difference is larger than 1 % and two standard "
    "errors."
)


def degree_text(point: Point, report: DegreeReport) -> str:
    """The measured answer, then the rule, then the table of degrees."""
    lines = []
    if point.settings:
        lines.append(", ".join(f"{k} = {value_text(v)}" for k, v in point.settings.items()))
    problem = point.problem
    sizes = f"n = {problem.dim}, m = {problem.samples}, k = {problem.width}"
    lines += [report.answer, ""]
    lines.append(f"At η = {problem.rate:.4g}, θ = {problem.spread:.4g} ({sizes}):")
    if report.degree is None:
        lines.append(f"No degree by the rule: {why_no_rule(problem)}.")
    else:
        lines += _degree_reason(report)
        if report.means is not None and report.means.visible:
            lines.append(f"But {means_in_words(report.means, report.degree)}")
    lines += ["", report.table()]
    lines += [_MEASURED.format(report.draws), _ENOUGH]
    if report.degree is not None:
        lines.append("bound: how the theorem's bound of what the term adds to noise grows with n.")
    if report.link is not None:
        lines.append(f"The labels' link has {report.link}.")
    return "\n".join(lines) + "\n"


def why_no_rule(problem: Problem) -> str:
    """Why the degree rule says nothing of a problem, for which Problem.strength is None."""
    if not problem.one_step:
        return "it is one of a single step of gradient descent"
    if problem.scaling.exponent is not None:
        return "in the isotropic convention it is one of data without spikes"
    return "η and θ are set by hand, and it asks how they grow with n (scaling.strength)"


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
