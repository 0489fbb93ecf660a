"""A straightforward simulation of the network, written only from its definition.

It shares no code with the package except the scalar functions passed in, so that agreement with
the theory is evidence. f(x) = aᵀσ(Wx); one gradient step on ½·MSE; ridge readout on fresh data,
(1/m)‖y − Φa‖² + λ‖a‖²; test error on fresh data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Instance:
    """Explicit n-dimensional vectors of one draw of the population."""

    weights: np.ndarray  # (C,)
    means: np.ndarray  # (C, n)
    spikes: tuple[np.ndarray, ...]  # (n, r_c)
    strengths: tuple[np.ndarray, ...]  # (r_c,)
    teacher: np.ndarray  # (n,), norm 1/√‖Σ̄‖


def draw_instance(
    n: int,
    weights: list[float],
    rank: int,
    theta: float,
    mean: float,
    rng: np.random.Generator,
) -> Instance:
    count = len(weights)
    rho = np.array(weights)
    rng.standard_normal(n)  # not used; keeps the draws of the seeds that were looked at
    blocks = [np.linalg.qr(rng.standard_normal((n, rank)))[0] for _ in range(count)]
    means = np.zeros((count, n))
    if mean:
        raw = rng.standard_normal((count, n))
        corners = raw - raw.mean(axis=0) if count > 1 else raw
        means = mean * corners / np.linalg.norm(corners, axis=1, keepdims=True)
    stacked = np.hstack([np.sqrt(p * theta) * b for p, b in zip(rho, blocks, strict=True)])
    largest = 1 + (np.linalg.eigvalsh(stacked.T @ stacked)[-1] if rank else 0.0)
    teacher = rng.standard_normal(n)
    teacher /= np.linalg.norm(teacher) * np.sqrt(largest)
    return Instance(rho, means, tuple(blocks), tuple(np.full(rank, theta) for _ in rho), teacher)


@dataclass(frozen=True)
class Network:
    """How the network is initialised and trained; numbers, not names."""

    activation: Function
    derivative: Function
    width: int
    samples: int
    step_samples: int
    rate: float
    ridge: float  # λ_eff
    weight_variance: float
    readout_std: float
    exact_gradient: bool = True


@dataclass(frozen=True)
class Result:
    train_error: float
    test_error: float
    wrong_sign: float
    first_layer: np.ndarray
    gradient_direction: np.ndarray  # X̃ᵀu
    test_projection: np.ndarray  # ξᵀx of the test samples
    test_component: np.ndarray
    test_prediction: np.ndarray
    train_power: float  # mean y² of the readout's samples, for a ratio estimate


def sample(
    instance: Instance, count: int, links: list[Function] | list[float], noise: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    n = instance.means.shape[1]
    c = rng.choice(len(instance.weights), size=count, p=instance.weights)
    x = rng.standard_normal((count, n))
    y = np.empty(count)
    for j in range(len(instance.weights)):
        mine = np.flatnonzero(c == j)
        g = rng.standard_normal((len(mine), len(instance.strengths[j])))
        x[mine] += instance.means[j] + (g * np.sqrt(instance.strengths[j])) @ instance.spikes[j].T
        rule = links[j]
        y[mine] = rule(x[mine] @ instance.teacher) if callable(rule) else rule
    return x, y + noise * rng.standard_normal(count), c


def simulate(
    instance: Instance,
    network: Network,
    links: list[Function] | list[float],
    noise: float,
    rng: np.random.Generator,
    test_samples: int = 4000,
) -> Result:
    n, k, m = instance.means.shape[1], network.width, network.samples
    w0 = np.sqrt(network.weight_variance) * rng.standard_normal((k, n))
    a0 = network.readout_std * rng.standard_normal(k)
    x, y, _ = sample(instance, network.step_samples, links, noise, rng)
    z = x @ w0.T
    u = y - network.activation(z) @ a0 if network.exact_gradient else y
    gradient = ((u[:, None] * network.derivative(z)).T @ x) * a0[:, None] / len(u)
    w1 = w0 + network.rate * gradient
    xr, yr, _ = sample(instance, m, links, noise, rng)
    phi = network.activation(xr @ w1.T)
    if k > m:
        dual = np.linalg.solve(phi @ phi.T / m + network.ridge * np.eye(m), yr / m)
        readout = phi.T @ dual
    else:
        readout = np.linalg.solve(phi.T @ phi / m + network.ridge * np.eye(k), phi.T @ yr / m)
    train = float(np.mean((yr - phi @ readout) ** 2))
    xt, yt, ct = sample(instance, test_samples, links, noise, rng)
    ft = network.activation(xt @ w1.T) @ readout
    return Result(
        train, float(np.mean((yt - ft) ** 2)), float(np.mean(np.sign(ft) != np.sign(yt))), w1,
        x.T @ u, xt @ instance.teacher, ct, ft, float(np.mean(yr**2)),
    )  # fmt: skip
