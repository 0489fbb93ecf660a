"""The presets: one for every published figure, at its points; old names lead to new ones."""

import numpy as np
import pytest

from onegrad.errors import SpecError
from onegrad.spec.experiment import Experiment
from onegrad.spec.presets import (
    known_tables,
    preset_groups,
    preset_names,
)
from onegrad.spec.published import published_figure, published_names


def test_every_published_figure_has_a_preset_at_its_points():
    assert len(published_names()) == 18
    total = 0
    for name in published_names():
        experiment, figure = Experiment.read(name), published_figure(name)
        assert experiment.figure.published == name
        assert all(point.problem.dim == figure.dim for point in experiment.points)
        found = [any(p.at(point.settings) for point in experiment.points) for p in figure.points]
        assert found and all(found)
        assert next(iter(experiment.sweep)) == "network.activation"
        assert {p.quantity for p in figure.points} == {experiment.figure.quantities[0]}
        for key, values in list(experiment.sweep.items())[1:]:
            first = [v[0] if isinstance(v, tuple | list) else v for v in values]
            assert first == sorted(first), key
        total += len(figure.points)
    assert total == 1115 - 41  # all but the run that only a README shows


def test_published_errors_are_doubled_once():
    point = published_figure("demir2025/fig1a").points[0]
    assert point.point == {"network.activation": "relu", "network.width_ratio": 0.1}
    assert point.value == pytest.approx(2 * 0.0230686) and point.error == pytest.approx(3.2e-5)
    gap = published_figure("demir2025/fig4b").points[0]
    assert (gap.model, gap.value, gap.bound) == ("gap:hermite:1", 4.0, "most")
    rate = published_figure("demir2025/fig7b").points[9]
    assert rate.point["training.rate"] == pytest.approx(784.0)


def test_settings_of_the_source():
    """Facts that are easily lost: the degrees along β, the strengths, where the teacher lies."""
    strength = Experiment.read("demir2025/fig1c")
    degrees = [
        p.problem.degree for p in strength.points if p.settings["network.activation"] == "relu"
    ]
    assert degrees == [1, 1, 1, 1, 1, 2, 2, 4, 4, 4]
    ends = [p.problem for p in Experiment.read("demir2025/fig1b").points[:20]]
    assert [round(ends[i].spread) for i in (0, -1)] == [166, 1]
    assert [round(ends[i].rate) for i in (0, -1)] == [1, 166]
    ranks = Experiment.read("demir2025/fig2c")
    assert ranks.compare.seeds == 100 and ranks.points[0].problem.data.random_strengths
    map_ = Experiment.read("demir2025/fig4a").points
    assert len(map_) == 900 and map_[0].problem.labels.direction == "spikes"
    widths = [p.problem.width for p in Experiment.read("demir2025/fig8a").points[:14]]
    assert widths[0] == 5 and widths[-1] == 2500
    assert all(p.problem.data.fixed_counts for p in strength.points)
    cui = Experiment.read("cui2024/simulations").points
    assert np.allclose([p.problem.effective_ridge * p.problem.samples for p in cui], 0.01 * 2000)


def test_unknown_names_lead_to_known_ones():
    with pytest.raises(SpecError, match='Did you mean "demir2025/fig1a"'):
        known_tables("fig1a")
    with pytest.raises(SpecError, match="onegrad list"):
        known_tables("nonsense")


def test_groups_and_minutes():
    groups = preset_groups()
    assert [name for group in groups.values() for name in (p.name for p in group)] == preset_names()
    figures = [p.name for p in groups[list(groups)[1]]]
    assert figures[0] == "demir2025/fig1a" and figures[-1] == "demir2025/fig8b"
    assert all(p.minutes > 0 for group in groups.values() for p in group)
