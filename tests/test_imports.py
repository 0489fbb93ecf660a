"""Imports go one way: the contracts of import-linter in pyproject.toml hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onegrad

ROOT = Path(__file__).parents[1]


def linted(source: Path) -> str:
    """What lint-imports says of the package in this folder."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(source)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True).stdout


def test_imports_keep_the_contracts():
    assert "0 broken" in linted(Path(onegrad.__file__).parents[1])


def test_an_upward_import_is_seen(tmp_path):
    """Negative control: a law of inputs that reads a command."""
    shutil.copytree(Path(onegrad.__file__).parent, tmp_path / "onegrad")
    with (tmp_path / "onegrad" / "data" / "labels.py").open("a") as file:
        file.write("\nimport onegrad.cli.commands\n")
    text = linted(tmp_path)
    assert "Imports go downwards BROKEN" in text
    assert "onegrad.data is not allowed to import onegrad.cli" in text
