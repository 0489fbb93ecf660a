"""A Gaussian mixture fitted to somebody's data, its spikes the eigenvalues outside the bulk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from onegrad.compute.backend import Array
from onegrad.compute.linalg import median_of_bulk
from onegrad.data.arrays import digest
from onegrad.data.mixture import Mixture
from onegrad.data.population import Population
from onegrad.errors import AssumptionError, SpecError, verb

_FEWEST = 3  # fewest samples whose covariance is estimated
_TRACY_WIDOM = 3.3  # 99.9 % quantile of the largest eigenvalue's law, in its own scale
_FEWEST_COLUMNS = 10  # fewest columns for which a bulk is defined
_REDUCED = 20  # principal directions in which unlabelled components are clustered


class FittedMixture(Mixture):
    """A mixture with given means, spikes and strengths, one set per component.

    Strengths are relative to the spread as in any mixture, and the fit sets the spread to 1.
    """

    own_nodes: ClassVar[bool] = True  # too many spikes for a rule
    means: np.ndarray = Field(description="(C, n) means of the components", repr=False)
    spikes: tuple[np.ndarray, ...] = Field(description="n × r_c orthonormal columns", repr=False)
    own_strengths: tuple[np.ndarray, ...] = Field(description="r_c strengths", repr=False)

    @model_validator(mode="after")
    def _shapes(self) -> FittedMixture:
        good = len(self.weights) == len(self.means) == len(self.spikes) == len(self.own_strengths)
        ranks = zip(self.spikes, self.own_strengths, strict=False)
        if not good or any(s.shape != (self.dim, len(t)) for s, t in ranks):
            raise SpecError.of(
                "data.spikes", [s.shape for s in self.spikes],
                "must be one n × r matrix per component, with r strengths each",
                "Use fit_mixture",
            )  # fmt: skip
        return self

    @property
    def relative_strengths(self) -> tuple[Array, ...]:
        """Strength of each spike, component by component."""
        return self.own_strengths

    def mean_trace(self, spread: float) -> float:
        pairs = zip(self.weights, self.own_strengths, strict=True)
        structure = np.concatenate([weight * strengths for weight, strengths in pairs])
        return self.dim + spread * float(structure.sum())

    @property
    def source(self) -> str:
        ranks = ", ".join(str(rank) for rank in self.component_ranks)
        return f"Gaussian mixture fitted to the data ({ranks} spikes)"

    def fingerprint(self) -> dict[str, Any]:
        arrays = (self.means, *self.spikes, *self.own_strengths)
        return {"model": "fitted", "sha256": digest(*arrays, first=repr(self.weights))}

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """Nothing is drawn."""
        strengths = tuple(spread * s for s in self.own_strengths)
        return Population(np.array(self.weights), self.means, self.spikes, strengths)


@dataclass(frozen=True)
class Fit:
    """What `fit_mixture` found.

    mixture : mixture of x/scale, whose noise has variance 1; ready for a Problem
    scale : standard deviation of the noise in x
    labels : value of y in each component, where it has one
    group : component of each sample
    """

    mixture: FittedMixture
    scale: float
    labels: tuple[float, ...] | None
    group: np.ndarray


@verb
def fit_mixture(
    x: Array, y: Array | None = None, components: int = 2, *, covariance: str = "spikes"
) -> Fit:
    """Weights, means and spikes of each component, from samples x (N × n).

    With y the components are its distinct values; without, they are found by scikit-learn's
    GaussianMixture in the leading principal directions. Spikes are the eigenvalues outside the
    bulk, with their strengths corrected for the sample size (`find_spikes`); what they leave of
    the trace is noise, of one variance for all. Means are shortened by what the sample size adds
    to their square. Cost O(N·n·min(N, n)).

    covariance : "spikes", or "whole": every eigenvalue of a component's covariance, shrunk towards
        their mean for the sample size [ledoit2004]; a Gaussian surrogate for data whose bulk is not
        flat. Its noise is the smallest eigenvalue, and all others are spikes: memory O(n²)

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1.0, -1.0], 1000)
    >>> x = 2 * rng.standard_normal((2000, 60))
    >>> x[:1000, 0] *= 5
    >>> fit = fit_mixture(x, y)
    >>> fit.mixture.ranks, fit.labels, abs(fit.scale - 2) < 0.05
    ((0, 1), (-1.0, 1.0), True)
    """
    if x.ndim != 2 or (y is not None and y.shape != x.shape[:1]):
        raise SpecError.of(
            "x", x.shape, "must be a table with one row per sample, and y one number per row",
            "Check that x.shape == (N, n) and y.shape == (N,)",
        )  # fmt: skip
    if covariance not in ("spikes", "whole"):
        raise SpecError.choice("covariance", covariance, ("spikes", "whole"))
    values, group = _groups(x, y, components)
    counts = np.bincount(group)
    if counts.min() < _FEWEST:
        raise AssumptionError(
            f"a component has {counts.min()} samples; at least {_FEWEST} are needed in each. Use "
            "fewer components, or drop the rare labels."
        )
    dim = x.shape[1]
    means, spikes, strengths, noise, traces = [], [], [], [], []
    for c in range(len(counts)):
        rows = x[group == c]
        mean = rows.mean(axis=0)
        found = find_spikes(rows - mean) if covariance == "spikes" else _whole(rows - mean)
        trace = float(found.eigenvalues.sum())
        taken = found.noise * float(found.strengths.sum())
        noise.append(found.noise if covariance == "whole" else max(trace - taken, 0.0) / dim)
        square = float(mean @ mean)
        shorter = max(0.0, 1 - trace / len(rows) / square) if square > 0 else 0.0
        means.append(mean * np.sqrt(shorter))
        spikes.append(np.ascontiguousarray(found.directions))
        strengths.append(found.noise * found.strengths)
        traces.append(trace)
    weights = counts / counts.sum()
    variance = float(weights @ noise)
    if covariance == "whole":  # one noise level for all; variance above it goes to spikes
        variance = min(noise)
        strengths = [s + (v - variance) for s, v in zip(strengths, noise, strict=True)]
    if not variance > 0:
        raise AssumptionError("the data have no noise: every direction is a spike. Add samples.")
    mixture = FittedMixture(
        dim=dim, weights=tuple(weights.tolist()), ranks=tuple(len(s) for s in strengths),
        directions="fixed", spread=1.0, means=np.stack(means) / np.sqrt(variance),
        spikes=tuple(spikes), own_strengths=tuple(s / variance for s in strengths),
    )  # fmt: skip
    labels = None if values is None else tuple(float(v) for v in values)
    return Fit(mixture, float(np.sqrt(variance)), labels, group)


def _whole(centred: Array) -> Spikes:
    """All eigenvalues and directions but the smallest, which is the noise; shrunk linearly towards
    their mean by the share that makes the expected error smallest  [ledoit2004]."""
    if centred.shape[1] < 2:
        raise AssumptionError("a whole covariance needs at least two columns")
    from sklearn.covariance import ledoit_wolf

    values, vectors = np.linalg.eigh(ledoit_wolf(centred, assume_centered=True)[0])
    values = np.maximum(values, 1e-6 * float(values.mean()))[::-1]
    noise = float(values[-1])
    return Spikes(noise, values[:-1] / noise - 1.0, vectors[:, ::-1][:, :-1], values)


def _groups(x: Array, y: Array | None, components: int) -> tuple[np.ndarray | None, np.ndarray]:
    if y is not None:
        values, group = np.unique(y, return_inverse=True)
        if len(values) > 100:
            raise AssumptionError(
                f"y has {len(values)} distinct values: numbers, not classes. Leave y out to look "
                "for components in x alone."
            )
        return values, np.asarray(group)
    if not 1 <= components <= 100 or len(x) < _FEWEST * components:
        raise SpecError.of(
            "components", components, f"must be a whole number from 1 to {len(x) // _FEWEST} for "
            f"{len(x)} samples", f"For example {max(1, min(2, len(x) // _FEWEST))}",
        )  # fmt: skip
    from sklearn.mixture import GaussianMixture

    centred = x - x.mean(axis=0)
    size = min(_REDUCED, *x.shape)
    _, values, right = np.linalg.svd(centred, full_matrices=False)
    reduced = centred @ right[:size].T / max(float(values[0]), 1e-300) * np.sqrt(len(x))
    found = GaussianMixture(components, n_init=3, random_state=0).fit_predict(reduced)
    _, group = np.unique(found, return_inverse=True)  # a component may have come out empty
    return None, np.asarray(group)


@dataclass(frozen=True)
class Spikes:
    """Covariance ≈ noise·(I + Σ_i strengths[i]·γ_iγ_iᵀ), with columns γ_i of `directions`.

    `strengths` are corrected for the growth of sample eigenvalues; `eigenvalues` are the sample
    covariance's own.
    """

    noise: float
    strengths: Array
    directions: Array
    eigenvalues: Array


def find_spikes(centred: Array) -> Spikes:
    """Bulk level, spikes and their strengths, from rows with mean zero.

    The bulk level makes the median eigenvalue that of the Marchenko–Pastur law; an eigenvalue above
    its edge, with room for Tracy–Widom fluctuations, is a spike. Of a spike λ the strength is the
    root θ of λ = noise·(1 + θ)(1 + γ/θ), γ = n/N  [baik2006]. With less than ten columns there
    is no bulk to speak of: noise is the mean variance, and no spike is claimed.

    Cost O(N·n·min(N, n)), memory O(min(N, n)²).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((2000, 100))
    >>> x[:, 0] *= np.sqrt(1 + 9.0)
    >>> found = find_spikes(x)
    >>> len(found.strengths), abs(found.noise - 1) < 0.05, round(found.strengths[0] / 9)
    (1, True, 1)
    """
    rows, columns = centred.shape
    freedom = max(1, rows - 1)
    if columns <= rows:
        values, vectors = np.linalg.eigh(centred.T @ centred / freedom)
    else:
        values, left = np.linalg.eigh(centred @ centred.T / freedom)
        keep = values > values[-1] * 1e-12
        values, left = values[keep], left[:, keep]
        vectors = centred.T @ left / np.sqrt(values * freedom)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    ratio = columns / freedom
    if columns < _FEWEST_COLUMNS:
        noise = float(values.sum() / columns)
        return Spikes(noise, np.zeros(0), vectors[:, :0], values)
    edge = _edge(freedom, columns)
    count = 0
    for _ in range(50):
        noise = float(np.median(values[count:])) / median_of_bulk(ratio)
        found = int(np.sum(values > noise * edge))
        if found <= count or found >= len(values) // 2:
            break
        count = found
    strengths = _strengths(values[:count] / noise, ratio)
    return Spikes(noise, strengths, vectors[:, :count], values)


def _edge(rows: int, columns: int) -> float:
    """Largest eigenvalue of white noise, with room for its fluctuations  [johnstone2001]."""
    root = np.sqrt(rows) + np.sqrt(columns)
    fluctuation = root * (1 / np.sqrt(rows) + 1 / np.sqrt(columns)) ** (1 / 3)
    return float((root**2 + _TRACY_WIDOM * fluctuation) / rows)


def _strengths(values: Array, ratio: float) -> Array:
    """θ from λ = (1 + θ)(1 + γ/θ), the larger root."""
    middle = values - 1 - ratio
    return (middle + np.sqrt(np.maximum(middle**2 - 4 * ratio, 0.0))) / 2
