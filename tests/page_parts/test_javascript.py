"""The page's JavaScript: its own tests by node's runner, and no line too long to read."""

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1] / "page_js"
LONGEST = 140


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_modules_own_tests_pass():
    files = sorted(map(str, TESTS.glob("*.test.mjs")))
    done = subprocess.run(["node", "--test", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_no_line_is_too_long():
    folder = resources.files("onegrad.page") / "static"
    for file in folder.iterdir():
        if file.name.endswith(".js") and file.name != "story.js":
            lines = file.read_text(encoding="utf-8").splitlines()
            long = [i for i, line in enumerate(lines, 1) if len(line) > LONGEST]
            assert not long, (file.name, long)
