"""Plots from Python: axes come back, and what is on them are the numbers of the object."""

import matplotlib
import numpy as np
import pytest

import onegrad as og

matplotlib.use("agg")

BASE = {
    "data": {"model": "mixture", "dim": 60}, "network": {"width": 50, "activation": "tanh"},
    "training": {"samples": 80}, "scaling": {"strength": 0.6, "weighting": 0.5},
}  # fmt: skip


@pytest.fixture
def plt():
    import matplotlib.pyplot as pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def problem():
    return og.Problem.from_spec(BASE)


@pytest.fixture(scope="module")
def swept(problem):
    keys = {
        "network.activation": [np.tanh, lambda x: x / (1 + x**2)],
        "training.ridge": [0.01, 1.0],
    }
    return og.sweep(problem, keys, seeds=2, accuracy=0.1, progress=False)


def test_a_sweep_needs_no_file(swept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {row.model for row in swept.rows} == {"network", "theory"}
    assert {row.status for row in swept.rows} == {"ok"} and len(swept.rows) == 4 * 3
    names = {row.point["network.activation"] for row in swept.rows}
    assert "tanh" in names and any(name.startswith("lambda-") for name in names)
    assert not list(tmp_path.iterdir())


def test_a_sweep_has_the_numbers_of_a_run(problem, swept, tmp_path):
    spec = BASE | {
        "compare": {"models": ["network", "theory"], "seeds": 2, "accuracy": 0.1},
        "sweep": {"network.activation": ["tanh"], "training.ridge": [0.01, 1.0]},
    }
    stored = og.run(spec, tmp_path, progress=False)
    ours = [r for r in swept.rows if r.point["network.activation"] == "tanh"]
    assert [r.test_error for r in stored.rows] == [r.test_error for r in ours]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "results.json",
        "results.lock",
        "results.sqlite",
        "spec.toml",
    ]


def test_a_sweep_keeps_what_the_spec_compares():
    spec, keys = BASE | {"compare": {"models": ["linear"], "seeds": 3}}, {"training.ridge": [0.1]}
    found = og.sweep(spec, keys, progress=False).rows
    assert [(row.model, row.seed) for row in found] == [("linear", seed) for seed in range(3)]
    assert len(og.sweep(spec, keys, seeds=1, progress=False).rows) == 1  # arguments come first


def test_results(swept, plt):
    ax = swept.plot()
    assert ax.get_xlabel() == "ridge" and ax.get_ylabel() == "test error (MSE)"
    network = [s for s in swept.summaries() if s.model == "network"]
    drawn = np.concatenate(
        [line.get_ydata() for line in ax.get_lines() if len(line.get_ydata()) == 2]
    )
    for s in network:
        assert np.isclose(drawn, s.test_error.mean).any()
    both = swept.plot("test_error", "train_error", x="training.ridge")
    assert both.shape == (2,) and both[1].get_ylabel() == "training error (MSE)"
    _, mine = plt.subplots()
    assert swept.plot("train_objective", ax=mine) is mine
    for wrong in ({"x": "training.rigde"}, {"ax": [mine, mine]}):
        with pytest.raises(og.SpecError):
            swept.plot(**wrong)
    with pytest.raises(og.SpecError, match="test_error"):
        swept.plot("test_eror")


def test_prediction(problem, plt):
    prediction = og.predict(problem)
    left, right = prediction.plot()
    learned = prediction.learned()
    assert np.array_equal(left.get_lines()[1].get_ydata(), learned.learned)
    t, error = right.get_lines()[0].get_data()
    assert len(t) >= 3 and error.min() < prediction.test_error < error.max()
    isotropic = og.Problem.from_spec(
        BASE | {"data": {"model": "isotropic", "dim": 60}, "scaling": {"exponent": 0.2},
                "network": {"width": 50, "convention": "isotropic"}}
    )  # fmt: skip
    with pytest.raises(og.AssumptionError, match="conditional"):
        og.predict(isotropic, "isotropic").plot()


def test_spectrum_and_degree(problem, plt):
    isotropic = og.Problem.from_spec(
        {"data": {"model": "isotropic", "dim": 60}, "training": {"samples": 90, "ridge": 0.1},
         "network": {"width": 70, "convention": "isotropic", "activation": "tanh"},
         "scaling": {"exponent": 0.3, "constant": 3.0}}
    )  # fmt: skip
    report = og.spectrum(isotropic)
    assert report.plot().get_xlabel().startswith("singular value")
    assert len(report.plot("weights")) == 2
    with pytest.raises(og.SpecError, match="features"):
        report.plot("feature")
    found = og.degree(problem, draws=2)
    drawn = [point for line in found.plot().lines for point in line.get_xydata().tolist()]
    for term in found.terms:
        assert [term.degree, pytest.approx(100 * term.difference.mean)] in drawn
