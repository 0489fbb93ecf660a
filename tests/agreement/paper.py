"""The mixture paper's setting: two components, one spike each, label ReLU(ξᵀx), ridge 1e-4."""

import onegrad as og
from onegrad.results.results import Results
from onegrad.simulate.simulate import Simulation, group_points, run_group
from onegrad.spec.experiment import Compare, Point


def setting(n=1000, activation="relu", ratio=1.0, strength=0.74, weighting=0.5, **labels):
    return og.Problem.from_spec(
        {
            "data": {"model": "mixture", "dim": n, "weights": [0.5, 0.5], "rank": 1},
            "labels": {"model": "single-index", "link": "relu", **labels}
            if labels.get("model", "single-index") == "single-index"
            else labels,
            "network": {"activation": activation, "width_ratio": ratio},
            "training": {"samples": n, "ridge": 1e-4},
            "scaling": {"strength": strength, "weighting": weighting},
        }
    )


def simulate_together(problems, models=("network",), seeds=20, rng=0, controlled=True):
    """As `simulate` of each problem, with control variates; what they can share is drawn once.

    problems : by any names; they differ in activation, step or ridge. Returns a Simulation each.
    """
    compare = Compare(models=models, seeds=seeds, seed=rng)
    points = [
        Point({}, problem, compare, number=number)
        for number, problem in enumerate(problems.values())
    ]
    assert len(group_points(points)) == 1
    rows = []
    for seed in range(seeds):
        rows += run_group(points, models, seed, controlled=controlled)
    assert {row.status for row in rows} == {"ok"}
    return {
        name: Simulation(Results("together", tuple(r for r in rows if r.number == number)))
        for number, name in enumerate(problems)
    }
