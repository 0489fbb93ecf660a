"""The mixture paper's setting: two components, one spike each, label ReLU(ξᵀx), ridge 1e-4."""

import onegrad as og


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
