"""The line under a figure: what was simulated."""

from __future__ import annotations

import math

from onegrad.results.results import Results
from onegrad.spec.experiment import Experiment
from onegrad.text.display import count_of


def caption(experiment: Experiment, results: Results, *remarks: str) -> str:
    """Sizes, ridge and seeds, and how much failed; swept keys are on the axes already."""
    return ", ".join([*_sizes(experiment), _seeds(results), *remarks, *_failed(results)])


def spectrum_caption(experiment: Experiment) -> str:
    return ", ".join([*_sizes(experiment), "one draw"])


def _seeds(results: Results) -> str:
    simulated = [s for s in results.summaries() if s.seeds]
    counts = {s.seeds for s in simulated}
    if not counts:
        return "no simulation"
    low, high = min(counts), max(counts)
    text = count_of(low, "seed") if low == high else f"{low} to {high} seeds"
    return text + " with control variates" * all(s.corrected for s in simulated)


def _failed(results: Results) -> list[str]:
    """Models at points that have no number at all."""
    count = sum(not math.isfinite(s.test_error.mean) for s in results.summaries())
    return [f"{count_of(count, 'result')} failed"] if count else []


def _sizes(experiment: Experiment) -> list[str]:
    problem = experiment.points[0].problem
    parts = {
        "data.dim": f"n = {problem.dim}",
        "training.samples": f"m = {problem.samples}",
        "network.width": f"k = {problem.width}",
        "training.ridge": f"ridge = {problem.training.ridge:g}",
    }
    if problem.scaling.strength is not None:
        parts["scaling.strength"] = f"β = {problem.scaling.strength:g}"
        parts["scaling.weighting"] = f"α = {problem.scaling.weighting:g}"
    training, exponent = problem.training, problem.scaling.exponent
    if exponent is not None:
        powers = ", ".join(
            f"m^{x:g}" for x in (exponent if isinstance(exponent, tuple) else [exponent])
        )
        parts["scaling.exponent"] = f"η = {problem.scaling.constant or 1:g}·{powers}"
    if training.rate is not None:
        rates = training.rate if isinstance(training.rate, tuple) else [training.rate]
        parts["training.rate"] = "η = " + ", ".join(f"{rate:g}" for rate in rates)
    if training.optimiser != "gd":
        parts["training.optimiser"] = training.optimiser
    if training.steps > 1:
        parts["training.steps"] = f"{training.steps} steps"
        if "training.batch" not in experiment.sweep:
            parts["training.batch"] = f"{training.batch} batch{'es' * (training.batch == 'fresh')}"
    if getattr(problem.data, "spread", None) is not None:
        parts["data.spread"] = f"θ = {problem.spread:g}"
    swept = set(experiment.sweep)
    if training.total is not None:  # the number of readout samples depends on the rate
        parts["training.samples"] = f"{training.total} samples in total"
        if "training.total" in swept:
            parts["training.samples"] = "a step takes half of the samples"
            swept.discard("training.samples")
    ratio = problem.network.width_ratio
    if ratio is not None and "training.samples" in swept:
        parts["network.width"] = f"k/m = {ratio:g}"
    if "network.width_ratio" in swept:
        swept.add("network.width")
    return [text for key, text in parts.items() if key not in swept]
