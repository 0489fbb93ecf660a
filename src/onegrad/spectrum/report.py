"""Singular values of weights and features before and after the step(s), beside their limits.

For every problem: isotropic data, mixtures, general bulks, several steps, other optimisers, images.
Where no limit is known the report has the draw alone, and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds

from onegrad.compute.backend import Array, host
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError, ConvergenceError, OnegradError, verb
from onegrad.problem import Problem, as_problem
from onegrad.results.rows import SPECTRUM_NUMBERS
from onegrad.simulate.memory import check_memory
from onegrad.simulate.network.trial import Trial
from onegrad.spec.presets import Spec
from onegrad.text.display import html_table, plots, text_table
from onegrad.theory.directions.closed import leading_eigenvectors
from onegrad.theory.directions.geometry import teacher_names
from onegrad.theory.spectra.functions import sample_functions
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.limits import (
    LimitingSpectrum,
    MatrixLimit,
    spectral_limit,
    why_no_limit,
)
from onegrad.theory.spectra.outliers import MOST, Outlier, alignment_doubts
from onegrad.theory.spectra.resolvent import Resolvent

_FULL = 3000  # up to this many rows or columns all singular values are computed, for histograms
_DENSE = 600  # smaller dimension up to which a full decomposition is faster
_TYPES = 64  # groups of rows of similar length, for the edge of a bulk without a limit
_LONGEST = 24  # longest rows, each a group of its own: one row may cause a singular value
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
        limit = self.limit
        predicted: dict[str, Any] = dict.fromkeys(
            ("predicted", "predicted_deviations", "predicted_alignments", "alignment_doubts",
             "strengths")
        )  # fmt: skip
        if limit is not None:
            predicted = {
                "predicted": self.predicted,
                "predicted_deviations": [o.deviation for o in limit.outliers],
                "predicted_alignments": [o.alignments for o in limit.outliers],
                "alignment_doubts": self.doubts,
                "strengths": limit.strengths,
            }
        own = ("edge", "threshold", "outliers", "leading", "alignments", "distance")
        plain: dict[str, Any] = _plain({name: getattr(self, name) for name in own} | predicted)
        return plain

    def numbers(self) -> dict[str, float | None]:
        """Those with a column of their own in a store: SPECTRUM_NUMBERS."""
        predicted, count = self.predicted, self.outliers
        values = (
            self.edge, self.threshold, math.nan if count is None else count,
            math.nan if self.limit is None else len(predicted), float(self.leading[0]),
            predicted[0] if predicted else math.nan, self.distance,
        )  # fmt: skip
        return dict(zip(SPECTRUM_NUMBERS, map(_finite, values), strict=True))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> MatrixSpectrum:
        limit, known = None, record["limit"]
        if known is not None:
            law: dict[str, Any] = {
                k: np.array(v) if isinstance(v, list) else v for k, v in known["law"].items()
            }
            outliers = tuple(Outlier(**one) for one in known["outliers"])
            limit = MatrixLimit(SpectralLaw(**law), outliers, np.array(known["strengths"]))
        before, after, leading = (np.array(record[key]) for key in ("before", "after", "leading"))
        edge, threshold, distance = (
            math.nan if record[key] is None else record[key]
            for key in ("edge", "threshold", "distance")
        )
        return cls(before, after, leading, edge, threshold, record["outliers"],
                   tuple(record["alignments"]), limit, distance)  # fmt: skip


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

    def record(self) -> dict[str, Any]:
        """Plain JSON, which a store keeps and `of_record` gives back: what was drawn, its limits,
        and under "numbers" those with a column of their own."""
        plain: dict[str, Any] = _plain(asdict(self))
        plain["numbers"] = {
            f"{matrix}_{name}": value
            for matrix, one in (("weight", self.weights), ("feature", self.features))
            for name, value in one.numbers().items()
        }
        return plain

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> SpectrumReport:
        weights, features = (MatrixSpectrum.of_record(record[k]) for k in ("weights", "features"))
        return cls(weights, features, record["note"], record["expected_outliers"])


@verb
def limiting_spectrum(problem: Problem | Spec) -> LimitingSpectrum:
    """The limiting laws of the singular values; nothing is drawn.

    Half a second for isotropic data, up to half a minute after a step on a bulk that is not flat.
    Raises AssumptionError where no limit is known: several steps on such a bulk, other optimisers,
    images.
    """
    return spectral_limit(as_problem(problem))


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
            limit = spectral_limit(problem, "drawn", seed)
        except OnegradError as error:
            note = str(error).removeprefix("no limiting spectrum: ")
    return report_of(Trial(problem, Streams(seed, 0)), limit, note)


def report_of(trial: Trial, limit: LimitingSpectrum | None, note: str = "") -> SpectrumReport:
    """One draw beside the limit of its directions, or the `note` why there is none."""
    problem = trial.problem
    before, after = host(trial.weights), host(trial.updated_weights)
    named, inputs = trial_directions(trial), trial.train
    pair = [host(problem.activation(inputs.preactivation(w))) for w in (trial.weights, after)]
    pair = [f.T / math.sqrt(problem.samples) for f in pair]
    limits = (None, None) if limit is None else (limit.weights, limit.features)
    own_edges = edges_of_rows(problem, after) if limit is None else None
    weights = _measured((before, after), limits[0], named, own_edges)
    features = _measured((pair[0], pair[1]), limits[1], trial_functions(trial, named))
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


def edges_of_rows(problem: Problem, weights: Array) -> tuple[float, float] | None:
    """Edge and threshold of a matrix with rows of these lengths beside its outliers and no other
    structure, eq. row-law: steps of gradient descent stretch neurons and add noise
    to them. None after other optimisers, which move the whole bulk."""
    if problem.trained and problem.training.optimiser != "gd":
        return None
    most = min(MOST, *weights.shape)
    _, values, right = leading_singular(weights, most)
    # The fewest outliers consistent with the edge they leave: long rows are none
    for count in range(most):
        rest = weights - (weights @ right[:count].T) @ right[:count]
        squares = np.sort(np.sum(rest**2, axis=1))
        others = len(rest) - min(_LONGEST, len(rest) // 2)
        parts = np.array_split(squares[:others], min(_TYPES, others))
        parts += [squares[i : i + 1] for i in range(others, len(rest))]
        types, counts = np.array([(part.mean(), len(part)) for part in parts]).T
        left = float(problem.dim - count)
        law = SpectralLaw.of(
            Resolvent(types[:, None], (), counts, np.ones(1), left), 0.0, tail=True
        )
        edges = math.sqrt(law.edge), law.threshold(min(weights.shape))
        if np.sum(values > edges[1]) <= count:
            break
    return edges


def _measured(
    pair: tuple[Array, Array],
    limit: MatrixLimit | None,
    functions: Mapping[str, Array],
    edges: tuple[float, float] | None = None,
) -> MatrixSpectrum:
    """Of matrices before and after (their right singular vectors are what functions compare to)."""
    after = pair[1]
    full = max(after.shape) <= _FULL
    values = [svd(m, compute_uv=False) if full else np.zeros(0) for m in pair]
    _, leading, right = leading_singular(after, min(MOST, *after.shape))
    if limit is not None:
        edges = math.sqrt(limit.law.edge), limit.law.threshold(min(after.shape))
    edge, threshold = edges or (math.nan, math.nan)
    count = None if edges is None else int(np.sum(leading > threshold))
    aligned = tuple(
        {name: abs(float(vector @ psi)) / float(np.linalg.norm(psi)) for name, psi in
         functions.items() if np.any(psi)}
        for vector in right[:count]
    )  # fmt: skip
    distance = math.nan
    if limit is not None and full:
        distance = limit.law.distance(values[1][: min(after.shape)])
    return MatrixSpectrum(values[0], values[1], leading, edge, threshold, count, aligned, limit,
                          distance)  # fmt: skip


def leading_singular(matrix: Array, count: int) -> tuple[Array, Array, Array]:
    """(U, s, Vᵀ) of the `count` largest singular values, largest first.

    Lanczos iterations (`scipy.sparse.linalg.svds`) once the smaller dimension exceeds 600:
    O(count·n·N) instead of O(n·N·min(n, N)), from a fixed starting vector.
    """
    small = min(matrix.shape)
    if not 1 <= count <= small:
        raise AssumptionError(f"count = {count} must lie in 1…{small}, the smaller dimension")
    if small <= _DENSE or count > small // 4:
        u, s, vt = svd(matrix, full_matrices=False)
        return u[:, :count], s[:count], vt[:count]
    start = np.random.default_rng(0).standard_normal(small)
    try:
        u, s, vt = (np.asarray(part, float) for part in svds(matrix, k=count, v0=start))
    except Exception as error:  # ARPACK raises its own kinds of errors
        raise ConvergenceError(
            f"the {count} leading singular values did not converge ({error}); ask for fewer"
        ) from error
    order = np.argsort(s)[::-1]
    return u[:, order], s[order], vt[order]


def trial_directions(trial: Trial) -> dict[str, Array]:
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
        moved = host(trial.updated_weights) - host(trial.weights)
        named["step"] = moved.T @ host(trial.readout)
    return {k: v / np.linalg.norm(v) for k, v in named.items() if v.ndim == 1 and np.any(v)}


def trial_functions(trial: Trial, named: Mapping[str, Array]) -> dict[str, Array]:
    """Functions of the readout's samples (`sample_functions`)."""
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


def _plain(value: Any) -> Any:
    """As JSON has it: arrays as lists, NaN as null."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
