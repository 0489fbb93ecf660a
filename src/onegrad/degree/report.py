"""Which polynomial degree is enough for a problem, and what the terms left out amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from onegrad.degree.mean_features import MeansCheck, check_means
from onegrad.errors import AssumptionError, verb
from onegrad.gaussian.exponents import LinkExponents, link_exponents
from onegrad.gaussian.polynomials import sqrt_factorial
from onegrad.problem import MOST_DEGREE, Problem, as_problem, degree_rule, needed_degree
from onegrad.results.estimates import Estimate
from onegrad.results.results import Results
from onegrad.results.verdict import BAND
from onegrad.runs.coordinator import Progress
from onegrad.runs.cost import Agree
from onegrad.runs.engines import Dask, Local
from onegrad.runs.run import simulate_experiment
from onegrad.spec.experiment import Compare, Experiment, Point
from onegrad.spec.figure_options import FigureOptions
from onegrad.spec.presets import Spec
from onegrad.text.display import html_table, plots, text_table

_ROUNDING = 1e-12  # a smaller share of the variance means that the term is absent
_PRECISION = 0.02  # standard error of the mean test error at which a point has enough draws
_FEWEST, _MOST = 8, 20  # draws; paired differences to the network are known far better
_ERRORS = 2  # standard errors of a difference that chance explains
_COLUMNS = ("degree", "rule", "test error beside the network's", "share of E σ²", "bound")

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Term:
    """The polynomial model of this degree, and its last term h_j/j!·H_j(Ŵx/b).

    kept : whether the rule keeps the term
    share : of the term in E σ(bZ)²
    difference : test error of the model minus the network's, relative to it: mean over draws,
        standard error, paired; NaN where it could not be simulated
    exponent : the theorem bounds what the term adds to noise by n^exponent; None without a rule
    """

    degree: int
    kept: bool
    share: float
    difference: Estimate
    exponent: float | None


@dataclass(frozen=True)
class DegreeReport:
    """Which degree is enough: at this size, measured; and as n grows, by the rule.

    degree : ℓ of the rule, or None where no rule is known (η or θ set by hand)
    needed : the degree that the theorem asks for, above ℓ where the rule stops at its highest
        degree; None where no finite degree is enough, or no rule is known
    symbol, value : the rule's parameter, β or α = β/2
    interval : the values with the same `degree`, enough or capped alike; degree 1 has no lower
        end (None), and a capped degree no upper one
    to_next : how far `value` is below the upper end, 0 on the boundary; None without one
    on_boundary : `value` is the upper end, where the term of the next degree neither grows nor
        vanishes
    measured : the least degree from which on no model's test error differs from the network's by
        more than 1 % and two standard errors; None if there is none
    draws : of data and network that were simulated
    failure : why models could not be simulated; empty if they were
    means : whether the model of degree ℓ fits the labels' means as the network does, which the
        rule takes for granted; None without a degree, or where data are not known
    link : information and leap exponents of the labels' link; None where there is no one link
    """

    degree: int | None
    needed: int | None
    symbol: str
    value: float | None
    interval: tuple[float | None, float | None] | None
    to_next: float | None
    on_boundary: bool
    terms: tuple[Term, ...]
    measured: int | None
    draws: int
    failure: str = ""
    means: MeansCheck | None = None
    link: LinkExponents | None = None

    def __repr__(self) -> str:
        text = f"{self.answer}\n{self._rule()}\n{self.table()}"
        return text if self.link is None else f"{text}\nLabels: {self.link}"

    def table(self) -> str:
        """A line for each degree, as text."""
        return text_table(_COLUMNS, self._lines())

    def _repr_html_(self) -> str:
        return html_table(self.answer, _COLUMNS, self._lines(), (self._rule(),))

    @property
    def answer(self) -> str:
        """Which degree is enough at this size, in a sentence."""
        if self.failure:
            return f"Not measured: {self.failure}"
        last = self.terms[-1] if self.measured is None else self.terms[self.measured - 1]
        known = (
            f"test error differs from the network's by {in_percent(last.difference)} "
            f"({self.draws} draws)."
        )
        if self.measured is None:
            return f"No degree up to {last.degree} is enough at this size: its {known}"
        return f"Degree {last.degree} is enough at this size: its {known}"

    def _rule(self) -> str:
        if self.degree is None or self.value is None:
            return "Rule: none for this problem."
        enough = "the highest that the rule gives" if self.capped else "enough as n grows"
        if self.means is not None and self.means.visible and not self.capped:
            enough = "which leaves the labels' means aside"
        return f"Rule: degree {self.degree}, {enough}; {self.symbol} = {self.value:g}."

    def _lines(self) -> list[list[str]]:
        mark = {True: "keeps", False: "–" if self.degree is None else "drops"}
        return [
            [
                str(t.degree),
                mark[t.kept],
                in_percent(t.difference),
                f"{t.share:.2g}",
                "" if t.exponent is None else f"n^{t.exponent:+.2f}",
            ]
            for t in self.terms
        ]

    @property
    def capped(self) -> bool:
        """Whether the theorem asks for more than the rule gives."""
        return self.degree != self.needed

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw each model's difference to the network with its error bar; returns the axes."""
        return plots().plot_degree(self, ax)

    def as_json(self) -> dict[str, Any]:
        record = asdict(self) | {"capped": self.capped}
        for term in record["terms"]:
            term["difference"], term["difference_se"] = term["difference"]
        return record


def in_percent(difference: Estimate) -> str:
    """`+0.35 ± 0.12 %`."""
    mean, error = difference
    return f"{100 * mean:+.2f} ± {100 * error:.2f} %" if mean == mean else "–"


@verb
def degree(problem: Problem | Spec, seed: int = 0, draws: int = _MOST) -> DegreeReport:
    """The degree rule, and the polynomial models of degree 1, 2, … simulated beside the network.

    draws : at most; fewer where the test errors are known to 2 % after at least 8
    """
    compare = Compare(models=("network",), seeds=draws, seed=seed)
    point = Point({}, as_problem(problem), compare)
    experiment = Experiment("degree", compare, {}, (point,), FigureOptions())
    return degrees(experiment)[0]


def degrees(
    experiment: Experiment,
    engine: Local | Dask = Local(),
    progress: Progress | None = None,
    agree: Agree | None = None,
) -> list[DegreeReport]:
    """One report for each point; at most as many draws as the experiment has seeds."""
    upto = max(map(_measured_upto, experiment.points))
    models = ("network", *(f"hermite:{j}" for j in range(1, upto + 1)))
    most = min(_MOST, experiment.compare.largest_count)
    how = {
        "models": models, "seeds": "auto", "precision": _PRECISION, "control_variates": False,
        "fewest_seeds": min(_FEWEST, most), "most_seeds": most,
    }  # fmt: skip
    points = tuple(replace(p, compare=p.compare.model_copy(update=how)) for p in experiment.points)
    asked = replace(experiment, compare=experiment.compare.model_copy(update=how), points=points)
    results = simulate_experiment(asked, engine, progress, agree)
    networks = [row for row in results.rows if row.model == "network"]
    if all(row.status != "ok" for row in networks):
        raise AssumptionError(networks[0].error)
    return [_report(point, results) for point in points]


def _measured_upto(point: Point) -> int:
    """The degree of the rule and the next one; four without a rule."""
    beta = point.problem.strength
    return MOST_DEGREE if beta is None else degree_rule(beta) + 1


def _report(point: Point, results: Results) -> DegreeReport:
    problem = point.problem
    beta, scaling = problem.strength, problem.scaling
    low: float | None
    high: float | None
    own = Results("", tuple(row for row in results.rows if row.number == point.number))
    terms = _terms(problem, own, _measured_upto(point))
    draws = max(s.seeds for s in own.summaries())
    failure = next((row.error for row in own.rows if row.status != "ok"), "")
    enough = None if failure else _enough(terms, draws)
    symbol = "β (scaling.strength)"
    if scaling.exponent is not None:
        symbol = "α (scaling.exponent)"
    elif beta != scaling.strength:  # without spikes the learning rate alone counts
        symbol = "β (scaling.strength·weighting)"
    without = DegreeReport(
        None, None, symbol, None, None, None, False, terms, enough, draws, failure,
        link=_exponents(problem),
    )  # fmt: skip
    if beta is None:
        return without
    degree, needed = degree_rule(beta), needed_degree(beta)
    unit = 1.0 if scaling.exponent is None else 0.5  # the isotropic source's α is β/2
    low, high = unit * (degree - 1) / degree or None, unit * degree / (degree + 1)
    if needed != degree:
        low, high = high, None
    to_next = None if high is None else max(0.0, high - beta * unit)
    return replace(
        without, degree=degree, needed=needed, value=beta * unit, interval=(low, high),
        to_next=to_next, on_boundary=to_next is not None and to_next < 1e-9,
        means=check_means(problem, degree, point.compare.seed),
    )  # fmt: skip


def _enough(terms: Sequence[Term], draws: int) -> int | None:
    """The least degree from which on all models agree with the network."""
    off = [t.degree for t in terms if draws < 2 or not _agrees(t.difference)]
    least = max(off, default=0) + 1
    return least if least <= len(terms) else None


def _agrees(difference: Estimate) -> bool:
    return abs(difference.mean) <= BAND + _ERRORS * difference.standard_error


def _terms(problem: Problem, own: Results, upto: int) -> tuple[Term, ...]:
    """The terms that the rule keeps and the next one; four where there is no rule."""
    beta, scale = problem.strength, problem.bulk_scale
    degree = 0 if beta is None else degree_rule(beta)
    h = problem.activation.projections(upto, scale)
    energy = problem.activation.second_moment(scale)
    differences = {s.model: s.test_difference for s in own.summaries()}
    terms = []
    for j in range(1, upto + 1):
        size = float(abs(h[j]) / sqrt_factorial(j)[-1])
        share = size**2 / energy if energy else 0.0
        share = share if share > _ROUNDING else 0.0  # even terms of odd activations
        exponent = None if beta is None else (1 - j * (1 - beta)) / 2
        terms.append(Term(j, j <= degree, share, differences[f"hermite:{j}"], exponent))
    return tuple(terms)


def _exponents(problem: Problem) -> LinkExponents | None:
    """Of the link that all components share."""
    if problem.joint_link is not None:
        return link_exponents(problem.joint_link)
    links = set(problem.links or ())
    return link_exponents(links.pop()) if len(links) == 1 else None


def degree_notes(experiment: Experiment) -> list[str]:
    """What a reader of a run with polynomial models has to know about their automatic degree.

    Where it is capped, and where the rule's assumption visibly fails; of points with the same
    activation, labels and degree the first one is looked at.
    """
    from onegrad.simulate.models import MODELS

    automatic = {name for name, model in MODELS.items() if model.polynomial}  # no hermite:1
    names = [name for name in experiment.compare.models if name in automatic]
    first: dict[str, Point] = {}
    capped = []
    for point in experiment.points if names else ():
        problem = point.problem
        if point.degree is not None or problem.strength is None:
            continue
        if needed_degree(problem.strength) != problem.degree:
            capped.append(point)
        key = (problem.activation, problem.labels, problem.network.convention, problem.degree)
        first.setdefault(repr(key), point)
    notes = []
    models = ", ".join(names)
    if capped:
        where = f"{len(capped)} of {len(experiment.points)} points"
        notes.append(
            f"{models}: degree {MOST_DEGREE}, the highest that the rule gives, at {where}; the "
            "theorem asks for more there, and the source stops for numerical stability."
        )
    for point in first.values():
        degree = point.problem.degree
        means = check_means(point.problem, degree, point.compare.seed)
        if means is not None and means.visible:
            here = ", ".join(f"{k} = {v}" for k, v in point.settings.items())
            notes.append(f"{models}{' at ' * bool(here)}{here}: {means_in_words(means, degree)}")
    return notes


def means_in_words(means: MeansCheck, degree: int) -> str:
    """Why the rule's degree is not to be trusted here, and what to do."""
    size = f"about {100 * abs(means.lost):.0f} % {'higher' if means.lost > 0 else 'lower'}"
    advice = f"No degree up to {MOST_DEGREE} mends it."
    if means.mended_by is not None:
        advice = f"compare.degree = {means.mended_by} mends it."
    return (
        f"degree {degree} cannot fit the labels' means as the network does, which has even terms "
        f"of higher degree for them. The rule leaves means aside: for that alone the model's test "
        f"error is {size} than the network's, or more, and n does not help. {advice}"
    )
