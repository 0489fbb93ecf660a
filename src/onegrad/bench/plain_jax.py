"""The procedure of `plain`, as one writes it in JAX: each curve is one compiled function.

Like `plain` it shares nothing between activations and models, solves the k × k system by LU and
tests on 5·m samples. It runs where jax is installed (`available`), in double precision like all
others, on the threads that XLA takes; compiling is left out of what is timed.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from onegrad.bench import plain

Repetition = Callable[[int], tuple[float, float]]


def available() -> bool:
    return importlib.util.find_spec("jax") is not None


def repetition(setting: plain.Setting, activation: str, model: str) -> Repetition:
    """seed ↦ training and test error of one curve: draw, step, fit, test."""
    jax = _jax()
    expansion = plain.expand(activation, setting.degree, _scale(setting))
    run = jax.jit(
        lambda key: errors(setting, activation, model, expansion, draws(setting, key)),
    )

    def computed(seed: int) -> tuple[float, float]:
        train, test = jax.block_until_ready(run(jax.random.key(seed)))
        return float(train), float(test)

    return computed


def draws(setting: plain.Setting, key: Any, test_factor: int = 5) -> dict[str, Any]:
    """What is random in a repetition, by name."""
    jax = _jax()
    jnp, random = jax.numpy, jax.random
    n, k, m = setting.dim, setting.width, setting.samples
    keys = iter(random.split(key, 20))
    spikes = random.normal(next(keys), (2, n))
    spikes /= jnp.linalg.norm(spikes, axis=1)[:, None]
    teacher = random.normal(next(keys), (n,))
    norm = 1 + setting.spread / 2 * (1 + jnp.abs(spikes[0] @ spikes[1]))
    teacher /= jnp.linalg.norm(teacher) * jnp.sqrt(norm)
    found = {
        "weights": random.normal(next(keys), (k, n)) / math.sqrt(n + setting.spread),
        "readout": random.normal(next(keys), (k,)) / k,
    }
    for name, count in (("step", m), ("train", m), ("test", test_factor * m)):
        component = random.randint(next(keys), (count,), 0, 2)
        along = math.sqrt(setting.spread) * random.normal(next(keys), (count,))
        x = random.normal(next(keys), (count, n)) + along[:, None] * spikes[component]
        found |= {f"x_{name}": x, f"y_{name}": jnp.maximum(x @ teacher, 0)}
        if name != "step":
            found[f"noise_{name}"] = random.normal(next(keys), (count, k))
    return found


def errors(
    setting: plain.Setting,
    activation: str,
    model: str,
    expansion: plain.Expansion,
    drawn: dict[str, Any],
) -> tuple[Any, Any]:
    """Training and test error on these draws; the compiler leaves out the noise of the network."""
    jax = _jax()
    jnp = jax.numpy
    sigma = {"relu": lambda z: jnp.maximum(z, 0), "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}

    def output(weights: Any) -> Any:
        return sigma[activation](drawn["x_step"] @ weights.T) @ drawn["readout"]

    def loss(weights: Any) -> Any:
        return jnp.mean((drawn["y_step"] - output(weights)) ** 2) / 2

    weights = drawn["weights"] - setting.rate * jax.grad(loss)(drawn["weights"])

    def features(name: str) -> Any:
        z = drawn[f"x_{name}"] @ weights.T
        if model == "network":
            return sigma[activation](z)
        total, before, now = expansion.coefficients[0], 0.0, jnp.ones_like(z)
        z = z / expansion.scale
        for j, coefficient in enumerate(expansion.coefficients[1:]):
            before, now = now, z * now - j * before
            total = total + coefficient * now
        return total + expansion.remainder * drawn[f"noise_{name}"]

    phi, y = features("train"), drawn["y_train"]
    gram = phi.T @ phi / len(y) + setting.ridge * jnp.eye(setting.width)
    a = jnp.linalg.solve(gram, phi.T @ y / len(y))
    train = jnp.mean((y - phi @ a) ** 2)
    return train, jnp.mean((drawn["y_test"] - features("test") @ a) ** 2)


def _scale(setting: plain.Setting) -> float:
    return math.sqrt(setting.dim / (setting.dim + setting.spread))


@lru_cache
def _jax() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax
