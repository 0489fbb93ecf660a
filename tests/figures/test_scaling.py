"""The figure of scaling laws: curves along each size and along both, exponents in the legend."""

import csv

import pytest

from onegrad.figures.draw import save_figure_of
from onegrad.figures.scaling import draw_scaling, panels_of
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.spec.experiment import Experiment

EXPERIMENT = Experiment.from_tables({
    "name": "a power law", "data": {"model": "isotropic", "dim": 50},
    "network": {"width": 40}, "training": {"samples": 80, "rate": 0.0},
    "compare": {"models": ["network", "theory"], "seeds": 2},
    "sweep": {"network.width": [20, 40, 80], "training.samples": [40, 80, 160]},
    "figure": {"kind": "scaling"},
})  # fmt: skip


@pytest.fixture
def results():
    """test_error = width^−½ samples^−¼ for the network, with other powers for the theory."""
    rows = []
    for point in EXPERIMENT.points:
        width, samples = point.settings["network.width"], point.settings["training.samples"]
        for model, (a, b) in {"network": (0.5, 0.25), "theory": (0.6, 0.3)}.items():
            error = width**-a * samples**-b
            for seed in range(1 if model == "theory" else 2):
                noise = 1 + 0.01 * (2 * seed - 1) * (model == "network")
                rows.append(Row(point.settings, model, seed, error * noise, error, error,
                                number=point.number))  # fmt: skip
    return Results(EXPERIMENT.name, tuple(rows))


def test_each_size_and_both_of_them(results):
    titles = [title for title, _, _ in panels_of(EXPERIMENT, results)]
    assert len(titles) == 3 and "both" in titles[2] and "= 2 ·" in titles[2]


def test_exponents_are_found_and_stand_in_the_legend(results, tmp_path):
    written = save_figure_of(EXPERIMENT, results, tmp_path)
    assert all(path.stat().st_size > 0 for path in written)
    with (tmp_path / "figure.csv").open() as handle:
        found = {(r["along"], r["at"], r["model"]): float(r["exponent"])
                 for r in csv.DictReader(handle)}  # fmt: skip
    wanted = {"network": (0.5, 0.25, 0.75), "theory": (0.6, 0.3, 0.9)}
    for (along, at, model), exponent in found.items():
        which = 2 if "both" in along else 0 if "samples" in at else 1
        assert exponent == pytest.approx(wanted[model][which], abs=1e-6), (along, at)
    assert len(found) == 2 * (3 + 3 + 1)
    panel = draw_scaling(EXPERIMENT, results).axes[0]
    texts = [text.get_text() for text in panel.get_legend().get_texts()]
    assert len(texts) == 3
    assert all("network 0.50 ±" in text and text.endswith("theory 0.60") for text in texts)
