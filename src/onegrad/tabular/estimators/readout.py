"""Ridge regression on features that are computed block by block, with leave-one-out errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.tabular.estimators.first_layer import FirstLayer
from onegrad.tabular.estimators.rows import Rows

# relative to the mean variance of a feature
AUTOMATIC_RIDGES = tuple(10.0 ** (0.5 * j) for j in range(-14, 3))
_CERTAIN = 1e-10  # lower bound on 1 − leverage
_NOTHING = 1e-13  # eigenvalues up to this share of the largest are rounding


@dataclass(frozen=True)
class BlockReadout:
    """f(x) = intercept + coefficientsᵀφ(x), at the best of a path of ridges.

    errors : leave-one-out mean squared error at each of the `ridges`, outputs in units of `scale`
    values : eigenvalues of the covariance of the features, those that may differ from zero
    left_out : outputs (m × outputs) for the judged rows by the fit without them, at the best
        ridge; NaN for all others; empty unless asked for
    """

    ridge: float
    coefficients: Array
    intercept: Array
    ridges: Array
    errors: Array
    values: Array
    left_out: Array

    @property
    def error(self) -> float:
        return float(self.errors.min())


def fit_in_blocks(
    layer: FirstLayer,
    rows: Rows,
    scale: Array,
    ridges: Array | None,
    used: np.ndarray | None = None,
    judged: np.ndarray | None = None,
    left_out: bool = False,
) -> BlockReadout:
    """Minimise (1/Ω)Σω_i|y_i − b − aᵀφ_i|² + ridge·|a|², Ω = Σω, at each ridge; keep the best.

    ridges : the path, or None for one relative to the mean variance of a feature
    used, judged : masks of the rows that are fitted, and of those whose leave-one-out errors
        count; `judged` must be among `used`
    left_out : whether the outputs for the judged rows are wanted too

    Two passes: one for the k × k covariance of the features and its eigendecomposition, one for
    the leave-one-out errors of all ridges. Where there are fewer rows than neurons, their own
    matrix of products (m × m) has the same eigenvalues and is decomposed instead. With a row, all
    its copies are left out; from then on this is exact [golub1979]: with
    h = Ω_g(1/Ω + φ̃ᵀ(Φ̃ᵀΩΦ̃ + Ω·ridge)⁻¹φ̃) of an input of weight Ω_g and mean label ȳ_g, the others
    predict (f − hȳ_g)/(1 − h) there.
    Cost: mk² + 9k³ and 2k² for each judged row, the features twice; memory: 3k² and a block;
    with q = min(k, m) one factor k is q.
    """
    count = int(np.count_nonzero((rows.weight > 0) if used is None else (rows.weight > 0) & used))
    spectrum = _dual if count < len(layer.weights) else _primal
    total, mean, centre, values, vectors, projected = spectrum(layer, rows, used)
    if ridges is None:
        size = values.sum() / len(layer.weights)
        ridges = (size if size > 0 else 1.0) * np.asarray(AUTOMATIC_RIDGES)
    inverse = 1 / (values[:, None] + ridges)  # q × ridges

    errors = np.zeros(len(ridges))
    outputs: list[tuple[np.ndarray, list[Array]]] = []
    if len(ridges) > 1 or judged is not None or left_out:
        group_weight, group_mean = _groups(rows, used)
        weight_judged = 0.0
        for block in rows.blocks(judged if judged is not None else used):
            scores = (layer.features(block.x) - mean) @ vectors
            leverage = scores**2 @ inverse / total + 1 / total  # leverage of a row of weight one
            mine = rows.copies[block.rows]
            weight_judged += block.weight.sum()
            outputs.append((block.rows, []))
            for j in range(len(ridges)):
                h = (leverage[:, j] * group_weight[mine])[:, None]
                fit = centre + scores @ (inverse[:, j, None] * projected)
                own = block.y if group_mean is None else group_mean[mine]
                others = (fit - h * own) / np.maximum(1 - h, _CERTAIN)
                squares = (((block.y - others) / scale) ** 2).mean(axis=1)
                errors[j] += block.weight @ squares
                if left_out:
                    outputs[-1][1].append(others)
        errors /= weight_judged
    best = int(errors.argmin())
    known = np.full((rows.count if left_out else 0, len(centre)), np.nan)
    for where, found in outputs if left_out else ():
        known[where] = found[best]
    coefficients = vectors @ (inverse[:, best, None] * projected)
    intercept = centre - mean @ coefficients
    return BlockReadout(float(ridges[best]), coefficients, intercept, ridges, errors, values, known)


Spectrum = tuple[float, Array, Array, Array, Array, Array]


def _primal(layer: FirstLayer, rows: Rows, used: np.ndarray | None) -> Spectrum:
    """Ω, means of features and targets; eigenvalues s and vectors V (k × k) of the covariance of
    the features, and Vᵀ times their covariance with the targets."""
    total, mean, centre, gram, cross = _moments(layer, rows, used)
    _check(gram)
    values, vectors = eigh(gram, overwrite_a=True)
    return total, mean, centre, np.maximum(values, 0.0), vectors, vectors.T @ cross


def _dual(layer: FirstLayer, rows: Rows, used: np.ndarray | None) -> Spectrum:
    """The decomposition from products between rows: V = ΦᵀU/√s (k × q), q ≤ m."""
    parts = [(layer.features(b.x), b.y, b.weight) for b in rows.blocks(used)]
    features, y, weight = (np.concatenate([part[i] for part in parts]) for i in range(3))
    total = float(weight.sum())
    mean, centre = weight @ features / total, weight @ y / total
    roots = np.sqrt(weight / total)[:, None]
    features = (features - mean) * roots
    gram = features @ features.T
    _check(gram)
    values, left = eigh(gram)
    kept = values > _NOTHING * max(float(values[-1]), 0.0)
    values, left = values[kept], left[:, kept]
    vectors = features.T @ (left / np.sqrt(values))
    return total, mean, centre, values, vectors, vectors.T @ (features.T @ ((y - centre) * roots))


def _check(gram: Array) -> None:
    if not np.isfinite(gram.trace()):
        raise ConvergenceError(
            "the features overflowed. Scale the inputs (StandardScaler), or choose a bounded "
            "activation such as tanh"
        )


def _moments(
    layer: FirstLayer, rows: Rows, used: np.ndarray | None
) -> tuple[float, Array, Array, Array, Array]:
    """Ω, means of features and targets, covariance of the features and with the targets.

    Sums are taken about the features of the first rows, near enough to the mean for none of the
    digits to be lost when the mean is taken off.
    """
    k = len(layer.weights)
    total, gram, about = 0.0, np.zeros((k, k)), np.zeros(0)
    for block in rows.blocks(used):
        features = layer.features(block.x)
        if not len(about):
            about, about_y = features.mean(axis=0), block.y.mean(axis=0)
            first = np.zeros(k)
            first_y = np.zeros(block.y.shape[1])
            cross = np.zeros((k, block.y.shape[1]))
        features -= about
        weighted_y = (block.y - about_y) * block.weight[:, None]
        total += block.weight.sum()
        first += block.weight @ features
        first_y += weighted_y.sum(axis=0)
        cross += features.T @ weighted_y
        features *= np.sqrt(block.weight)[:, None]
        gram += features.T @ features
    first /= total
    first_y /= total
    gram /= total
    gram -= np.outer(first, first)
    cross /= total
    cross -= np.outer(first, first_y)
    return total, about + first, about_y + first_y, gram, cross


def _groups(rows: Rows, used: np.ndarray | None) -> tuple[Array, Array | None]:
    """Weight of each distinct input among the rows used, and its mean target if it has copies."""
    mask = rows.weight > 0 if used is None else (rows.weight > 0) & used
    counted = np.bincount(rows.copies[mask], rows.weight[mask], minlength=rows.distinct)
    weight = np.asarray(counted, dtype=float)
    if np.count_nonzero(mask) == np.count_nonzero(weight):
        return weight, None
    sums: Array | None = None
    for block in rows.blocks(used):
        if sums is None:
            sums = np.zeros((rows.distinct, block.y.shape[1]))
        np.add.at(sums, rows.copies[block.rows], block.y * block.weight[:, None])
    assert sums is not None
    return weight, sums / np.where(weight > 0, weight, 1.0)[:, None]
