"""Specs that nobody would write by hand: advice, not a traceback, and not for long."""

import time

import pytest
from typer.testing import CliRunner

from onegrad.cli.commands import app
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import parse_toml

SPEC = """
name = "{name}"
[data]
model = "mixture"
dim = {dim}
{more}
[network]
width = 15
[training]
samples = 20
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network"]
seeds = 2
"""


def invoke(tmp_path, *arguments, name="small", dim="20", more=""):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(name=name, dim=dim, more=more), encoding="utf-8")
    start = time.process_time()
    out = ["--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["run", str(path), *out, *arguments])
    assert time.process_time() - start < 10
    return result


@pytest.mark.parametrize("name", ["[/]", "[bold]x[/bold] [/]", "$a$ {x} :smile:"])
def test_a_name_is_not_markup(tmp_path, name):
    result = invoke(tmp_path, name=name)
    assert result.exit_code == 0, result.exception
    assert name in result.output


@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        ({"dim": "9" * 5000}, (), "digits"),
        ({"more": "x = " + "[" * 5000 + "]" * 5000}, (), "nested too deeply"),
        ({"dim": "0"}, ("--quick",), "data.dim = 0"),
        ({"dim": "1" + "0" * 400}, ("--quick",), "data.dim = 1000"),
        ({}, ("--set", "data.dim=" + "9" * 5000), "--set"),
        ({}, ("--set", "data.dim=" + "[" * 5000), "--set"),
        ({"name": "x" * 200_000}, (), "at most 300 characters"),
        ({"more": "k" * 200_000 + " = 1"}, (), "is not a known key"),
        ({"more": f"weights = {[0.005] * 200}"}, (), "at most 100"),
        ({"more": "[sweep]\n" + "a." * 100_000 + "a = [1]"}, (), "ten parts"),
        ({"more": "[sweep]\n'data' . " + '"x" . ' * 1000 + "a = [1]"}, (), "ten parts"),
        ({"more": "[sweep]\nx = {" + "a." * 1000 + "a = [1]}"}, (), "ten parts"),
        ({"more": "[" + "a." * 1000 + "a]"}, (), "ten parts"),
        ({}, ("--set", "sweep.x={" + "a." * 1000 + "a = [1]}"), "--set"),
        ({"more": "#" * 2_000_000}, (), "1,000,000 characters"),
    ],
    ids=["digits", "brackets", "quick-0", "quick-1e400", "set-digits", "set-brackets", "name",
         "key", "weights", "deep", "deep-quoted", "deep-inline", "deep-table", "deep-set", "large"],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_a_short_sentence(tmp_path, settings, arguments, said):
    result = invoke(tmp_path, *arguments, **settings)
    assert result.exit_code != 0
    text = str(result.exception)
    assert said in text and len(text) < 2000, text[:3000]


def test_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(name="small", dim="20", more=""), encoding="utf-8-sig")
    assert Experiment.read(path).name == "small"


def test_dots_in_texts_are_no_keys():
    name = ".".join("abcdefghijkl")
    assert parse_toml(f'name = "{name}"\nmore = [1.5, "{name}"]')["name"] == name


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    result = invoke(tmp_path, more='"\\u001b[2Jx" = 1')
    assert "\x1b" not in str(result.exception) and "known key" in str(result.exception)
    assert "one line" in str(invoke(tmp_path, name="\\u001b[2J").exception)


@pytest.mark.parametrize("command", ["degree", "spectrum"])
def test_a_draw_that_cannot_fit_is_refused_with_the_estimate(tmp_path, command):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(name="large", dim=10**7, more=""), encoding="utf-8")
    large = ["--set", "network.width=10000000", "--set", "training.samples=10000000"]
    result = CliRunner().invoke(app, [command, str(path), *large])
    said = f"{result.exception} {result.output}"
    assert result.exit_code != 0 and "GB are available" in said
