"""Spectra as text for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onegrad.text.display import count_of, value_text

if TYPE_CHECKING:
    from onegrad.spec.experiment import Point
    from onegrad.spectrum.report import MatrixSpectrum, SpectrumReport


def spectrum_text(point: Point, report: SpectrumReport) -> str:
    """Edges, outliers and alignments of one draw of weights and features, beside their limits."""
    problem, lines = point.problem, []
    if point.settings:
        lines.append(", ".join(f"{k} = {value_text(v)}" for k, v in point.settings.items()))
    rates = ", ".join(f"{rate:.4g}" for rate in problem.rates)
    sizes = f"n = {problem.dim}, m = {problem.samples}, k = {problem.width}"
    lines.append(f"η = {rates}" + f", θ = {problem.spread:.4g}" * problem.data.structured)
    lines[-1] += f" ({sizes})"
    if report.note:
        lines.append(f"One draw without limits: {report.note}.")
    if report.expected_outliers is not None:
        lines.append(_two_steps(report.expected_outliers, report.weights))
    for name, one in (("Weights", report.weights), ("Features", report.features)):
        lines += _matrix_lines(name, one)
    return "\n".join(lines) + "\n"


def _two_steps(expected: int, weights: MatrixSpectrum) -> str:
    """What the exponents of the rates say for large sizes, what this draw has, and its margin."""
    text = (
        f"Two steps: {count_of(expected, 'outlier')} of the weights expected for large sizes "
        "beside that of the gradient's own direction"
    )
    if weights.outliers is None:
        return f"{text}."
    found, values = weights.outliers, weights.leading
    text += f"; this draw has {max(found - 1, 0)}"
    margins = [100 * abs(v / weights.threshold - 1) for v in values]
    if 0 < found < len(values):
        text += (
            f", the last {margins[found - 1]:.1f} % above the value from which they count, the "
            f"next {margins[found]:.1f} % below"
        )
    return f"{text}. At sizes that fit in a memory the constants of the rates decide, too."


def _matrix_lines(name: str, one: MatrixSpectrum) -> list[str]:
    if one.outliers is None:
        values = ", ".join(f"{v:.3f}" for v in one.leading[:3])
        return [f"{name}: largest singular values {values}; no edge is known."]
    head = f"{name}: bulk edge {one.edge:.3f}, counted from {one.threshold:.3f}: "
    head += count_of(one.outliers, "outlier")
    if one.limit is not None:
        head += f", {len(one.limit.outliers)} in the limit"
        if below := sum(value <= one.threshold for value in one.predicted):
            head += f" ({below} of them closer to the edge)"
        if not math.isnan(one.distance):
            head += f"; Kolmogorov distance to the limiting bulk {one.distance:.3f}"
    lines = [f"{head}."]
    for i in range(min(one.outliers, len(one.alignments))):
        limits = one.limit.outliers if one.limit is not None else ()
        limit = "–"
        if i < len(limits):
            limit = f"{limits[i].singular_value:.3f} ± {100 * limits[i].deviation:.1f} %"
        best = sorted(one.alignments[i].items(), key=lambda pair: -pair[1])[:3]
        words = []
        for key, cosine in best:
            there = limits[i].alignments.get(key) if i < len(limits) else None
            words.append(f"{key} {cosine:.3f}" + ("" if there is None else f" ({there:.3f})"))
        if one.limit is None:
            lines.append(f"  {one.leading[i]:>9.3f}  cosine with {', '.join(words)}")
            continue
        lines.append(
            f"  {one.leading[i]:>9.3f}  limit {limit:>14}   cosine (limit) with {', '.join(words)}"
        )
        if i < len(one.doubts) and one.doubts[i]:
            lines[-1] += f"; differs from draw to draw, {one.doubts[i]}"
    return lines
