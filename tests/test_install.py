"""A wheel, installed in a fresh environment, works from any folder; and programs start soon."""

import os
import resource
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*words, cwd, **environment):
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with our wheel; dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    run(*pip, "wheel", ROOT, "--no-deps", "-w", folder / "dist", cwd=folder)
    (wheel,) = (folder / "dist").glob("onegrad-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "onegrad/py.typed",
        "onegrad/references.bib",
        "onegrad/page/static/index.html",
    ):
        assert needed in names
    assert not [n for n in names if n.startswith(("tests", "docs"))]
    venv.create(folder / "venv", with_pip=False)
    fresh = folder / "venv" / "bin" / "python"
    run(*pip, "--python", fresh, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return fresh


def test_from_any_folder(python, tmp_path):
    where = run(python, "-c", "import onegrad; print(onegrad.__file__)", cwd=tmp_path)
    assert str(python.parents[1]) in where
    program = python.parent / "onegrad"
    assert "quickstart" in run(program, "list", cwd=tmp_path)
    assert run(program, "--version", cwd=tmp_path) == run(
        python, "-m", "onegrad", "--version", cwd=tmp_path
    )
    small = ("--quick", "--set", "compare.seeds=1", "--workers", "1")
    said = run(program, "run", "quickstart", *small, cwd=tmp_path, OPENBLAS_NUM_THREADS="1")
    assert "Verdict" in said and (tmp_path / "results" / "quickstart-quick" / "figure.png").exists()


def seconds(*commands, cwd):
    """CPU seconds of some commands, each the least of five, in turns: a busy machine slows all."""
    found = []
    for _ in range(5):
        for words in commands:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            clean = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            subprocess.run(
                [sys.executable, *words], cwd=cwd, env=clean, check=True, capture_output=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [min(found[i :: len(commands)]) for i in range(len(commands))]


POINT = """
data = { model = "mixture", dim = 300 }
network = { activation = "relu", width = 300 }
training = { samples = 300 }
scaling = { strength = 0.74, weighting = 0.5 }
compare = { seeds = 4 }
"""


def test_start_up(tmp_path):
    """CPU of `list` and of `degree` on one point (four draws), in units of importing NumPy and
    SciPy."""
    (tmp_path / "point.toml").write_text(POINT, encoding="utf-8")
    unit, listed, degree = seconds(
        ("-c", "import numpy, scipy.linalg"), ("-m", "onegrad", "list"),
        ("-m", "onegrad", "degree", "point.toml"), cwd=tmp_path,
    )  # fmt: skip
    assert listed <= 1.5 * unit
    assert degree <= 3 * unit
