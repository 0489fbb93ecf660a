"""Memory that limits of a process or of a control group leave."""

import subprocess
import sys

import pytest

from onegrad.compute import memory


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_limit_of_addresses_counts():
    code = """
import resource
from onegrad.compute.memory import available_bytes
resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9))
print(available_bytes())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 0 < int(found.stdout) < 3e9


def test_a_limit_of_a_control_group_counts(tmp_path):
    """Pages of files that can be given back do not."""
    assert memory._of_group(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 1000\n")
    assert memory._of_group(tmp_path) is None
    (tmp_path / "memory.max").write_text("9000\n")
    assert memory._of_group(tmp_path) == 5000
