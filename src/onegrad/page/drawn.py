"""Singular values of one trained network, for problems whose limiting spectra are not known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial

_BINS = 50
_OUTSIDE = 1.05  # a singular value this much beyond the largest one without the step is a spike
_MANY = 0.1  # of all singular values: more than spikes


def drawn_spectrum(tables: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Histograms of weights and features without and with the step, and what stands out."""
    problem = Problem.from_spec(tables)
    trial = Trial(problem, Streams(seed, 0))
    scale = math.sqrt(problem.samples)
    layers = (trial.weights, trial.updated_weights)
    features = [problem.activation(trial.train.preactivation(w)) / scale for w in layers]
    return {"weights": _pair(*layers), "features": _pair(*features)}


def _pair(before: Array, after: Array) -> dict[str, Any]:
    """Both with the same bins; the features' constant part stands out without the step too.

    moved : whether so many singular values are beyond the old bulk that the step, often that of
        another optimiser, has moved the bulk itself; then the bins are those of the new one
    """
    old, new = (np.array(np.linalg.svd(w, compute_uv=False), float) for w in (before, after))
    edge = float(_bulk_edge(old))
    moved = bool(np.mean(new > _OUTSIDE * edge) > _MANY)
    if moved:
        edge = float(_bulk_edge(new))
    outside = new[new > _OUTSIDE * edge]
    found: dict[str, Any] = {
        "edge": edge, "moved": moved, "spikes": outside[:8],
        "spikes_before": old[old > _OUTSIDE * edge][:8],
    }  # fmt: skip
    for name, values in (("before", old), ("heights", new)):
        counts, bins = np.histogram(values, bins=_BINS, range=(0.0, 1.3 * edge))
        found[name] = counts * (_BINS / (1.3 * edge)) / values.size
        found["bins"] = bins
    return found


def _bulk_edge(values: Array) -> float:
    """The largest singular value that has a neighbour: those far above the next one are no bulk."""
    for i in range(min(8, len(values) - 1)):
        if values[i] < _OUTSIDE * values[i + 1]:
            return float(values[i])
    return float(values[0])
