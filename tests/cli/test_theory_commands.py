"""`predict`, `spectrum` and the presets, as a user calls them."""

import json

import pytest

from tests.cli.started import onegrad
from tests.cli.test_cli import SPEC

ISOTROPIC = """
name = "iso"
[data]
model = "isotropic"
dim = 150
[labels]
link = "hermite(0, 1, 0.5)"
noise = 0.1
[network]
convention = "isotropic"
activation = "relu"
width = 250
[training]
samples = 300
ridge = 0.1
[scaling]
exponent = 0.29
constant = 3.0
"""


@pytest.fixture
def mixture(tmp_path):
    path = tmp_path / "mixture.toml"
    path.write_text(SPEC.replace("dim = 40", "dim = 400").replace("samples = 50", "samples = 400"))
    return path


@pytest.fixture
def isotropic(tmp_path):
    path = tmp_path / "iso.toml"
    path.write_text(ISOTROPIC)
    return path


def test_predict_says_which_theory(mixture, isotropic):
    rows = json.loads(onegrad("predict", mixture, "--json").stdout)["rows"]
    assert [row["model"] for row in rows] == ["theory", "theory"]
    assert rows[0]["method"] == "conditional Gaussian theory"
    assert rows[0]["test_error_se"] == 0 and rows[0]["seeds"] == 0
    assert 0 < rows[0]["train_error"] < rows[0]["train_objective"] < rows[0]["test_error"]
    (auto,) = json.loads(onegrad("predict", isotropic, "--json").stdout)["rows"]
    assert auto["method"] == "matrix theory of the first layer" and auto["test_error_se"] > 0
    assert "the theory without a draw is uncertain by" in auto["assumptions"][-1]
    done = onegrad("predict", isotropic, "--method", "isotropic", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    assert "isotropic closed form" in row["method"] and "ℓ = 2" in row["method"]
    assert any("initial output" in line for line in row["assumptions"])
    done = onegrad("predict", mixture)
    assert "conditional Gaussian equivalence" in done.stdout


def test_predict_method_is_chosen_and_checked(mixture, isotropic):
    both = [
        json.loads(onegrad("predict", isotropic, "--method", m, "--json").stdout)["rows"][0]
        for m in ("isotropic", "conditional", "isotropic-limit")
    ]
    assert both[1]["test_error"] == pytest.approx(both[0]["test_error"], rel=0.03)
    assert both[2]["test_error"] != pytest.approx(both[0]["test_error"], rel=0.005)
    refused = json.loads(onegrad("predict", mixture, "--method", "isotropic", "--json").stdout)
    assert {row["status"] for row in refused["rows"]} == {"failed"}
    assert onegrad("predict", mixture, "--method", "isotropic").returncode == 2
    assert "isotropic data" in refused["rows"][0]["error"]
    wrong = onegrad("predict", mixture, "--method", "conditonal")
    assert wrong.returncode == 2 and '"conditional"' in wrong.stderr


def test_predict_by_projection_adds_up(mixture):
    # without chance overlaps: means over them are of the totals alone
    exact = ("--set", "data.directions=orthogonal")
    done = onegrad("predict", mixture, "--json", "--by-projection", *exact)
    row = json.loads(done.stdout)["rows"][0]
    nodes = row["by_projection"]
    for name in ("test_error", "train_error"):
        total = sum(w * e for w, e in zip(nodes["weight"], nodes[name], strict=True))
        assert total == pytest.approx(row[name], rel=1e-6)


def test_step_beyond_the_regime_goes_to_the_conditional_theory(tmp_path):
    path = tmp_path / "far.toml"
    path.write_text(ISOTROPIC.replace("exponent = 0.29", "exponent = 0.5").replace("3.0", "1.0"))
    done = onegrad("predict", path, "--method", "conditional", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["method"] == "conditional Gaussian theory" and row["status"] == "ok"
    said = onegrad("predict", path, "--method", "isotropic")
    assert "exponent < 1/2" in said.stderr
    path.write_text(path.read_text().replace("exponent = 0.5", "exponent = 0.49"))
    (near,) = json.loads(onegrad("predict", path, "--json").stdout)["rows"]
    assert near["status"] == "ok"


def test_spectrum(isotropic, tmp_path):
    done = onegrad("spectrum", isotropic, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "bulk edge" in done.stdout
    assert (tmp_path / "out" / "figure.png").stat().st_size > 5000
    report = json.loads(onegrad("spectrum", isotropic, "--out", tmp_path, "--json").stdout)
    features = report["rows"][0]["features"]
    assert features["outliers"] >= len(features["predicted"]) == 2
    assert features["leading"][0] == pytest.approx(features["predicted"][0], rel=0.15)
    assert features["alignments"][0]["step"] > 0.9


def test_spectrum_of_a_mixture(mixture, tmp_path):
    done = onegrad("spectrum", mixture, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Weights: bulk edge" in done.stdout and "Features: bulk edge" in done.stdout
    assert (tmp_path / "figure.csv").exists()


def test_predict_with_and_without_the_correction(mixture):
    def error(*arguments):
        result = onegrad("predict", mixture, "--json", *arguments)
        return json.loads(result.stdout)["rows"][0]["test_error"]

    corrected, limit = error(), error("--no-finite-size")
    assert limit < corrected < 1.05 * limit
    assert error("--set", "compare.finite_size=false") == limit
    assert error("--set", "compare.finite_size=false", "--finite-size") == corrected
