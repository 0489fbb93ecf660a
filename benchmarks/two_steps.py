"""Outliers of the weights after two steps, η_t = C_t N^{α_t}, at sizes for which a limit is one.

    python -m benchmarks.two_steps                        # n = 6000, three draws, some minutes
    python -m benchmarks.two_steps --dim 2000 --draws 1
    python -m benchmarks.two_steps --pairs control        # other exponents, other numbers

Isotropic data, n = N, m̃ = 2n, link tanh, σ(x) = sin(ωx + φ), the gradient of the labels. For each
pair of exponents: the number that ⌊α₂/(½ − α₁)⌋ says beside the gradient's own direction; ℓ of the
last direction that counts and of the next in the limit, each with its standard deviation over draws
(docs/structure.md, section 4); then for each draw the numbers found beyond the threshold of the
limit and beyond that of the rows, and the same two singular values over the threshold. Constants
were chosen by the limit alone.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence

import numpy as np

import onegrad as og
from onegrad.compute.backend import get_backend
from onegrad.network.trial import Draw, Reuse, Trial
from onegrad.randomness import Streams
from onegrad.structured_spectra import edges_of_rows, expected_outliers
from onegrad.theory.isotropic.measured import leading_singular
from onegrad.theory.spectral.structured import weights_limit

_LEADING = 8
Exponents = tuple[float, float]
PAIRS: dict[str, Sequence[Exponents]] = {
    "theorem": ((0.2, 0.2), (0.3, 0.45), (0.4, 0.35)),
    "control": ((0.25, 0.2), (0.1, 0.45), (0.25, 0.3), (0.35, 0.35)),
}
