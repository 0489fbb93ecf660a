"""Which polynomial degree is enough for a problem, and what the terms left out amount to."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.compute.backend import Array, get_backend
from onegrad.compute.linalg import operator_norm
from onegrad.compute.randomness import Streams
from onegrad.compute.threads import blas_threads, threads_for
from onegrad.degree.mean_features import MeansCheck, check_means
from onegrad.errors import verb
from onegrad.gaussian.exponents import LinkExponents, link_exponents
from onegrad.gaussian.polynomials import hermite_series, sqrt_factorial
from onegrad.problem import MOST_DEGREE, Problem, as_problem, degree_rule, needed_degree
from onegrad.simulate.network.rounding import worth_rounding
from onegrad.simulate.network.trial import Draw, Trial
from onegrad.spec.presets import Spec
from onegrad.text.display import html_table, plots, text_table

_ROUNDING = 1e-12  # shares below are those of a term that is not there
_SMALL = 2000  # sizes up to which some matrices fit into every memory
_COLUMNS = ("degree", "kept", "share of E σ²", "norm over noise")
_RATIO = "norm over noise: of one draw; other draws differ by a factor of two to three"

if TYPE_CHECKING:
    from onegrad.spec.experiment import Experiment, Point


@dataclass(frozen=True)
class Term:
    """The term h_j/j!·H_j(Ŵx/b) of the features, at the problem's own size.

    `share` of E σ(bZ)², and `norm_ratio`: its operator norm over that of the same polynomial of
    independent Gaussians, that is of pure noise, which the Hermite model puts in the place of a
    term it leaves out. A ratio near 1 is harmless; above, structure is lost. `exponent`: the
    theorem bounds the term's excess by n^exponent.
    """

    degree: int
    kept: bool
    share: float
    norm_ratio: float
    exponent: float | None


@dataclass(frozen=True)
class DegreeReport:
    """The degree ℓ of the rule, where the parameter stands, and the next terms.

    degree : ℓ, or None where no rule is known (η or θ set by hand)
    needed : the degree that the theorem asks for, above ℓ where the rule stops at its highest
        degree; None where no finite degree is enough, or no rule is known
    symbol, value : the rule's parameter, β or α = β/2
    interval : the values with the same `degree`, enough or capped alike; degree 1 has no lower
        end (None), and a capped degree no upper one
    to_next : how far `value` is below the upper end, 0 on the boundary; None without one
    on_boundary : `value` is the upper end, where the term of the next degree neither grows nor
        vanishes
    means : whether the model of that degree fits the labels' means as the network does, which the
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
    means: MeansCheck | None = None
    link: LinkExponents | None = None

    def __repr__(self) -> str:
        text = f"{self._headline()}\n{text_table(_COLUMNS, self._lines())}"
        return text if self.link is None else f"{text}\nLabels: {self.link}"

    def _repr_html_(self) -> str:
        return html_table(self._headline(), _COLUMNS, self._lines(), (_RATIO,))

    def _headline(self) -> str:
        if self.degree is None or self.value is None:
            return "No degree by the rule: choose one by the terms."
        enough = "the highest that the rule gives" if self.capped else "enough as n grows"
        if self.means is not None and self.means.visible and not self.capped:
            enough = "by the rule, which leaves the labels' means aside"
        return f"Degree {self.degree}, {enough}: {self.symbol} = {self.value:g}"

    def _lines(self) -> list[list[str]]:
        mark = {True: "yes", False: "–" if self.degree is None else "no"}
        return [
            [str(t.degree), mark[t.kept], f"{t.share:.2e}", f"{t.norm_ratio:.2f}"]
            if t.norm_ratio
            else [str(t.degree), mark[t.kept], "0", "absent"]
            for t in self.terms
        ]

    @property
    def capped(self) -> bool:
        """Whether the theorem asks for more than the rule gives."""
        return self.degree != self.needed

    def plot(self, ax: Any = None) -> Any:
        """Each term's operator norm over that of pure noise; returns the axes."""
        return plots().plot_degree(self, ax)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"capped": self.capped}


@verb
def degree(problem: Problem | Spec, seed: int = 0, beyond: int = 3) -> DegreeReport:
    """The degree rule, and one draw of the trained network that measures the terms.

    Cost: one gradient step and one product XŴᵀ (O(kmn)), then elementwise work.
    """
    problem = as_problem(problem)
    beta, scaling = problem.strength, problem.scaling
    low: float | None
    high: float | None
    sizes = problem.dim, problem.width, problem.samples, problem.step_samples
    if max(sizes) > _SMALL:
        from onegrad.simulate.memory import (
            check_memory,  # a small problem fits, and is not kept waiting
        )

        check_memory(problem)
    with blas_threads(threads_for(problem.operations)):
        terms = _terms(problem, Streams(seed, 0), beyond)
    symbol = "β (scaling.strength)"
    if scaling.exponent is not None:
        symbol = "α (scaling.exponent)"
    elif beta != scaling.strength:  # without spikes the learning rate alone counts
        symbol = "β (scaling.strength·weighting)"
    link = _exponents(problem)
    if beta is None:
        return DegreeReport(None, None, symbol, None, None, None, False, terms, link=link)
    degree, needed = degree_rule(beta), needed_degree(beta)
    unit = 1.0 if scaling.exponent is None else 0.5  # the isotropic source's α is β/2
    low, high = unit * (degree - 1) / degree or None, unit * degree / (degree + 1)
    if needed != degree:
        low, high = high, None
    to_next = None if high is None else max(0.0, high - beta * unit)
    boundary = to_next is not None and to_next < 1e-9
    value, interval = beta * unit, (low, high)
    means = check_means(problem, degree, seed)
    return DegreeReport(
        degree, needed, symbol, value, interval, to_next, boundary, terms, means, link
    )


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


def _terms(problem: Problem, streams: Streams, beyond: int) -> tuple[Term, ...]:
    """The terms that the rule keeps, or might keep where there is none, and `beyond` more.

    Of large problems in single precision, unless a polynomial overflows there.
    """
    if worth_rounding(problem):
        backend = get_backend("cpu", "float32")
        with np.errstate(over="ignore", invalid="ignore"):
            terms = _terms_of(
                Trial(problem, streams, draw=Draw(problem, streams, None, backend)), beyond
            )
        if all(math.isfinite(term.norm_ratio) for term in terms):
            return terms
    return _terms_of(Trial(problem, streams), beyond)


def _terms_of(trial: Trial, beyond: int) -> tuple[Term, ...]:
    problem, beta = trial.problem, trial.problem.strength
    degree = 0 if beta is None else degree_rule(beta)
    upto = (MOST_DEGREE if beta is None else degree) + beyond
    scale = problem.bulk_scale
    h = problem.activation.projections(upto, scale)
    energy = problem.activation.second_moment(scale)
    scaled = trial.train.preactivation(trial.updated_weights) / scale
    terms = []
    for j in range(1, upto + 1):
        size = float(abs(h[j]) / sqrt_factorial(j)[-1])
        share = size**2 / energy if energy else 0.0
        share = share if share > _ROUNDING else 0.0  # even terms of odd activations
        ratio = 0.0
        if share:
            norm = operator_norm(_normalised(j, scaled))
            ratio = norm / _noise_norm(j, scaled.shape, scaled.dtype)
        exponent = None if beta is None else (1 - j * (1 - beta)) / 2
        terms.append(Term(j, j <= degree, share, ratio, exponent))
    return tuple(terms)


@lru_cache(maxsize=256)
def _noise_norm(degree: int, shape: tuple[int, int], dtype: np.dtype) -> float:
    """Of the same polynomial of independent Gaussians; the points of a sweep share it."""
    return operator_norm(_normalised(degree, _noise(shape, dtype)))


@lru_cache(maxsize=1)
def _noise(shape: tuple[int, int], dtype: np.dtype) -> Array:
    """The same for all degrees."""
    return np.random.default_rng(0).standard_normal(shape).astype(dtype, copy=False)


def _normalised(degree: int, x: Array) -> Array:
    """H_j(x)/√j!."""
    unit = np.zeros(degree + 1)
    unit[degree] = 1.0 / sqrt_factorial(degree)[-1]
    return hermite_series(unit, x)
