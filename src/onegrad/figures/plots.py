"""Plots from Python: `results.plot()`, `prediction.plot()`, … on matplotlib axes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.degree.report import DegreeReport
from onegrad.errors import AssumptionError, OnegradError, SpecError
from onegrad.figures import histograms
from onegrad.figures.curves import curves_of, draw_failed, draw_panel, legend_handles, theory_lines
from onegrad.figures.style import COLOURS, RC, tick
from onegrad.neurons.report import Neurons
from onegrad.predict.prediction import Prediction
from onegrad.results.results import Results
from onegrad.results.rows import EXTRAS, QUANTITIES
from onegrad.spec.figure_options import FigureOptions
from onegrad.spectrum.report import SpectrumReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_results(
    results: Results, quantities: tuple[str, ...], x: str | None = None, ax: Axes | None = None
) -> Any:
    """`Results.plot`."""
    import matplotlib

    quantities = quantities or ("test_error",)
    for quantity in quantities:
        if quantity not in (*QUANTITIES, *EXTRAS):
            raise SpecError.choice("quantity", quantity, (*QUANTITIES, *EXTRAS))
    if all(row.status != "ok" for row in results.rows):
        reasons = list(dict.fromkeys(row.error for row in results.rows))
        raise OnegradError(
            f"There is nothing to plot: no point has a number. {' '.join(reasons[:1])}"
        )
    sweep = _sweep(results)
    if x is not None and x not in sweep:
        raise SpecError.choice("x", x, sweep)
    along = x or next(iter(FigureOptions().along(sweep)), "")
    curves, failed = curves_of(results.summaries(), lambda s: _name(s.point, along))
    panels = _panels(len(quantities), ax)
    with matplotlib.rc_context(RC):
        for panel, quantity in zip(panels, quantities, strict=True):
            lines = theory_lines(curves, along, [quantity])
            draw_panel(panel, curves, lines, along, quantity, False)
            draw_failed(panel, list(curves), failed, along)
        panels[-1].legend(handles=legend_handles(curves, failed), fontsize=8)
    if ax is not None or len(panels) == 1:
        panels[0].set_title(textwrap.fill(results.name, 60), fontsize=10)
    else:
        panels[0].figure.suptitle(textwrap.fill(results.name, 60 * len(panels)), fontsize=10)
    return panels[0] if len(panels) == 1 else np.array(panels)


def plot_prediction(
    prediction: Prediction, direction: str = "teacher", component: int = 0, ax: Any = None
) -> Any:
    """`Prediction.plot`."""
    import matplotlib

    if prediction.solution is None:
        raise AssumptionError(
            "a plot shows the learned function, which comes with the conditional theory: "
            'predict(problem, "conditional").plot()'
        )
    learned, nodes = prediction.learned(direction, component), prediction.by_projection()
    left, right = _panels(2, ax)
    with matplotlib.rc_context(RC):
        left.plot(
            learned.position, learned.target, color="#222222", lw=1.3, label="labels, E[y | t]"
        )
        left.plot(
            learned.position, learned.learned, color=COLOURS[0], lw=2, label="learned, E[f | t]"
        )
        left.set_xlabel(f"t: projection on {direction}")
        left.set_ylabel("mean label and prediction")
        left.legend(fontsize=8)
        unit = prediction.solution.geometry.directions[direction]
        for c in np.unique(nodes["component"]):
            own = nodes["component"] == c
            at = nodes["kappa"][own][:, : len(unit)] @ unit
            t, error = _averaged(at, nodes["test_error"][own], nodes["weight"][own])
            name = f"component {int(c) + 1}" if nodes["component"].any() else "given t"
            colour = COLOURS[int(c) % len(COLOURS)]
            right.plot(t, error, "o-", color=colour, lw=1, ms=4, alpha=0.8, label=name)
        mean = prediction.test_error
        right.axhline(mean, color="#222222", lw=1, linestyle="--", label="mean")
        right.set_xlabel(f"t: projection on {direction}")
        right.set_ylabel("test error given t")
        right.legend(fontsize=8)
    return np.array([left, right])


def plot_learned_map(
    prediction: Prediction, directions: tuple[str, str], component: int = 0, ax: Any = None
) -> Any:
    """`Prediction.plot` over two directions: the mean label, and the mean prediction."""
    import matplotlib

    learned = prediction.learned_map(*directions, component)
    size = max(float(np.abs(learned.target).max()), float(np.abs(learned.learned).max()))
    panels = _panels(2, ax)
    with matplotlib.rc_context(RC):
        pairs = zip(panels, (("labels", learned.target), ("learned", learned.learned)), strict=True)
        for panel, (name, values) in pairs:
            picture = panel.pcolormesh(
                learned.first, learned.second, values.T, cmap="RdBu_r", vmin=-size, vmax=size,
                shading="gouraud", rasterized=True,
            )  # fmt: skip
            panel.set_title(f"{name}, E[{'y' if name == 'labels' else 'f'} | t₁, t₂]", fontsize=9)
            panel.set_xlabel(f"t₁: projection on {directions[0]}")
            panel.set_ylabel(f"t₂: projection on {directions[1]}")
        panels[1].figure.colorbar(picture, ax=panels[1], shrink=0.9)
    return np.array(panels)


def plot_spectrum(report: SpectrumReport, which: str = "features", ax: Any = None) -> Any:
    """`SpectrumReport.plot`."""
    import matplotlib

    if which not in ("features", "weights"):
        raise SpecError.choice("which", which, ("features", "weights"))
    panels = _panels(1 if which == "features" else 2, ax)
    with matplotlib.rc_context(RC):
        if which == "features":
            histograms.draw_features(panels[0], "", report)
            return panels[0]
        histograms.draw_weights(panels[0], panels[1], "", report)
    return np.array(panels)


def plot_degree(report: DegreeReport, ax: Axes | None = None) -> Axes:
    """`DegreeReport.plot`: filled marks are degrees that the rule keeps."""
    import matplotlib

    (panel,) = _panels(1, ax)
    with matplotlib.rc_context(RC):
        for kept, fill in ((True, COLOURS[0]), (False, "white")):
            terms = [t for t in report.terms if t.kept == kept]
            panel.errorbar(
                [t.degree for t in terms], [100 * t.difference.mean for t in terms],
                [100 * t.difference.standard_error for t in terms], fmt="o", color=COLOURS[0],
                mfc=fill, capsize=2, label="kept by the rule" if kept else "not kept",
            )  # fmt: skip
        panel.axhline(0.0, color="#222222", lw=1, linestyle="--", label="network")
        panel.set_xticks([t.degree for t in report.terms])
        panel.set_xlabel("degree of the polynomial model")
        panel.set_ylabel("test error beside the network's in %")
        panel.legend(fontsize=8)
    return panel


def plot_neurons(report: Neurons, directions: tuple[str, ...], ax: Any = None) -> Any:
    """`Neurons.plot`."""
    import matplotlib

    places = [report.place(name) for name in directions[:2]]
    panels = _panels(report.steps + 1, ax)
    scale = float(np.sqrt(np.mean(report.readout**2))) or 1.0
    with matplotlib.rc_context(RC):
        for step, panel in enumerate(panels):
            x = report.cosines[step][:, places[0]]
            y = report.cosines[step][:, places[1]] if len(places) > 1 else report.readout / scale
            panel.scatter(x, y, s=6, color=COLOURS[0], alpha=0.5, lw=0, label="neurons, one draw")
            if step == report.steps and report.law is not None and len(places) > 1:
                law = report.law.cosines[:, places]
                if np.isfinite(law).all():
                    size = 4 + 300 * report.law.weights
                    panel.scatter(
                        *law.T, s=size, facecolor="none", edgecolor="#222222", lw=0.7,
                        label="types of the theory, area = share",
                    )  # fmt: skip
            when = "before the step" if step == 0 else f"after step {step}"
            panel.set_title(when if report.steps > 1 or step == 0 else "after the step", fontsize=9)
            panel.set_xlabel(f"cosine with {directions[0]}")
            panel.axhline(0, color="#bbbbbb", lw=0.6, zorder=0)
            panel.axvline(0, color="#bbbbbb", lw=0.6, zorder=0)
            panel.set_xlim(-1.05, 1.05)
            if len(places) > 1:
                panel.set_ylim(-1.05, 1.05)
        label = f"cosine with {directions[1]}" if len(places) > 1 else "initial readout, in r.m.s."
        panels[0].set_ylabel(label)
        panels[-1].legend(fontsize=7)
    return panels[0] if len(panels) == 1 else np.array(panels)


def _averaged(at: Array, values: Array, weights: Array) -> tuple[Array, Array]:
    """Weighted means of `values` in 15 intervals along `at`, those that are not empty."""
    edges = np.linspace(at.min(), at.max() + 1e-9, 16)
    place = np.digitize(at, edges)
    masks = [place == i for i in np.unique(place)]
    mean = [[np.average(v[own], weights=weights[own]) for own in masks] for v in (at, values)]
    return np.array(mean[0]), np.array(mean[1])


def _panels(count: int, ax: Any) -> list[Any]:
    """New axes side by side, or those that were given."""
    if ax is not None:
        given = list(np.ravel(np.array([ax], dtype=object)))
        if len(given) != count:
            raise SpecError.of(
                "ax", len(given), f"must be {count} axes", "Leave it out for new ones"
            )
        return given
    import matplotlib
    import matplotlib.pyplot as plt

    # Open a figure first: in a notebook that selects the backend, which must outlive the style.
    figure = plt.figure(figsize=(2.0 + 3.6 * count, 3.8), layout="constrained")
    with matplotlib.rc_context(RC):
        return list(np.atleast_1d(figure.subplots(1, count)))


def _sweep(results: Results) -> dict[str, tuple[Any, ...]]:
    """The values of every key in which the points differ."""
    keys = dict.fromkeys(key for row in results.rows for key in row.point)
    found = {
        k: {repr(v): v for row in results.rows if (v := row.point.get(k)) is not None} for k in keys
    }
    return {key: tuple(values.values()) for key, values in found.items()}


def _name(point: dict[str, Any], along: str) -> str:
    return ", ".join(
        v if isinstance(v, str) else f"{k.rpartition('.')[2]} = {tick(v)}"
        for k, v in point.items()
        if k != along
    )
