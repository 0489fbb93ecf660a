"""Processor time of theory curves with other losses than the squared one: notes/2026-11-losses.md.

    python -m benchmarks.loss_curves                   # every curve, logistic loss, one thread
    python -m benchmarks.loss_curves widths-exact …    # some of them
    python -m benchmarks.loss_curves --loss hinge --points 5

Twenty points each, n = m = k = 600 where nothing else is swept, ridge 10⁻³, relu, one step at half
the width; spikes of strength 10, means of norm 2. For each curve: seconds of processor time, how
many points failed or did not settle, the largest error estimate.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import onegrad as og

SIZE = 600
RIDGES, SMALL_RIDGES = (1e-4, 1.0), (1e-4, 0.1)
COMPONENT, SIGN = {"model": "component"}, {"link": "sign"}
SPIKES = {"model": "mixture", "spread": 10.0}
BOTH = SPIKES | {"mean": 2.0}
MEANS = {"model": "mixture", "spread": 1.0, "rank": 0, "mean": 2.0}
ORTHOGONAL = {"directions": "orthogonal"}
ISOTROPIC = {"model": "isotropic"}
EXACT = {"gradient": "exact"}
WIDTHS, SAMPLES, RATES = (0.1, 3.0), (0.3, 4.0), (0.05, 2.0)

# data, labels, what is swept, its range, further tables
CURVES = {
    "ridges-means": (MEANS | ORTHOGONAL, COMPONENT, "ridge", SMALL_RIDGES, {}),
    "ridges-spikes": (SPIKES, COMPONENT, "ridge", SMALL_RIDGES, {}),
    "ridges-orthogonal": (BOTH | ORTHOGONAL, COMPONENT, "ridge", SMALL_RIDGES, {}),
    "ridges-both": (BOTH, COMPONENT, "ridge", SMALL_RIDGES, {}),
    "ridges-both-exact": (BOTH, COMPONENT, "ridge", RIDGES, {"training": EXACT}),
    "ridges-sign": (ISOTROPIC, SIGN, "ridge", SMALL_RIDGES, {}),
    "ridges-sign-spikes": (SPIKES, SIGN, "ridge", SMALL_RIDGES, {}),
    "ridges-sign-both": (BOTH, SIGN, "ridge", SMALL_RIDGES, {}),
    "widths-means": (MEANS, COMPONENT, "width", WIDTHS, {}),
    "widths-spikes": (SPIKES, COMPONENT, "width", WIDTHS, {}),
    "widths-orthogonal": (BOTH | ORTHOGONAL, COMPONENT, "width", WIDTHS, {}),
    "widths-sign": (ISOTROPIC, SIGN, "width", WIDTHS, {}),
    "widths-sign-spikes": (SPIKES, SIGN, "width", WIDTHS, {}),
    "widths-both": (BOTH, COMPONENT, "width", WIDTHS, {}),
    "widths-exact": (BOTH, COMPONENT, "width", WIDTHS, {"training": EXACT}),
    "widths-exact-tanh": (
        BOTH, COMPONENT, "width", WIDTHS, {"training": EXACT, "network": {"activation": "tanh"}},
    ),
    "widths-sign-both": (BOTH, SIGN, "width", WIDTHS, {}),
    "widths-weak-exact": (
        BOTH | {"spread": 3.0}, COMPONENT, "width", WIDTHS, {"training": EXACT},
    ),
    "widths-flips-exact": (
        BOTH, COMPONENT | {"flip": 0.1}, "width", WIDTHS, {"training": EXACT},
    ),
    "strengths-exact": (BOTH, COMPONENT, "spread", (1.0, 30.0), {"training": EXACT}),
    "samples-exact": (BOTH, COMPONENT, "samples", SAMPLES, {"training": EXACT}),
    "rates-exact": (BOTH, COMPONENT, "rate", RATES, {"training": EXACT}),
}  # fmt: skip


def problems(name: str, loss: str, count: int, zipped: bool = False) -> Iterator[og.Problem]:
    data, labels, key, (low, high), further = CURVES[name]
    for value in np.geomspace(low, high, count).tolist():
        width = round(value * SIZE) if key == "width" else SIZE
        samples = round(value * SIZE) if key == "samples" else SIZE
        training = {
            "samples": samples, "loss": loss, "gradient": "labels-only",
            "ridge": value if key == "ridge" else 1e-3,
            "rate": value * SIZE if key == "rate" else 0.5 * (width if zipped else SIZE),
        }  # fmt: skip
        spread = {"spread": value} if key == "spread" else {}
        yield og.Problem.from_spec(
            {
                "data": {"dim": SIZE, **data, **spread},
                "labels": labels,
                "network": {"width": width, "activation": "relu", **further.get("network", {})},
                "training": training | further.get("training", {}),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("curve", nargs="*", choices=[*CURVES, []], help="all by default")
    parser.add_argument("--loss", default="logistic")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--zipped", action="store_true", help="rates in proportion to widths")
    asked = parser.parse_args()
    for name in asked.curve or CURVES:
        curve = list(problems(name, asked.loss, asked.points, asked.zipped))
        start = time.process_time()
        found = og.predict_curve(curve)
        spent = time.process_time() - start
        bad = [one.status for one in found if one.status != "ok"]
        worst = max(one.error_estimate for one in found)
        print(f"{name:20s} {spent:6.2f} s  {len(bad):2d} not ok  {100 * worst:5.1f} %", flush=True)


if __name__ == "__main__":
    main()
