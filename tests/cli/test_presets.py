"""Every preset runs, at small sizes, and its figure comes out; without its data it says so."""

import os
import re
import subprocess
import sys

import pytest

from docs.small import small_tables
from onegrad.cli.commands import report_spectra
from onegrad.cli.tables import results_table, verdict_text
from onegrad.figures.draw import save_figure_of
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment
from onegrad.spec.overrides import with_changes
from onegrad.spec.presets import preset_names, preset_path, read_spec
from tests.images import needs_fashion_mnist


def marked(name):
    """One activation has to do: several curves are for tests/figures; and drafts of the theory.
    Images are many to average over: fewer samples, and so neurons."""
    text = preset_path(name).read_text(encoding="utf-8")
    fashion = 'model = "fashion-mnist"' in text
    changes = ["network.activation=relu"] if '"network.activation" = ' in text else []
    changes += ["compare.accuracy=0.03"]
    changes += ["training.samples=60"] if fashion else []
    return pytest.param(name, changes, marks=[needs_fashion_mnist] if fashion else [], id=name)


@pytest.mark.parametrize("name, changes", [marked(name) for name in preset_names()])
def test_preset_runs_quickly(name, changes, tmp_path, capsys):
    experiment = Experiment.read(with_changes(small_tables(read_spec(name)), changes))
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
        alone = experiment.compare.models == ("network",)
        assert bool(verdict_text(results)) != alone
        save_figure_of(experiment, results, tmp_path)
    for suffix in ("png", "pdf", "csv"):
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 300


IMAGES = [
    name for name in preset_names() if "fashion-mnist" in preset_path(name).read_text("utf-8")
]
COMMANDS = ("run", "predict", "simulate", "spectrum", "degree")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [IMAGES[0], IMAGES[-1]])
def test_without_images_there_is_one_message_with_advice(name, command, tmp_path):
    """Neither data set nor network: asked before the first row, and the exit code says it."""
    empty = {"HOME": tmp_path, "XDG_CACHE_HOME": tmp_path, "XDG_DATA_DIRS": tmp_path}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "onegrad", command, name, "--quick"], cwd=tmp_path,
        env={**os.environ, **{k: str(v) for k, v in empty.items()}, **proxies},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.count("dataset-fashion-mnist") == 1 and not done.stdout
    assert len(done.stderr.splitlines()) == 1
