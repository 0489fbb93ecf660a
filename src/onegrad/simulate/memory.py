"""How much memory a repetition will take, estimated before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from onegrad.compute.backend import NUMPY, Backend
from onegrad.compute.memory import available_bytes
from onegrad.compute.threads import threads_for
from onegrad.errors import SpecError
from onegrad.problem import Problem
from onegrad.simulate.models import MODELS
from onegrad.simulate.network.gram import gram_bytes
from onegrad.simulate.network.optimisers import OPTIMISERS
from onegrad.simulate.network.readout import COPIED
from onegrad.simulate.network.trial import KEEP, Reuse
from onegrad.simulate.risk.sampled import FEWEST

_SMALL = 1 << 27  # bytes that are allowed without asking the machine
_BLOCK = 2048  # test samples at a time


def peak_bytes(
    problem: Problem,
    models: Sequence[str] = ("network",),
    reuse: Reuse | None = None,
    dtype: str = "float64",
) -> int:
    """Bytes of one repetition at its largest beside the interpreter, to about 10 %, 20 % at worst.

    The largest of three stages: a gradient step, the readout, the exact risk. For one large network
    alone with n = m = k that is four matrices, 32·n² bytes; half of it in single precision.

    >>> p = Problem(data={"model": "isotropic", "dim": 10_000}, network={"width": 10_000},
    ...             training={"samples": 10_000, "rate": 1.0})
    >>> round(peak_bytes(p, ["network"], Reuse(False, False, False, False)) / 1e9, 1)
    3.2
    """
    reuse = reuse or Reuse()
    asked = [MODELS[name] for name in models]
    n, k, m, s = problem.dim, problem.width, problem.samples, problem.step_samples
    side = min(m, k)
    training = problem.training
    optimiser = OPTIMISERS[training.optimiser]
    step = s * n + (2 + optimiser.kept + optimiser.worked) * k * n + s * k
    step += 2 * n * n if training.optimiser == "kfac" else 0
    step += s * n if training.steps > 1 else 0
    kept = m * n + k * n + (m * k if reuse.products else 0)
    if reuse.products and (reuse.controls or any(m.products == "initial" for m in asked)):
        kept += m * k
    if reuse.layers or reuse.initial:
        kept += k * n + s * n
    if reuse.layers:
        kept += s * k
        kept += sum(bool(model.noise) for model in asked) * m * k * (8 * m * k <= KEEP)
        step += m * n + s * k
    half = dtype == "float32"
    # single precision needs no Gram matrix, as long as conjugate gradients are few; controls do
    fit = kept + m * k + (0 if half and not reuse.controls else side * side)
    fit += m * k // 2 if reuse.controls and not half else 0  # their features in single precision
    copied = 2 * m * k if half and 8 * m * k <= COPIED else 0  # in double, to refine readouts
    fit += copied
    if problem.loss.name != "squared":  # the Gram matrix stays, each step factorises a copy
        fit = kept + (m * k if k >= m else 2 * m * k) + 3 * side * side
    if any(model.noise for model in asked) and not reuse.layers and 8 * m * k <= KEEP:
        fit += m * k if threads_for(problem.operations) > 1 else 0  # drawn ahead by another thread
    own = [kept + model.memory(problem) for model in asked if model.memory is not None]
    own = [numbers + (2 * m * k if half else 0) for numbers in own]  # pieces in double, positions
    fit = max(fit, *own, 0)
    if reuse.features:
        # the features stay, and the eigendecomposition stands beside the Gram matrix
        fit = max(fit, kept + 2 * m * k + 4 * side * side)
    # ŴŴᵀ in single precision, and Ŵ rounded to it
    risk = kept + (gram_bytes(k) // 4 if half else k * n // 2 + gram_bytes(k) // 8)
    if not problem.data.known:
        risk = kept + 2 * _BLOCK * (n + k)
    # Signs and other losses need test samples
    elif problem.loss.name != "squared" or problem.labels_binary:
        count = m if problem.loss.name == "squared" else max(m, FEWEST)
        risk = max(risk, kept + 2 * min(count, _BLOCK) * (n + k))
    return (4 if half else 8) * max(step, fit, risk)


def check_memory(
    problem: Problem,
    models: Sequence[str] = ("network",),
    reuse: Reuse | None = None,
    backend: Backend = NUMPY,
) -> None:
    """Refuse a repetition that would not fit, instead of being killed in the middle of it."""
    needed = peak_bytes(problem, models, reuse, backend.precision)
    if needed < _SMALL:
        return
    free = backend.free_bytes
    available = available_bytes() if free is None else free
    if available is None or needed <= available:
        return
    factor = (available / needed) ** 0.5
    raise SpecError.of(
        "problem size",
        f"n = {problem.dim}, k = {problem.width}, m = {problem.samples}",
        f"needs about {needed / 1e9:.1f} GB for one repetition, and {available / 1e9:.1f} GB are "
        f"available{'' if free is None else f' on {backend.device}'}",
        f"Multiply data.dim, network.width and training.samples by {0.9 * factor:.2f}, or compare "
        "fewer models and activations in one run (one network alone takes the least)",
    )
