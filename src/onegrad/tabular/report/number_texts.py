"""Numbers of the report, with as many digits as they deserve."""

from __future__ import annotations

import math

import numpy as np

from onegrad.results.estimates import Estimate


def short(error: float) -> str:
    """Three decimals, two significant digits of what is small."""
    return f"{error:.3f}" if error >= 0.01 or error == 0 else f"{error:.2g}"


def measured_text(error: float, standard_error: float) -> str:
    if error >= 0.01:
        return f"{error:.3f} ± {standard_error:.3f}"
    return f"{error:.2g} ± {standard_error:.1g}"


def digits_of(error: float) -> int:
    """Decimals of 1 − error that show two digits of the error."""
    return int(np.clip(1 - math.floor(math.log10(max(error, 1e-9))), 3, 8))


def signed(change: Estimate) -> str:
    """With as many decimals as its standard error has zeros, three to six."""
    error = change.standard_error
    digits = int(np.clip(-math.floor(math.log10(error)), 3, 6)) if error > 0 else 3
    return f"{change.mean:+.{digits}f} ± {error:.{digits}f}"


def score_text(score: Estimate) -> str:
    """With two digits of the standard error, three to five decimals."""
    if not math.isfinite(score.standard_error) or score.standard_error == 0:
        return f"{score.mean:.3f}"
    digits = int(np.clip(1 - math.floor(math.log10(score.standard_error)), 3, 5))
    return f"{score.mean:.{digits}f} ± {score.standard_error:.{digits}f}"
