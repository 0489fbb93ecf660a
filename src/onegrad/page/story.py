"""The scenes of the story: grids of numbers from the theory, dots of trained networks.

`python -m onegrad.page.story FILE` writes them; the file in static/ is made so.
tests/page_parts/test_story.py compares a sample of it with `onegrad predict`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onegrad.compute.randomness import Streams
from onegrad.neurons.report import layers_by_step, special_directions
from onegrad.page.controls import TASKS
from onegrad.page.grids import axis, grid, lines_of, rounded, simulated
from onegrad.page.untrained import without_step
from onegrad.page.work import perform
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.spec.fields import read_toml
from onegrad.spec.presets import preset_path
from onegrad.spec.published import published_figure
from onegrad.theory.options import Theory

_ACTIVATIONS = ("relu", "tanh", "sigmoid")
_NEURONS = Theory("conditional")  # the theory that knows what is learned
_NEEDLES = 72  # neurons that are drawn
_DEGREES = (1, 2, 3)
# β at which one more degree is learned, and its name
BORDERS = ((1 / 2, "½"), (2 / 3, "⅔"), (3 / 4, "¾"))

Tables = Mapping[str, Any]


def story() -> list[dict[str, Any]]:
    """All scenes, in their order; the words are in static/scenes.js."""
    return [step(), degrees(), spikes(), published(), nothing(), widths(), samples()]


def first_task() -> dict[str, Any]:
    """What the page opens with: isotropic data, a linear and a quadratic part."""
    tables = TASKS["isotropic"]["tables"]
    return {key: value for key, value in tables.items() if key != "compare"}


def at_exponent(tables: Tables, exponent: float) -> dict[str, Any]:
    return {**tables, "scaling": {"exponent": exponent, "constant": 1.0}}


def step() -> dict[str, Any]:
    """The first scene: everything that one step of each size changes."""
    tables = first_task()
    exponents = [round(x, 3) for x in np.linspace(-0.3, 0.47, 23)]
    problems = [Problem.from_spec(at_exponent(tables, e)) for e in exponents]
    none = without_step(problems[0])
    rows = []
    for problem in [none, *problems]:
        found = predict(problem, _NEURONS)
        learned = found.learned("teacher", 0, 7)
        rows.append({
            "rate": problem.rate, "size": problem.step_size, "test_error": found.test_error,
            "learned": rounded(learned.learned, 4),
        })  # fmt: skip
    spectra = perform("spectrum", [at_exponent(tables, e) for e in exponents], {})
    for row, found in zip(rows[1:], spectra, strict=True):
        row |= {"spikes": found["features"]["spikes"], "degree": found["degree"]}
    rows[0] |= {"spikes": [], "degree": 0}
    bulk = spectra[0]["features"]
    dots = simulated([none, *problems[2::4]], seeds=10)
    return {
        "id": "step", "kind": "step", "rows": rows, "samples": none.samples, "inputs": none.dim,
        "width": none.width, "label_variance": float(predict(none, _NEURONS).label_variance),
        "t": rounded(learned.t, 4), "target": rounded(learned.target, 4),
        "bulk": {
            "edge": bulk["edge"], "values": rounded(bulk["values"][::3], 4),
            "density": rounded(bulk["density"][::3], 4),
        },
        "neurons": needles(problems[-1]), "dots": dots, "start": 11.0,
        "borders": [{"rate": none.samples ** (b / 2), "degree": d + 2} for d, (b, _) in
                    enumerate(BORDERS)],
    }  # fmt: skip


def needles(problem: Problem) -> list[list[float]]:
    """Of some neurons: w·t, g·t, |w|², w·g, |g|² and the sign of a, g the change at η = 1."""
    trial = Trial(problem, Streams(0, 0))
    before, after = layers_by_step(trial)
    change = (after - before) / problem.rate
    teacher = special_directions(trial.instance)["teacher"]
    chosen = np.linspace(0, problem.width - 1, _NEEDLES).astype(int)
    return [
        rounded([w @ teacher, g @ teacher, w @ w, w @ g, g @ g, math.copysign(1, a)], 5)
        for w, g, a in zip(before[chosen], change[chosen], trial.readout[chosen], strict=True)
    ]


def degrees() -> dict[str, Any]:
    """How much of each degree of the target is learned, against the strength β = 2τ."""
    strengths = np.linspace(0.0, 0.94, 25)
    inputs = [100, 300, 1000, 3000]
    rows = []
    for n in inputs:
        shares = []
        for strength in strengths:
            tables = first_task() | {
                "data": {"model": "isotropic", "dim": n},
                "labels": {
                    "model": "single-index", "link": "hermite(0, 1, 0.5, 0.3)", "noise": 0.1,
                },
                "network": {"convention": "isotropic", "activation": "elu", "width_ratio": 0.75},
                "training": {"samples": 4 * n, "ridge": 0.01},
            }  # fmt: skip
            problem = Problem.from_spec(at_exponent(tables, strength / 2))
            learned = predict(problem, _NEURONS).learned("teacher", 0, 4)
            found, target = learned.learned_coefficients, learned.target_coefficients
            shares.append([found[j] / target[j] for j in _DEGREES])
        rows.append(np.array(shares).T)
    lines = [
        {"label": f"degree {d}", "colour": i, "y": [rounded(row[i], 4) for row in rows]}
        for i, d in enumerate(_DEGREES)
    ]
    return {
        "id": "degrees", "kind": "curves", "x": axis("β", "strength of the step", strengths),
        "y": {"title": "share of the target that is learned", "low": -0.05, "high": 1.1},
        "sliders": [axis("n", "inputs", inputs, log=True, start=1)], "lines": lines,
        "marks": [{"x": b, "text": name} for b, name in BORDERS],
    }  # fmt: skip


def spikes() -> dict[str, Any]:
    """Singular values of the features beyond the bulk, in units of its edge."""
    strengths = np.linspace(0.0, 0.94, 17)
    ratios = [0.5, 1.0, 2.0, 4.0]
    rows, edges = [], []
    for ratio in ratios:
        tables = first_task() | {"training": {"samples": round(300 * ratio), "ridge": 0.1}}
        (bulk,) = perform("spectrum", [at_exponent(tables, 0.0)], {})
        edge = bulk["features"]["edge"]
        found = perform("spikes", [at_exponent(tables, s / 2) for s in strengths], {})
        one = [[v / edge for v in part["features"]] for part in found]
        rows.append([[row[j] if j < len(row) else None for row in one] for j in range(3)])
        edges.append(edge)
    dots = []
    for s, (ratio, edge) in enumerate(zip(ratios, edges, strict=True)):
        tables = first_task() | {"training": {"samples": round(300 * ratio), "ridge": 0.1}}
        places = strengths[5::4]
        drawn = perform("draw", [at_exponent(tables, x / 2) for x in places], {"seed": 0})
        pairs = [(x, v / edge) for x, part in zip(places, drawn, strict=True)
                 for v in part["features"]["spikes"]]  # fmt: skip
        dots.append({
            "label": "spikes of one trained network", "colour": 1, "at": [s],
            "x": rounded([x for x, _ in pairs], 4), "mean": rounded([v for _, v in pairs], 4),
        })  # fmt: skip
    lines = [
        {"label": f"spike {j + 1}", "colour": 1, "y": [rounded(row[j], 4) for row in rows]}
        for j in range(3)
        if any(v is not None for row in rows for v in row[j])
    ]
    flat = [[1.0] * len(strengths)] * len(ratios)
    lines.append(
        {"label": "edge of the bulk without a step", "colour": -1, "dash": True, "y": flat}
    )
    return {
        "id": "spikes", "kind": "curves", "x": axis("β", "strength of the step", strengths),
        "y": {
            "title": "singular value / edge of the bulk without a step", "low": 0.8, "high": 12,
            "log": True,
        },
        "sliders": [axis("m/n", "samples over inputs", ratios, log=True, start=3)],
        "lines": lines, "dots": dots, "marks": [{"x": b, "text": name} for b, name in BORDERS],
    }  # fmt: skip


def published() -> dict[str, Any]:
    """Figure 1a of Demir & Dogan, errors over Var y, with the published networks."""
    tables = read_toml(preset_path("demir2025/fig1a"))
    ratios = tables["sweep"]["network.width_ratio"]
    fixed = {key: value for key, value in tables.items() if key not in ("sweep", "figure")}
    ridges = [1e-5, 1e-4, 1e-3, 1e-2]
    lines, variance = [], {}
    for i, name in enumerate(_ACTIVATIONS):
        rows = []
        for ridge in ridges:
            sweep = {"network.activation": [name], "training.ridge": [ridge]}
            found = grid(fixed, sweep | {"network.width_ratio": ratios})
            variance[name] = found[0]["label_variance"]
            rows.append(rounded([one["test_error"] / one["label_variance"] for one in found], 4))
        lines.append({"label": f"theory, {name}", "colour": i, "y": rows})
    dots = []
    for i, name in enumerate(_ACTIVATIONS):
        points = [
            (p.point["network.width_ratio"], p.value / variance[name])
            for p in published_figure("demir2025/fig1a").points
            if p.model == "network" and p.point["network.activation"] == name
        ]
        dots.append({
            "label": "published networks", "colour": i, "at": [1], "cross": True,
            "x": [x for x, _ in points], "mean": rounded([v for _, v in points], 4),
        })  # fmt: skip
    return {
        "id": "published", "kind": "curves",
        "x": axis("k/m", "width over samples", ratios, log=True),
        "y": {"title": "test error / Var y", "low": 0.5, "high": 3, "log": True},
        "sliders": [axis("λ", "ridge", ridges, log=True, start=1)],
        "lines": [*lines, constant(len(ridges), len(ratios))], "dots": dots,
    }  # fmt: skip


def constant(rows: int, count: int) -> dict[str, Any]:
    """What the best constant leaves: all of Var y."""
    flat = [[1.0] * count] * rows
    return {"label": "best constant", "colour": -1, "dash": True, "y": flat}


def nothing() -> dict[str, Any]:
    """Strength shared between step and data: errors over Var y with the step and without."""
    tables = read_toml(preset_path("demir2025/fig1c"))
    fixed = {key: value for key, value in tables.items() if key not in ("sweep", "figure")}
    strengths = [round(x, 3) for x in np.linspace(0.0, 0.95, 13)]
    weightings = [0.0, 0.25, 0.5, 0.75, 1.0]
    with_step, without, sizes, rates = [], [], [], []
    dots: list[dict[str, Any]] = []
    for weighting in weightings:
        settings = [{"strength": b, "weighting": weighting} for b in strengths]
        problems = [Problem.from_spec({**fixed, "scaling": one}) for one in settings]
        after = grid({**fixed, "scaling": settings[0]}, {"scaling.strength": strengths})
        before = lines_of([without_step(problem) for problem in problems])
        with_step.append(rounded([a["test_error"] / a["label_variance"] for a in after], 4))
        without.append(rounded([a["test_error"] / a["label_variance"] for a in before], 4))
        sizes.append(rounded([problem.step_size for problem in problems], 3))
        rates.append(rounded([problem.rate for problem in problems], 3))
        if weighting in (0.5, 1.0):
            places = slice(2, None, 5)
            found = simulated(problems[places], seeds=4)
            units = np.array([one["label_variance"] for one in after[places]])
            dots.append({
                "label": "trained networks", "colour": 0, "at": [weightings.index(weighting)],
                "x": strengths[places],
                "mean": rounded(found["mean"] / units, 4),
                "se": rounded(found["se"] / units, 3),
            })  # fmt: skip
    return {
        "id": "nothing", "kind": "curves", "x": axis("β", "strength", strengths),
        "y": {"title": "test error / Var y", "low": 0.4, "high": 1.05},
        "sliders": [axis("α", "share of the strength that is in the step", weightings, start=2)],
        "lines": [
            {"label": "with the step", "colour": 0, "y": with_step},
            {"label": "without it", "colour": 0, "dash": True, "y": without},
            constant(len(weightings), len(strengths)),
        ],
        "gain": [0, 1], "here": 0.74, "what": "error over Var y",
        "facts": [{"name": "η", "y": rates}, {"name": "size of the step", "y": sizes}],
        "dots": dots, "marks": [{"x": b, "text": name} for b, name in BORDERS],
    }  # fmt: skip


def widths() -> dict[str, Any]:
    """Double descent: the error without a step against the width, for several ridges."""
    tables = read_toml(preset_path("moniri2024/double-descent"))
    fixed = {key: value for key, value in tables.items() if key not in ("sweep", "figure")}
    near = [0.9, 0.94, 0.97, 0.99, 1.0, 1.01, 1.03, 1.06, 1.12]
    ratios = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, *near, 1.25, 1.5, 2.0, 3.0, 5.0]
    ridges = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    rows = [
        grid(fixed, {"training.ridge": [ridge], "network.width_ratio": ratios}) for ridge in ridges
    ]
    dots = []
    for s in (1, 3, 5):
        places = [0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 2.0, 4.0]
        problems = [
            Problem.from_spec({
                **fixed, "training": fixed["training"] | {"ridge": ridges[s]},
                "network": {k: v for k, v in fixed["network"].items() if k != "width"}
                | {"width_ratio": ratio},
            })
            for ratio in places
        ]  # fmt: skip
        found = simulated(problems, seeds=10)
        dots.append({"label": "trained networks", "colour": 0, "at": [s], "x": places, **found})
    return {
        "id": "widths", "kind": "curves",
        "x": axis("k/m", "width over samples", ratios, log=True),
        "y": {"title": "test error", "low": 0.3, "high": 60, "log": True},
        "sliders": [axis("λ", "ridge", ridges, log=True, start=1)],
        "lines": [
            {"label": "theory", "colour": 0,
             "y": [rounded([one["test_error"] for one in row], 4) for row in rows]},
        ],
        "dots": dots, "marks": [{"x": 1.0, "text": "k = m"}],
    }  # fmt: skip


def samples() -> dict[str, Any]:
    """The quickstart: test error against all samples, half of them for steps of several sizes."""
    tables = read_toml(preset_path("quickstart"))
    fixed = {key: value for key, value in tables.items() if key not in ("sweep", "figure")}
    totals = [300, 400, 600, 840, 1200, 1700, 2400, 3400, 4800, 6800, 9600]
    rates = [0.0, 50.0, 100.0, 200.0, 400.0, 600.0]
    rows = [grid(fixed, {"training.rate": [r], "training.total": totals}) for r in rates]
    dots = []
    for s in (0, 4, 5):
        training = fixed["training"] | {"rate": rates[s]}
        problems = [
            Problem.from_spec({**fixed, "training": training | {"total": m}}) for m in totals[::2]
        ]
        found = simulated(problems, seeds=6)
        dots.append({
            "label": "trained networks", "colour": 0, "at": [s], "x": totals[::2], **found,
        })  # fmt: skip
    sizes = [Problem.from_spec({**fixed, "training": fixed["training"] | {"rate": r}}).step_size
             for r in rates]  # fmt: skip
    none = [one["test_error"] for one in rows[0]]
    return {
        "id": "samples", "kind": "curves", "x": axis("M", "samples in all", totals, log=True),
        "y": {"title": "test error", "low": 0.15, "high": 3, "log": True},
        "sliders": [axis("η", "learning rate of the step", rates, start=4)],
        "lines": [
            {"label": "half of the samples for a step", "colour": 0,
             "y": [rounded([one["test_error"] for one in row], 4) for row in rows]},
            {"label": "no step", "colour": 0, "dash": True, "y": [rounded(none, 4)] * len(rows)},
        ],
        "gain": [0, 1], "here": 2400, "what": "test error", "dots": dots,
        "facts": [{"name": "size of the step", "y": [[s] * len(totals) for s in
                                                     rounded(sizes, 3)]}],
    }  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    text = json.dumps({"scenes": story()}, separators=(",", ":"), allow_nan=False)
    Path(arguments[0]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
