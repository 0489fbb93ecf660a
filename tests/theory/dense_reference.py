"""The equations of docs/theory.md with plain dense matrices: slow, and easy to read."""

from __future__ import annotations

import numpy as np

from onegrad.theory.fixed_point import Features


def solve(
    f: Features, samples: float, ridge: float, tau: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """(m, χ, train objective) by plain iteration; τ is added to w in the covariance part only."""
    k, omega = f.counts, f.weights
    b, d, e = f.bulk, f.slope, f.extra
    m, chi = np.full(len(b), 1 / ridge), np.ones(len(omega))
    for _ in range(100_000):
        w = omega / (1 + chi) + tau
        theta = (d.T * (k * m * b**2 / f.bulk_dim)) @ d
        p = np.linalg.inv(np.diag(1 / w) + theta)
        new_m = 1 / (ridge + e @ w + b**2 * np.einsum("is,st,it->i", d, p, d))
        x = (k * m) @ e + f.bulk_dim * np.diag(theta - theta @ p @ theta)
        new_chi = x / samples
        change = max(np.abs(new_m / m - 1).max(), np.abs(new_chi / chi - 1).max())
        m, chi = new_m, new_chi
        if change < 1e-14:
            break
    return m, chi, objective(f, m, chi, tau)


def mean_kernel(f: Features, m: np.ndarray, chi: np.ndarray, tau: np.ndarray | float) -> np.ndarray:
    n = (f.mean.T * (f.counts * m)) @ f.mean
    if f.tilt is not None:
        w = f.weights / (1 + chi) + tau
        theta = (f.slope.T * (f.counts * m * f.bulk**2 / f.bulk_dim)) @ f.slope
        y = (f.slope.T * (f.counts * m * f.tilt)) @ f.mean
        q2 = (f.slope.T * (f.counts * m * f.tilt**2)) @ f.slope
        n = n + y.T @ np.linalg.solve(np.diag(1 / w) + theta - q2, y)
    return n


def objective(f: Features, m: np.ndarray, chi: np.ndarray, tau: np.ndarray | float = 0.0) -> float:
    w = f.weights / (1 + chi)
    n = mean_kernel(f, m, chi, tau)
    return float(w @ f.noise + f.labels @ np.linalg.solve(np.diag(1 / w) + n, f.labels))


def errors(f: Features, samples: float, ridge: float) -> tuple[float, float]:
    """(train, test) MSE from the dense second-order equations, without a tilt."""
    assert f.tilt is None
    m, chi, _ = solve(f, samples, ridge)
    w, b, d, e, c = f.weights / (1 + chi), f.bulk, f.slope, f.extra, f.counts
    theta = (d.T * (c * m * b**2 / f.bulk_dim)) @ d
    p = np.linalg.inv(np.diag(1 / w) + theta)
    n = mean_kernel(f, m, chi, 0.0)
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
