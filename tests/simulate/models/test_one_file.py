"""Adding a model is adding one file: a toy one, from simulation to figure, page and citation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onegrad

TOY = '''
"""A toy: the constant 1 plus the first two inputs, at the network's ridge."""

from onegrad.compute.backend import namespace
from onegrad.simulate.models.base import Mark, Model, fit_features


class ToyFeatures:
    def moments(self, inputs):
        x = inputs.batch.x
        xp = namespace(x)
        return xp.concat([xp.ones_like(x[:, :1]), x[:, :2]], axis=1), 0.0

    def predictor(self, trial, a):
        from onegrad.errors import AssumptionError

        raise AssumptionError("a toy has no exact risk")


MODEL = Model(
    "toy", "three features", Mark("P"), fit=lambda trial: fit_features(trial, ToyFeatures()),
    cites=("hu2023",), sampled=True, products="none",
)
'''
USE = """
from pathlib import Path

import onegrad as og
from onegrad.page.controls import about
from onegrad.page.work import repetition
from onegrad.figures.draw import save_figure_of
from onegrad.runs.run import run_experiment
from onegrad.spec.citations import cited
from onegrad.spec.experiment import Experiment

spec = {
    "data": {"model": "mixture", "dim": 20}, "network": {"width": 15},
    "training": {"samples": 30}, "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "toy"], "seeds": 2, "test_samples": 200},
    "sweep": {"training.ridge": [0.1, 0.2]},
}
experiment = Experiment.read(spec)
point = experiment.points[0]
direct = og.simulate(point.problem, "toy", seeds=2, test_samples=200).test_error
results = run_experiment(experiment, "out", og.Local(1))
stored = [s for s in results.summaries() if s.model == "toy"][0].test_error
assert stored == direct, (stored, direct)
written = save_figure_of(experiment, results, Path("out"))
assert written and all(path.exists() for path in written)
assert {row["model"] for row in repetition(spec | {"sweep": {}}, 0)} == {"network", "toy"}
assert about()["marks"]["toy"]
assert "hu2023" in cited(experiment)
print("all there")
"""


def test_a_model_is_one_file(tmp_path):
    package = Path(onegrad.__file__).parent
    shutil.copytree(package, tmp_path / "onegrad", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "onegrad" / "simulate" / "models" / "toy.py").write_text(TOY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.strip() == "all there", done.stderr
