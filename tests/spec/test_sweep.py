"""From a spec to its points: grids, lists that advance together, --set and --quick."""

import pytest

from onegrad.errors import SpecError
from onegrad.spec.experiment import Experiment
from onegrad.spec.overrides import parse_change
from onegrad.spec.presets import preset_names

SPEC = {
    "name": "small",
    "data": {"model": "mixture", "dim": 300},
    "network": {"width_ratio": 1.0},
    "training": {"samples": 400},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 30},
}
ZIP = {"data.dim": [50, 100, 200, 400], "training.samples": [75, 150, 300, 600]}


def read(changes=(), quick=False, **tables):
    return Experiment.read(SPEC | tables, changes, quick)


def message(changes=(), quick=False, **tables):
    with pytest.raises(SpecError) as caught:
        read(changes, quick, **tables)
    return str(caught.value)


# --- together ---------------------------------------------------------------------------


def test_lists_advance_together_inside_a_grid():
    sweep = {"network.activation": ["relu", "tanh"], "zip": ZIP}
    experiment = read(sweep=sweep)
    settings = [tuple(point.settings.values()) for point in experiment.points]
    assert settings == [
        (name, n, m)
        for name in ("relu", "tanh")
        for n, m in zip(*ZIP.values(), strict=True)
    ]  # fmt: skip
    assert [p.problem.samples for p in experiment.points[:4]] == [75, 150, 300, 600]
    assert experiment.zipped == ("data.dim", "training.samples")
    nested = {"data": {"dim": [50, 100]}, "training": {"samples": [60, 70]}}
    assert len(read(sweep={"zip": nested}).points) == 2


def test_a_value_may_come_again_in_a_list_that_advances_with_another():
    together = {"data.dim": [50, 50, 100], "training.samples": [60, 70, 70]}
    assert len(read(sweep={"zip": together}).points) == 3


@pytest.mark.parametrize(
    "sweep, words",
    [
        ({"zip": {"data.dim": [50, 100], "training.samples": [60, 70, 80]}},
         ["sweep.zip", "data.dim: 2, training.samples: 3", "same number", "Cut them to 2"]),
        ({"zip": {"data.dim": [50, 50], "training.samples": [60, 60]}},
         ["sweep.zip", "each value once"]),
        ({"zip": {"data.dmi": [50, 100]}}, ["sweep.zip.data.dmi", "data.dim"]),
        ({"zip": {"data.dim": 50}}, ["sweep.zip.data.dim", "list"]),
        ({"zip": [1, 2]}, ["sweep.zip", "table"]),
        ({"data.dim": [50], "zip": ZIP}, ["sweep.data.dim", "sweep.zip"]),
        ({"width": [5, 6]}, ["sweep.width", 'Write "network.width"']),
    ],
)  # fmt: skip
def test_bad_sweeps_say_what_to_do(sweep, words):
    text = message(sweep=sweep)
    for word in words:
        assert word in text


# --- errors inside a sweep --------------------------------------------------------------


def test_an_error_in_a_swept_value_names_the_sweep():
    assert message(sweep={"network.activation": ["relu", "rleu"]}).startswith(
        "sweep.network.activation = 'rleu'"
    )
    assert message(sweep={"scaling.strength": [0.5, 1.5]}).startswith("sweep.scaling.strength")
    together = {"data.dim": [50, 100], "training.samples": [60, -1]}
    assert "sweep.zip.training.samples = -1" in message(sweep={"zip": together})
    assert "sweep.data.weights" in message(sweep={"data.weights": [[0.5, 0.5], [0.5, 0.7]]})


def test_an_error_that_the_sweep_causes_elsewhere_names_the_point():
    data = SPEC["data"] | {"rank": 60}
    text = message(data=data, sweep={"data.dim": [200, 50]})
    assert text.startswith("data.rank = 60") and "at data.dim = 50 of the sweep" in text
    text = message(data=data, sweep={"data.dim": [50, 200]})
    assert "at data.dim = 50 of the sweep" in text


def test_an_error_that_has_nothing_to_do_with_the_sweep_does_not_name_it():
    text = message(
        scaling={"strength": 1.5, "weighting": 0.5}, sweep={"network.width_ratio": [1, 2]}
    )
    assert "sweep" not in text and text.startswith("scaling.strength = 1.5")


# --- --set ------------------------------------------------------------------------------


def test_set_changes_any_key():
    changed = read(
        ["compare.seeds=5", "network.activation=tanh", "training.ridge = 1e-3", "name=a new name",
         "sweep.network.width_ratio=[0.5, 2]", 'compare.models=["network"]']
    )  # fmt: skip
    assert changed.compare.seeds == 5 and changed.name == "a new name"
    assert changed.compare.models == ("network",)
    assert changed.sweep == {"network.width_ratio": (0.5, 2)}
    problem = changed.points[0].problem
    assert problem.training.ridge == 1e-3 and problem.activation.name == "tanh"


def test_a_key_set_by_hand_is_no_longer_swept():
    sweep = {"network.width_ratio": [0.5, 1, 2], "network.activation": ["relu", "tanh"]}
    assert list(read(["network.activation=erf"], sweep=sweep).sweep) == ["network.width_ratio"]
    wide = read(["network.width=77"], sweep=sweep)  # the rival of width_ratio
    assert list(wide.sweep) == ["network.activation"]
    assert {p.problem.width for p in wide.points} == {77}
    swept = read(["sweep.network.width=[7, 8]"], sweep=sweep)
    assert swept.sweep == {"network.activation": ("relu", "tanh"), "network.width": (7, 8)}


def test_set_in_lists_that_advance_together():
    sweep = {"zip": ZIP}
    lists = ["sweep.zip.data.dim=[20, 30]", "sweep.zip.training.samples=[40, 50]"]
    assert [p.problem.dim for p in read(lists, sweep=sweep).points] == [20, 30]
    assert "sweep.zip.data.dim" in message(["data.dim=40"], sweep=sweep)


def test_the_original_is_not_changed():
    sweep = {"network.width_ratio": [0.5, 1], "zip": ZIP}
    before = repr(SPEC), repr(sweep)
    read(["compare.seeds=2", "network.width=5", "training.ridge=1"], quick=True, sweep=sweep)
    assert (repr(SPEC), repr(sweep)) == before


@pytest.mark.parametrize(
    "change, words",
    [
        ("compare.seeds", ["--set", "key=value", "compare.seeds=5"]),
        ("=5", ["--set", "key=value"]),
        ("compare.seeds=", ["--set", "key=value"]),
        ("compare.seeds=1O", ["--set", "TOML"]),
        ("sweep.network.activation=[relu]", ["--set", "TOML", "quotes"]),
        ("compare.seeds=-1", ["compare.seeds = -1", "from 1"]),
        ("compare.sedes=5", ["compare.sedes", '"seeds"']),
        ("seeds=5", ["seeds = 5", "[compare]"]),
        ("dat.dim=5", ["dat", '"data"']),
        ("data.dim.x=5", ["data.dim.x", "data.dim"]),
        ("network.activation=rleu", ["network.activation", '"relu"']),
        ("sweep.network.widht=[1, 2]", ["sweep.network.widht", '"network.width"']),
    ],
)
def test_bad_changes_say_what_to_do(change, words):
    text = message([change])
    for word in words:
        assert word in text


def test_values_are_toml_or_bare_words():
    assert parse_change("a.b=[1, 2.5]") == ("a.b", [1, 2.5])
    assert parse_change("a.b=true") == ("a.b", True)
    assert parse_change("network.activation=hermite(0, 1, 0.5)")[1] == "hermite(0, 1, 0.5)"
    assert parse_change("data.path=./my data.csv")[1] == "./my data.csv"
    assert parse_change('a.b="x=y"') == ("a.b", "x=y")


# --- --quick ----------------------------------------------------------------------------


def test_quick_cuts_points_and_seeds_and_nothing_else():
    sweep = {
        "network.width_ratio": [0.1, 0.2, 0.5, 1, 2, 3, 4],
        "network.activation": ["relu", "tanh", "sigmoid"],
    }
    full, quick = read(sweep=sweep), read(quick=True, sweep=sweep)
    assert quick.sweep["network.width_ratio"] == (0.1, 0.5, 2, 4)
    assert quick.sweep["network.activation"] == ("relu", "tanh", "sigmoid")
    assert quick.compare == full.compare.model_copy(update={"seeds": 5})
    whole = {repr(point.settings): point.problem for point in full.points}
    assert all(whole[repr(point.settings)] == point.problem for point in quick.points)
    n = full.points[0].problem.dim
    assert quick.name == f"{full.name} (quick: n = {n}, 5 seeds)"


def test_quick_makes_nothing_larger_and_set_has_the_last_word():
    changed = read(["compare.seeds=9", "data.dim=77"], quick=True)
    assert changed.compare.seeds == 9 and changed.name.endswith("(quick: n = 77, 9 seeds)")
    assert read(quick=True, compare={"seeds": 2}).compare.seeds == 2
    auto = read(quick=True, compare={"seeds": "auto", "precision": 0.003}).compare
    assert (auto.seeds, auto.precision) == ("auto", 0.01)
    assert read(quick=True, compare={"seeds": "auto", "precision": 0.02}).compare.precision == 0.02
    assert read(quick=True, data={"model": "mixture", "dim": 2000}).compare.seeds == 2


def test_quick_keeps_lists_together():
    longer = {key: [*values, *(2 * v for v in values[-2:])] for key, values in ZIP.items()}
    quick = read(quick=True, sweep={"zip": longer})
    assert {len(quick.sweep[key]) for key in ZIP} == {4}
    assert "to" in quick.name


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_quick_has_its_problems(name):
    full, quick = Experiment.read(name), Experiment.read(name, quick=True)
    whole = {repr(point.settings): point.problem for point in full.points}
    assert all(whole[repr(point.settings)] == point.problem for point in quick.points)
    assert quick.figure == full.figure and quick.compare.models == full.compare.models
    assert quick.compare.finite_size == full.compare.finite_size
    assert quick.compare.seeds == "auto" or quick.compare.seeds <= 5


# --- figures that cannot be drawn -------------------------------------------------------

MAP = {"kind": "map"}
GRID = {"scaling.weighting": [0.0, 0.5], "scaling.strength": [0.3, 0.6]}


@pytest.mark.parametrize(
    "figure, sweep, words",
    [
        (MAP, {"scaling.weighting": [0, 1]}, ["figure.kind", "two swept keys", "curves"]),
        ({"kind": "heat"}, GRID, ["figure.kind", '"map"']),
        (MAP | {"axes": ["scaling.weighting", "data.dim"]}, GRID, ["figure.axes", "data.dim"]),
        (MAP | {"models": ["linear"]}, GRID, ["figure.models", "linear", "compare.models"]),
        ({"kind": "difference-map", "reference": "linear"}, GRID,
         ["figure.reference", "linear", "compare.models"]),
        ({"kind": "difference-map", "reference": "hermit"}, GRID, ["hermit", '"hermite"']),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_drawn_are_refused_at_once(figure, sweep, words):
    text = message(figure=figure, sweep=sweep)
    for word in words:
        assert word in text


def test_axes_are_the_numeric_keys_with_most_values():
    sweep = {"network.activation": ["relu", "tanh", "erf"], "training.ridge": [1e-3, 1e-2]} | GRID
    experiment = read(sweep=sweep | {"scaling.strength": [0.1, 0.2, 0.3]}, figure=MAP)
    assert experiment.figure.along(experiment.sweep) == ("training.ridge", "scaling.strength")
    wanted = {"axes": ["scaling.strength", "network.activation"]}
    experiment = read(sweep=sweep, figure=MAP | wanted)
    assert experiment.figure.along(experiment.sweep) == ("scaling.strength", "network.activation")
