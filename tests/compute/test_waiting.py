"""How long OpenBLAS's threads wait for their next product: told before NumPy is loaded."""

import os
import subprocess
import sys

import pytest

SHOW = """
import onegrad, os, sys
print(os.environ["OPENBLAS_THREAD_TIMEOUT"], "numpy" in sys.modules)
"""


@pytest.mark.parametrize(("given", "found"), [(None, "18"), ("26", "26")])
def test_threads_wait_shortly_unless_told_otherwise(given, found):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    environment |= {} if given is None else {"OPENBLAS_THREAD_TIMEOUT": given}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == [found, "False"]
