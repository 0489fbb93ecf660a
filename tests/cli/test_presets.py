"""Every preset runs with --quick, and its figure comes out."""

import re

import pytest

from onegrad.cli.commands import report_spectra
from onegrad.cli.tables import results_table, verdict_table
from onegrad.figures import theory_lines
from onegrad.figures.draw import save_figure_of
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment
from onegrad.spec.presets import preset_names, preset_path
from tests.images import needs_fashion_mnist


def marked(name):
    """One activation has to do: several curves are for tests/figures; and drafts of the theory.
    Images are many to average over: fewer samples, and so neurons."""
    text = preset_path(name).read_text(encoding="utf-8")
    fashion = 'model = "fashion-mnist"' in text
    changes = ["network.activation=relu"] if '"network.activation" = ' in text else []
    changes += ["compare.accuracy=0.03"] if "\nspectrum = " in text else []
    changes += ["training.samples=60"] if fashion else []
    return pytest.param(name, changes, marks=[needs_fashion_mnist] if fashion else [], id=name)


@pytest.fixture(autouse=True)
def no_lines(monkeypatch):
    """No theory between the points: tests/figures/test_theory_lines.py has the lines."""
    monkeypatch.setattr(theory_lines, "_has_curve", lambda *_: False)


@pytest.mark.parametrize("name, changes", [marked(name) for name in preset_names()])
def test_preset_runs_quickly(name, changes, tmp_path, capsys):
    experiment = Experiment.read(name, changes, quick=True)
    if experiment.figure.draws_spectra:
        report_spectra(experiment, tmp_path, as_json=False)
        assert re.search("spike|outlier", capsys.readouterr().out)
    else:
        results = run_experiment(experiment, tmp_path, Local(1))
        failed = {(row.model, row.error) for row in results.rows if row.status != "ok"}
        # at a twentieth of its size one point of Cui et al. has no limit, and says so
        assert not {one for one in failed if "close to interpolation" not in one[1]}
        assert len(results.summaries()) == len(experiment.points) * len(experiment.compare.models)
        assert results_table(experiment, results).row_count == len(experiment.points)
        assert verdict_table(results) is not None
        save_figure_of(experiment, results, tmp_path)
    for suffix in ("png", "pdf", "csv"):
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 300
