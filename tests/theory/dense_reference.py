"""The equations of notes/2026-11-theory.md with plain dense matrices: slow, and easy to read."""

from __future__ import annotations

import numpy as np

from onegrad.theory.layers.features import NodeFeatures

Vector = np.ndarray


def gain_map(f: NodeFeatures, ridge: float, w: Vector, m: Vector) -> Vector:
    """Right-hand side of eqs. (9) and (10), solved for m_i."""
    b, d = f.bulk, f.slope
    theta = (d.T * (f.counts * m * b**2 / f.bulk_dim)) @ d
    p = np.linalg.inv(np.diag(1 / w) + theta)
    return 1 / (ridge + f.extra @ w + b**2 * np.einsum("is,is->i", d @ p, d))


def gains(f: NodeFeatures, ridge: float, w: Vector) -> Vector:
    """m_i at fixed weights w, by plain iteration."""
    m = np.full(len(f.bulk), 1 / ridge)
    for _ in range(100_000):
        new = gain_map(f, ridge, w, m)
        change, m = np.abs(new / m - 1).max(), new
        if change < 1e-14:
            break
    return m


def spread(f: NodeFeatures, m: Vector, w: Vector) -> Vector:
    """X_s of eq. (11)."""
    theta = (f.slope.T * (f.counts * m * f.bulk**2 / f.bulk_dim)) @ f.slope
    p = np.linalg.inv(np.diag(1 / w) + theta)
    return (f.counts * m) @ f.extra + f.bulk_dim * np.diag(theta - theta @ p @ theta)


def solve(
    f: NodeFeatures, samples: float, ridge: float, tau: Vector | float = 0.0
) -> tuple[Vector, Vector, float]:
    """(m, χ, train objective) by plain iteration; τ is added to w in the covariance part only."""
    m, chi = np.full(len(f.bulk), 1 / ridge), np.ones(len(f.weights))
    for _ in range(100_000):
        w = f.weights / (1 + chi) + tau
        new_m, new = gain_map(f, ridge, w, m), spread(f, m, w) / samples
        change = max(np.abs(new_m / m - 1).max(), np.abs(new / chi - 1).max())
        m, chi = new_m, new
        if change < 1e-14:
            break
    w = f.weights / (1 + chi)
    return m, chi, objective(f, w, mean_kernel(f, m, w + tau))


def mean_kernel(f: NodeFeatures, m: Vector, w: Vector) -> Vector:
    """N of eqs. (12) and (24)."""
    n = (f.mean.T * (f.counts * m)) @ f.mean
    if f.tilt is not None:
        theta = (f.slope.T * (f.counts * m * f.bulk**2 / f.bulk_dim)) @ f.slope
        y = (f.slope.T * (f.counts * m * f.tilt)) @ f.mean
        q2 = (f.slope.T * (f.counts * m * f.tilt**2)) @ f.slope
        n = n + y.T @ np.linalg.solve(np.diag(1 / w) + theta - q2, y)
    return n


def objective(f: NodeFeatures, w: Vector, n: Vector) -> float:
    return float(w @ f.noise + f.labels @ np.linalg.solve(np.diag(1 / w) + n, f.labels))


def mean_volume(f: NodeFeatures, ridge: float, w: Vector) -> float:
    """log det(I + WN) with the gains that belong to w; its gradient is eq. (28)."""
    n = mean_kernel(f, gains(f, ridge, w), w)
    return float(np.linalg.slogdet(np.eye(len(w)) + w[:, None] * n)[1])


def errors(f: NodeFeatures, samples: float, ridge: float) -> tuple[float, float]:
    """(train, test) MSE from the dense second-order equations, without a tilt."""
    assert f.tilt is None
    m, chi, _ = solve(f, samples, ridge)
    w, b, d, e, c = f.weights / (1 + chi), f.bulk, f.slope, f.extra, f.counts
    theta = (d.T * (c * m * b**2 / f.bulk_dim)) @ d
    p = np.linalg.inv(np.diag(1 / w) + theta)
    n = mean_kernel(f, m, w)
    r = np.linalg.solve(np.eye(len(w)) + n * w, f.labels)
    alpha = w * r
    dpd = d @ p @ d.T
    gamma = np.outer(m**2 * b**2, c * b**2) * dpd**2 / f.bulk_dim
    response = e + b[:, None] ** 2 * ((d @ p) / w) ** 2
    dm = -np.linalg.solve(np.eye(len(b)) - gamma, m[:, None] ** 2 * response)  # ∂m/∂w
    source = -((c * (f.mean @ alpha) ** 2) @ dm)
    bulk = theta - theta @ p @ theta
    jacobian = -(response.T * c) @ dm + f.bulk_dim * bulk**2
    t0 = f.noise + r**2 + source
    system = np.eye(len(w)) - jacobian * (f.weights / (1 + chi) ** 2) / samples
    t = np.linalg.solve(system, t0)
    return float(f.weights @ (t / (1 + chi) ** 2)), float(f.weights @ t)
