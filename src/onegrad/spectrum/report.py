"""Singular values of weights and features before and after the step(s), beside their limits.

For every problem: isotropic data, mixtures, general bulks, several steps, other optimisers, images.
Where no limit is known the report has the draw alone, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.compute.randomness import Streams
from onegrad.errors import OnegradError, verb
from onegrad.problem import Problem, as_problem
from onegrad.simulate.memory import check_memory
from onegrad.simulate.network.trial import Trial
from onegrad.spec.presets import Spec
from onegrad.spectrum.singular import all_singular_values, leading_singular
from onegrad.text.display import html_table, plots, text_table
from onegrad.theory.closed import leading_eigenvectors
from onegrad.theory.geometry import teacher_names
from onegrad.theory.spectral.draws import alignment_doubts
from onegrad.theory.spectral.functions import sample_functions
from onegrad.theory.spectral.law import SpectralLaw, edge_and_threshold
from onegrad.theory.spectral.resolvent import Resolvent
from onegrad.theory.spectral.structured import (
    LimitingSpectrum,
    MatrixLimit,
    structured_limit,
    why_no_limit,
)

_FULL = 3000  # up to this many rows or columns all singular values are computed, for histograms
_LEADING = 12
_TYPES = 64  # of rows by their length
_LONGEST = 24  # rows that are types of their own: a few long ones may have singular values alone
_SHOWN = 0.2  # cosines from which on an alignment is shown
_COLUMNS = ("matrix", "bulk edge", "outliers", "largest singular values", "in the limit", "along")


@dataclass(frozen=True)
class MatrixSpectrum:
    """Singular values of Ŵ or F/√m in one draw, and what the limit says.

    before, after : all of them without and with the step(s); empty for large matrices
    leading : the largest ones after the step, edge : where the bulk ends
    threshold : from where on they count as outliers, with room for finite size
    outliers : how many do; None where no edge is known
    alignments : |cosine| of the singular vector of each with named functions or directions
    limit : law of the bulk, outliers, alignments and strengths; None where it is not known
    distance : Kolmogorov distance of `after` to the law of the bulk; NaN without
    """

    before: Array
    after: Array
    leading: Array
    edge: float
    threshold: float
    outliers: int | None
    alignments: tuple[dict[str, float], ...]
    limit: MatrixLimit | None
    distance: float

    @property
    def predicted(self) -> list[float]:
        """Outliers in the limit, as singular values: means over draws of this size."""
        return [] if self.limit is None else [o.singular_value for o in self.limit.outliers]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why cosines of each predicted outlier differ from draw to draw (`alignment_doubts`)."""
        if self.limit is None:
            return ()
        return alignment_doubts(self.limit.outliers, self.threshold)

    def as_json(self) -> dict[str, Any]:
        known = self.limit is not None
        return {
            "edge": _finite(self.edge),
            "threshold": _finite(self.threshold),
            "outliers": self.outliers,
            "leading": self.leading.tolist(),
            "alignments": [dict(a) for a in self.alignments],
            "predicted": self.predicted if known else None,
            "predicted_deviations": [o.deviation for o in self.limit.outliers]
            if self.limit
            else None,
            "predicted_alignments": [o.alignments for o in self.limit.outliers]
            if self.limit
            else None,
            "alignment_doubts": list(self.doubts) if known else None,
            "strengths": self.limit.strengths.tolist() if self.limit else None,
            "distance": _finite(self.distance),
        }


@dataclass(frozen=True)
class SpectrumReport:
    """Weights and features of one drawn network, beside their limits.

    note : why there are no limits; empty where there are
    expected_outliers : directions that a second step on isotropic data adds to the weights, by the
        exponents of the rates  [moniri2026], beside that of the gradient itself; None elsewhere
    """

    weights: MatrixSpectrum
    features: MatrixSpectrum
    note: str
    expected_outliers: int | None

    @property
    def weight_values(self) -> tuple[Array, Array]:
        """Singular values of the weights before and after the step(s)."""
        return self.weights.before, self.weights.after

    @property
    def feature_values(self) -> tuple[Array, Array]:
        """Singular values of the features before and after the step(s)."""
        return self.features.before, self.features.after

    def __repr__(self) -> str:
        return "\n".join([self._title(), text_table(_COLUMNS, self._lines())])

    def _repr_html_(self) -> str:
        return html_table(self._title(), _COLUMNS, self._lines())

    def _title(self) -> str:
        parts = ["Spectrum of one draw"]
        if self.note:
            parts.append(f"no limits: {self.note}")
        if self.expected_outliers is not None:
            parts.append(
                f"{self.expected_outliers} outliers of the weights expected beside the gradient's"
            )
        return "; ".join(parts)

    def _lines(self) -> list[list[str]]:
        pairs = (("weights", self.weights), ("features", self.features))
        return [_line(name, one) for name, one in pairs]

    def plot(self, which: str = "features", ax: Any = None) -> Any:
        """Singular values of the draw, the limiting density, outliers found and predicted.

        which : "features" (one panel) or "weights" (before and after the step, two)
        """
        return plots().plot_spectrum(self, which, ax)

    def as_json(self) -> dict[str, Any]:
        return {
            "weights": self.weights.as_json(),
            "features": self.features.as_json(),
            "expected_outliers": self.expected_outliers,
            "note": self.note,
        }


@verb
def limiting_spectrum(problem: Problem | Spec) -> LimitingSpectrum:
    """The limiting laws alone; nothing is drawn.

    Half a second for isotropic data, up to half a minute after a step on a bulk that is not flat.
    Raises AssumptionError where no limit is known: several steps on such a bulk, other optimisers,
    images.
    """
    return structured_limit(as_problem(problem))


@verb
def spectrum(problem: Problem | Spec, seed: int = 0) -> SpectrumReport:
    """Weights and features of repetition 0 with that seed, and the limits for the same directions.

    Cost: that of one repetition, all singular values up to 3000 rows or columns (O(km·min(k, m))),
    beyond that the leading ones by Lanczos iterations (O(km) each), and `limiting_spectrum`.
    """
    problem = as_problem(problem)
    check_memory(problem)
    note, limit = why_no_limit(problem), None
    if not note:
        try:
            limit = structured_limit(problem, "drawn", seed)
        except OnegradError as error:
            note = str(error).removeprefix("no limiting spectrum: ")
    trial = Trial(problem, Streams(seed, 0))
    before, after = host(trial.weights), host(trial.updated_weights)
    named = _directions(trial, before, after)
    if limit is None:
        edges = _edges_of_rows(problem, after)
    else:
        law = limit.weights.law
        edges = math.sqrt(law.edge), _threshold(law, after)
    weights = _measured((before, after), edges, None if limit is None else limit.weights, named)
    inputs = trial.train
    pair = [host(problem.activation(inputs.preactivation(w))) for w in (trial.weights, after)]
    pair = [f / math.sqrt(problem.samples) for f in pair]
    found = None if limit is None else limit.features
    edges = (math.nan, math.nan)
    if found is not None:
        edges = math.sqrt(found.law.edge), _threshold(found.law, pair[1])
    features = _measured((pair[0].T, pair[1].T), edges, found, _functions(trial, named))
    return SpectrumReport(weights, features, note, expected_outliers(problem))


def expected_outliers(problem: Problem) -> int | None:
    """⌊α₂/(½ − α₁)⌋ directions that the second of two steps with η₁ ≍ m^{α₁}, η₂ ≍ m^{α₂} adds to
    the weights on isotropic data  [moniri2026]; None for other problems (eq. two-steps).

    Term k of σ' in powers of the first step has the strength η₂η₁^k N^{−k/2}
    (docs/book/spectra.md); that of k = 0, the gradient's own direction, is not counted.
    """
    exponent, training = problem.scaling.exponent, problem.training
    two = isinstance(exponent, tuple) and len(exponent) == 2 and training.optimiser == "gd"
    if not (two and problem.data.isotropic and training.batch == "fresh"):
        return None
    assert isinstance(exponent, tuple)
    first, second = exponent
    if not (0 <= first < 0.5 and 0 <= second < 0.5):
        return None
    return math.floor(second / (0.5 - first) + 1e-9)


def _edges_of_rows(problem: Problem, weights: Array) -> tuple[float, float]:
    """Edge and threshold of a matrix with rows of these lengths beside its outliers and no other
    structure, eq. row-law: steps of gradient descent stretch neurons and add noise
    to them. NaN after other optimisers, which move the whole bulk."""
    if problem.trained and problem.training.optimiser != "gd":
        return math.nan, math.nan
    most = min(_LEADING, *weights.shape)
    _, values, right = leading_singular(weights, most)
    edge = threshold = math.nan
    for count in range(most):  # the fewest that explain themselves: long rows are no outliers
        rest = weights - (weights @ right[:count].T) @ right[:count]
        squares = np.sort(np.sum(rest**2, axis=1))
        others = len(rest) - min(_LONGEST, len(rest) // 2)
        parts = np.array_split(squares[:others], min(_TYPES, others))
        parts += [squares[i : i + 1] for i in range(others, len(rest))]
        types, counts = np.array([(part.mean(), len(part)) for part in parts]).T
        left = float(problem.dim - count)
        bulk = Resolvent(types[:, None], (), counts, np.ones(1), left)
        edge, threshold = edge_and_threshold(bulk, min(weights.shape))
        if np.sum(values > threshold) <= count:
            break
    return edge, threshold


def _threshold(law: SpectralLaw, matrix: Array) -> float:
    return law.threshold(min(matrix.shape))


def _measured(
    pair: tuple[Array, Array],
    edges: tuple[float, float],
    limit: MatrixLimit | None,
    functions: Mapping[str, Array],
) -> MatrixSpectrum:
    """Of matrices before and after (their right singular vectors are what functions compare to)."""
    after = pair[1]
    full = max(after.shape) <= _FULL
    values = [all_singular_values(m) if full else np.zeros(0) for m in pair]
    count = min(_LEADING, *after.shape)
    _, leading, right = leading_singular(after, count)
    edge, threshold = edges
    found = None if math.isnan(edge) else int(np.sum(leading > threshold))
    aligned = tuple(
        {name: abs(float(vector @ psi)) / float(np.linalg.norm(psi)) for name, psi in
         functions.items() if np.any(psi)}
        for vector in right[: count if found is None else found]
    )  # fmt: skip
    distance = math.nan
    if limit is not None and full:
        rank = min(after.shape)
        distance = limit.law.distance(values[1][:rank])
    return MatrixSpectrum(values[0], values[1], leading, edge, threshold, found, aligned, limit,
                          distance)  # fmt: skip


def _directions(trial: Trial, before: Array, after: Array) -> dict[str, Array]:
    """Teacher, spikes, means and the step, unit vectors (n,)."""
    named: dict[str, Array] = {}
    if trial.problem.data.known:
        population, teacher = trial.instance.population, trial.instance.teacher
        for c, spikes in enumerate(population.spikes):
            named |= {f"spike {c + 1}.{i + 1}": spikes[:, i] for i in range(spikes.shape[1])}
        if teacher.values is None:
            named |= teacher_names(teacher.direction)
        named |= {f"mean {c + 1}": mean for c, mean in enumerate(population.means)}
        if population.bulk is not None:
            unit = np.eye(population.dim, leading_eigenvectors(population.bulk))
            named |= {f"eigenvector {a + 1}": unit[:, a] for a in range(unit.shape[1])}
    if trial.problem.trained:
        named["step"] = (after - before).T @ host(trial.readout)
    return {k: v / np.linalg.norm(v) for k, v in named.items() if v.ndim == 1 and np.any(v)}


def _functions(trial: Trial, named: Mapping[str, Array]) -> dict[str, Array]:
    batch, count = trial.train.batch, len(trial.train.batch)
    x, component = host(batch.x), np.asarray(batch.component)
    members = {f"component {c + 1}": (component == c).astype(float) for c in np.unique(component)}
    projections = {name: x @ direction for name, direction in named.items()}
    return sample_functions(projections, members, np.full(count, 1.0 / count))


def _line(name: str, one: MatrixSpectrum) -> list[str]:
    count = 3 if one.outliers is None else max(one.outliers, 1)
    best = []
    for alignment in one.alignments[:count]:
        top = max(alignment, key=lambda key: alignment[key], default="")
        best.append(f"{top} {alignment[top]:.2f}" if top and alignment[top] > _SHOWN else "–")
    limits = "not known" if one.limit is None else _numbers(one.predicted) or "none"
    return [
        name, "not known" if math.isnan(one.edge) else f"{one.edge:.3f}",
        "–" if one.outliers is None else str(one.outliers), _numbers(one.leading[:count]), limits,
        ", ".join(best) or "–",
    ]  # fmt: skip


def _numbers(values: Any) -> str:
    return ", ".join(f"{v:.3f}" for v in values)


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
