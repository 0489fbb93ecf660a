"""Figures and the verdict show the numbers of the rows, and say what they were made from."""

import csv
import math
from itertools import pairwise

import numpy as np
import pytest

from onegrad.cli.tables import results_table, verdict_text
from onegrad.figures.caption import caption
from onegrad.figures.curves import draw_curves
from onegrad.figures.deviations import draw_deviations
from onegrad.figures.draw import save_figure_of
from onegrad.figures.maps import draw_difference_map, draw_map
from onegrad.figures.theory_lines import position
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.results.summaries import relative_difference
from onegrad.results.verdict import verdicts
from onegrad.spec.experiment import Experiment
from tests.validate.test_reproduced import made_up

MODELS = ["network", "hermite", "linear", "theory"]
SPEC = {
    "name": "made",
    "data": {"model": "mixture", "dim": 30},
    "network": {"width_ratio": 2.0},
    "training": {"samples": 40, "ridge": 1e-3},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": MODELS, "seeds": 4},
    "sweep": {
        "network.activation": ["relu", "tanh"],
        "scaling.weighting": [0.5, 0.0, 1.0],
        "scaling.strength": [0.2, 0.6],
    },
    "figure": {"kind": "map"},
}


def error_of(point, model, seed):
    """An error that depends on everything, a known function of it."""
    base = 1 + point["scaling.weighting"] + 10 * point["scaling.strength"]
    base += 5 * (point["network.activation"] == "tanh") + 0.1 * seed
    factor = {"network": 1.0, "hermite": 1 + 0.02 * point["scaling.weighting"], "linear": 2.0}
    return base * factor.get(model, 0.9) + (0.01 * seed**2 if model == "hermite" else 0)


def made(**changes):
    experiment = Experiment.read(SPEC | changes)
    rows = [
        Row(
            p.settings,
            model,
            seed,
            *[error_of(p.settings, model, seed) * f for f in (1, 0.5, 2)],
            number=p.number,
        )
        for p in experiment.points
        for model in experiment.compare.models
        for seed in range(1 if model == "theory" else 4)
    ]
    return experiment, Results("made", rows)


def panels(figure):
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_a_map_has_every_mean_in_its_cell():
    experiment, results = made()
    shown = panels(draw_map(experiment, results))
    assert set(shown) == {f"{a}, {m}" for a in ("relu", "tanh") for m in MODELS}
    for model in MODELS:
        seeds = range(1 if model == "theory" else 4)
        values = shown[f"tanh, {model}"].images[0].get_array()
        for i, strength in enumerate((0.2, 0.6)):
            for j, weighting in enumerate((0.0, 0.5, 1.0)):  # sorted along the axis
                point = {"network.activation": "tanh", "scaling.weighting": weighting,
                         "scaling.strength": strength}  # fmt: skip
                wanted = np.mean([error_of(point, model, s) for s in seeds])
                assert values[i, j] == pytest.approx(wanted)
    labels = [tick.get_text() for tick in shown["relu, theory"].get_xticklabels()]
    assert labels == ["0", "0.5", "1"]
    scales = {axes.images[0].norm.vmin for axes in shown.values()}
    assert len(scales) == 1  # one scale, so that panels can be compared


def test_a_difference_map_is_paired_and_relative_to_its_reference():
    experiment, results = made(figure={"kind": "difference-map", "reference": "linear"})
    shown = panels(draw_difference_map(experiment, results))
    assert set(shown) == {f"{a}, {m}" for a in ("relu", "tanh") for m in MODELS if m != "linear"}
    values = shown["relu, network"].images[0].get_array()
    np.testing.assert_allclose(values, -50.0)
    norm = shown["relu, network"].images[0].norm
    assert norm.vmin == -norm.vmax  # white is zero


def test_a_missing_point_is_a_blank_cell():
    experiment, results = made()
    gone = experiment.points[0].settings
    kept = Results("made", [r for r in results.rows if r.point != gone or r.model != "hermite"])
    values = panels(draw_map(experiment, kept))["relu, hermite"].images[0].get_array()
    assert values.mask.sum() == 1 and values.mask[0, 1]


@pytest.mark.parametrize("name", ["demir2025/fig7b", "demir2025/fig1a", "demir2025/fig8a"])
def test_labels_of_a_logarithmic_axis_do_not_touch(name):
    """As drawn, at the size of print; every value labelled they would touch."""
    experiment, results = made_up(name)
    figure = draw_curves(experiment, results)
    panel = figure.axes[0]
    values = sorted({position(p.settings[experiment.figure.along(experiment.sweep)[0]])
                     for p in experiment.points})  # fmt: skip
    figure.canvas.draw()
    boxes = [t.get_window_extent() for t in panel.get_xticklabels()]
    gap = 0.3 * figure.dpi * 10 / 72  # a third of the size of the letters
    assert len(boxes) >= 5 and apart(boxes) >= gap
    panel.set_xticks(values, [f"{v:.3g}" for v in values])
    figure.canvas.draw()
    assert apart([t.get_window_extent() for t in panel.get_xticklabels()]) < gap


def apart(boxes):
    boxes = sorted(boxes, key=lambda box: box.x0)
    return min(b.x0 - a.x1 for a, b in pairwise(boxes))


def test_what_failed_leaves_a_mark():
    """A cross for each point and curve, in legend and caption; none where all is well."""
    experiment, results = made(figure={"kind": "curves", "models": ["network", "hermite"]})
    clean = draw_curves(experiment, results)
    lost = [
        Row(r.point, r.model, r.seed, status="failed", error="no", number=r.number)
        if r.model == "hermite" and r.point["scaling.weighting"] == 1.0 else r
        for r in results.rows
    ]  # fmt: skip
    broken = draw_curves(experiment, Results("made", lost))

    def crosses(figure):
        return [x for line in figure.axes[0].lines if line.get_marker() == "x"
                for x in line.get_xdata()]  # fmt: skip

    assert crosses(clean) == [] and crosses(broken) == [1.0] * 4  # activations × strengths
    legend = [text.get_text() for text in broken.legends[0].get_texts()]
    assert legend[-1] == "failed: hermite" and "4 results failed" in broken.texts[-1].get_text()
    assert "failed" not in clean.texts[-1].get_text()


@pytest.mark.parametrize("kind", ["curves", "map", "difference-map"])
def test_every_kind_writes_png_pdf_and_its_numbers(kind, tmp_path):
    experiment, results = made(figure={"kind": kind, "models": ["network", "hermite"]})
    written = save_figure_of(experiment, results, tmp_path)
    assert [path.suffix for path in written] == [".png", ".pdf", ".csv"]
    assert all(path.stat().st_size > 300 for path in written)
    with written[2].open(newline="", encoding="utf-8") as handle:
        lines = list(csv.DictReader(handle))
    if kind == "difference-map":
        assert len(lines) == 12 and {line["model"] for line in lines} == {"hermite"}
        for line in lines:
            point = {k: line[k] for k in experiment.sweep}
            point = {k: v if k == "network.activation" else float(v) for k, v in point.items()}
            pairs = [(error_of(point, "hermite", s), error_of(point, "network", s))
                     for s in range(4)]  # fmt: skip
            wanted = 100 * np.mean([a - b for a, b in pairs]) / np.mean([b for _, b in pairs])
            assert float(line["percent"]) == pytest.approx(wanted)
    else:
        assert len(lines) == 12 * len(MODELS)
        assert {"test_error", "test_error_se", "train_error", "seeds"} <= set(lines[0])


def test_curves_draw_the_models_asked_for_and_hide_what_advances_with_the_axis():
    together = {"data.dim": [30, 40, 50], "training.samples": [40, 50, 60]}
    sweep = {"network.activation": ["relu", "tanh"], "zip": together}
    experiment = Experiment.read(
        SPEC | {"sweep": sweep, "figure": {"models": ["network", "theory"]}}
    )
    rows = [
        Row(p.settings, model, seed, 1.0, 0.5, 2.0, number=p.number)
        for p in experiment.points for model in MODELS for seed in range(2)
    ]  # fmt: skip
    figure = draw_curves(experiment, Results("made", rows))
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["relu", "tanh", "network", "theory"]
    assert figure.axes[0].get_xlabel() == "inputs n"
    text = caption(experiment, Results("made", rows))
    assert "k/m = 2" in text and "n =" not in text and "2 seeds" in text


def test_the_caption_states_sizes_ridge_and_seeds_as_they_are():
    experiment, results = made()
    text = caption(experiment, results)
    for word in ("n = 30", "m = 40", "k = 80", "ridge = 0.001", "4 seeds"):
        assert word in text
    first = experiment.points[0].settings
    fewer = Results("made", [r for r in results.rows if r.point != first or r.seed < 2])
    assert "2 to 4 seeds" in caption(experiment, fewer)
    assert "2 to 4 seeds" in str(results_table(experiment, fewer).caption)


# --- verdict ----------------------------------------------------------------------------


def pair(point, network, other, model="hermite"):
    number = point.get("a.x", 0)
    rows = [Row(point, "network", s, v, v, number=number) for s, v in enumerate(network)]
    return rows + [Row(point, model, s, v, v, number=number) for s, v in enumerate(other)]


def test_the_verdict_names_the_largest_deviation_and_the_surest():
    noisy = pair({"a.x": 1}, [1.0, 1.2, 0.8], [1.3, 1.2, 0.8])  # +10 %, far from sure
    exact = pair({"a.x": 2}, [1.0, 1.2, 0.8], [1.011, 1.21, 0.81])  # +1 %, sure
    (test, train) = verdicts(noisy + exact)
    assert (test.model, test.quantity, train.quantity) == ("hermite", "test_error", "train_error")
    assert test.largest.point == {"a.x": 1} and test.points == 2
    assert test.largest.difference.mean == pytest.approx(0.1)
    assert test.largest.sigmas == pytest.approx(1.0)
    assert test.surest.point == {"a.x": 2}
    differences = np.array([0.011, 0.01, 0.01])
    wanted = differences.mean() / (differences.std(ddof=1) / math.sqrt(3))
    assert test.surest.sigmas == pytest.approx(wanted)


def test_theories_are_measured_by_the_noise_of_the_network():
    rows = [Row({}, "network", s, v, v) for s, v in enumerate([0.9, 1.0, 1.1])]
    rows.append(Row({}, "theory", 0, 1.2, 0.8))
    test, train = verdicts(rows)
    assert test.largest.difference.mean == pytest.approx(0.2)
    assert test.largest.sigmas == pytest.approx(0.2 / (0.1 / math.sqrt(3)))
    assert train.largest.difference.mean == pytest.approx(-0.2)


def test_the_verdict_passes_over_what_failed_or_cannot_be_compared():
    rows = pair({"a.x": 1}, [1.0, 1.1], [2.0, 2.2])
    rows.append(Row({"a.x": 2}, "hermite", 0, 5.0, 5.0, number=2))  # no network there
    rows.append(Row({"a.x": 1}, "spiked", 0, status="failed", error="no", number=1))
    found = verdicts(rows)
    assert [(v.model, v.points) for v in found] == [("hermite", 1)] * 2
    only = verdicts(pair({}, [1.0], [1.1]))
    assert only[0].surest is None  # one seed has no standard error
    assert only[0].as_json()["largest"]["standard_errors"] is None
    assert verdict_text(Results("made", rows[:2])) == ""  # the network alone


def test_a_difference_of_two_theories_has_no_noise():
    a, b = ([Row({}, name, 0, v, v)] for name, v in (("theory", 1.2), ("theory-limit", 1.0)))
    mean, error = relative_difference(a, b, "test_error")
    assert mean == pytest.approx(0.2) and error == 0


def deviating(power):
    """Networks with an error of one, a model that is 10·n^power above it, noise of 1e-3."""
    tables = {
        **SPEC, "compare": {"models": ["network", "theory"], "seeds": 2},
        "sweep": {"data.dim": [50, 100, 200]}, "figure": {"kind": "deviations"},
    }  # fmt: skip
    rows = []
    for i, n in enumerate(tables["sweep"]["data.dim"]):
        point, high = {"data.dim": n}, 1 + 10.0 * n**power
        for seed, noise in enumerate((-1e-3, 1e-3)):
            rows.append(Row(point, "network", seed, 1 + noise, 1.0, number=i))
        rows.append(Row(point, "theory", 0, high, 1.0, number=i))
    return Experiment.from_tables(tables), Results("made", tuple(rows))


@pytest.mark.parametrize("power", [-1.0, -2.0])
def test_deviations_have_a_fitted_power(power, tmp_path):
    experiment, results = deviating(power)
    paths = save_figure_of(experiment, results, tmp_path)
    assert [path.name for path in paths] == ["figure.png", "figure.pdf", "figure.csv"]
    with paths[2].open(encoding="utf-8") as handle:
        lines = [line for line in csv.DictReader(handle) if line["quantity"] == "test_error"]
    if power == -1.0:
        assert float(lines[0]["slope"]) == pytest.approx(power, abs=0.02)
    assert [float(line["data.dim"]) for line in lines] == [50, 100, 200]
    assert float(lines[1]["deviation"]) == pytest.approx(10.0 * 100.0**power, rel=1e-6)
    texts = [
        text.get_text()
        for text in draw_deviations(experiment, results, "data.dim")
        .axes[0]
        .get_legend()
        .get_texts()
    ]
    assert ("slope" in texts[0]) == (power == -1.0)  # what drowns in noise has no power
