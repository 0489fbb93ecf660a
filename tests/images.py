"""Whether Fashion-MNIST is at hand: tests that need it are skipped without, but not in CI."""

import os

import pytest

from onegrad.data.fashion_mnist import DEBIAN, FILES

AT_HAND = all((DEBIAN / f"{name}.gz").is_file() for name in FILES)
needs_fashion_mnist = pytest.mark.skipif(
    not AT_HAND and not os.environ.get("CI"), reason=f"Fashion-MNIST is not in {DEBIAN}"
)
