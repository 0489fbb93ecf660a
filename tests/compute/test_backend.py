"""The same numbers on NumPy, on torch and on a library that has the standard and nothing else."""

import dataclasses
import sys

import array_api_strict
import numpy as np
import pytest
import torch

import onegrad as og
from onegrad.compute import backend as backends
from onegrad.compute.backend import NUMPY, Backend, get_backend, host
from onegrad.compute.randomness import Streams
from onegrad.errors import ConvergenceError, SpecError
from onegrad.gaussian.activation import Activation, names
from onegrad.runs.run import simulate_experiment
from onegrad.simulate.memory import check_memory
from onegrad.simulate.models import MODELS, SIMULATED
from onegrad.simulate.models.base import exact_risk
from onegrad.simulate.network import readout
from onegrad.simulate.network.readout import RidgeSolver
from onegrad.simulate.network.trial import Draw, Reuse, Trial
from onegrad.simulate.risk.sampled import sampled_risk
from onegrad.simulate.simulate import group_points, run_group
from onegrad.spec.experiment import Experiment
from tests.keys import key_of

DIM, SAMPLES, NARROW, WIDE = 40, 60, 30, 90
TORCH = get_backend("torch")
STRICT = Backend(
    "strict", array_api_strict, array_api_strict.float64, array_api_strict.Device("CPU_DEVICE")
)
OTHERS = pytest.mark.parametrize("other", [TORCH, STRICT], ids=lambda b: b.device)
LEAKY = Activation(
    "leaky", lambda x: np.where(x > 0, x, 0.1 * x), lambda x: np.where(x > 0, 1.0, 0.1), (0.0,)
)
CUBIC, EIGHTH = "hermite(0, 1, 0.2, 0.1)", "hermite(0, 1, 0.2, 0.1, 0, 0, 0, 0, 1e-4)"
ACTIVATIONS = [*names(), CUBIC, EIGHTH, LEAKY]
SETTINGS = {
    "mixture": {
        "data": {"model": "mixture", "dim": DIM, "mean": 1.0},
        "labels": {"link": "relu", "noise": 0.1},
        "scaling": {"strength": 0.74, "weighting": 0.5},
    },
    "isotropic": {"data": {"model": "isotropic", "dim": DIM}, "scaling": {"exponent": 0.29}},
}
LARGE_STEP = {
    "data": {"model": "mixture", "dim": DIM, "spread": 3.0},
    "training": {"samples": SAMPLES, "rate": 200.0, "gradient": "labels-only"},
}


def problem(convention, activation, width=NARROW):
    return og.Problem.from_spec(
        {
            **SETTINGS[convention],
            "network": {"width": width, "activation": activation, "convention": convention},
            "training": {"samples": SAMPLES, "ridge": 1e-3},
        }
    )


def numbers(backend, of, model, exact=True):
    """Errors and risks at three ridges (the third one from the eigendecomposition), readout."""
    streams = Streams(3, 0)
    draw = Draw(of, streams, Reuse(), backend)
    trial = Trial(of, streams, 3, draw, many_ridges=True)
    fitted = MODELS[model].fit(trial)
    found = []
    for ridge in (1e-3, 1e-2, 1e-1):
        fitted = fitted.at_ridge(ridge)
        found += [fitted.readout.train_error, fitted.readout.train_objective]
        found.append(sampled_risk(trial, {0: fitted}, 300)[0].value)
        if exact:
            found.append(exact_risk(trial, fitted).value)
    return np.array(found), fitted.readout.coefficients


def same(left, right):
    np.testing.assert_allclose(left[0], right[0], rtol=1e-9)
    size = np.abs(left[1]).max()
    np.testing.assert_allclose(host(left[1]), host(right[1]), atol=1e-9 * size)


@pytest.mark.parametrize("model", ["network", "hermite", "conditional-gaussian"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: getattr(a, "name", a))
@pytest.mark.parametrize("convention", SETTINGS)
def test_torch_agrees(convention, activation, model):
    width = WIDE if model == "hermite" else NARROW
    of = problem(convention, activation, width)
    ours, theirs = numbers(NUMPY, of, model), numbers(TORCH, of, model)
    same(ours, theirs)
    assert isinstance(theirs[1], torch.Tensor)


@pytest.mark.parametrize("model", SIMULATED)
@pytest.mark.parametrize("width", [NARROW, WIDE])
@OTHERS
def test_every_model_on_every_library(other, model, width):
    """Nothing outside the standard is used but what `backend` has, or strict would refuse it."""
    of = problem("isotropic", "tanh", width)
    exact = model != "kernel"
    theirs = numbers(other, of, model, exact)
    same(numbers(NUMPY, of, model, exact), theirs)
    assert not isinstance(theirs[1], np.ndarray)


@pytest.mark.parametrize("activation", ["relu", "erf", "sin", "elu", LEAKY])
@OTHERS
def test_large_steps_take_the_closed_forms(other, activation):
    """Strongly correlated neurons, and a step that follows the labels alone."""
    network = {"width": NARROW, "activation": activation}
    of = og.Problem.from_spec(LARGE_STEP | {"network": network})
    for model in ("network", "conditional-gaussian"):
        same(numbers(NUMPY, of, model), numbers(other, of, model))


def test_the_comparison_sees_small_differences():
    """Negative control: a rate that is off by one part in a million is noticed."""
    right = problem("isotropic", "tanh")
    wrong = right.model_copy(update={"scaling": og.Scaling(exponent=0.29, constant=1 + 1e-6)})
    with pytest.raises(AssertionError):
        same(numbers(NUMPY, right, "network"), numbers(TORCH, wrong, "network"))


# --- nothing large leaves the device ---------------------------------------------------------


@pytest.fixture
def transfers(monkeypatch):
    """Sizes of all tensors that became NumPy arrays, by ourselves or by SciPy unasked."""
    sizes = []
    convert = torch.Tensor.__array__

    def spy(self, *arguments, **options):
        sizes.append(self.numel())
        return convert(self, *arguments, **options)

    monkeypatch.setattr(torch.Tensor, "__array__", spy)
    return sizes


@pytest.mark.parametrize("model", ["network", "hermite", "conditional-gaussian", "gaussian"])
def test_large_arrays_stay_on_the_device(transfers, model):
    numbers(TORCH, problem("isotropic", "tanh", WIDE), model)
    assert transfers
    assert max(transfers) <= 10 * WIDE  # products with a few directions; the smallest matrix: 40·60


def test_the_spy_sees_scipy(transfers):
    """Negative control: SciPy takes a tensor, and silently gives back NumPy."""
    from scipy.linalg import cho_factor

    cho_factor(torch.eye(50, dtype=torch.float64))
    assert max(transfers) == 2500


# --- specs ------------------------------------------------------------------------------------


def experiment(**compare):
    return Experiment.from_tables(
        {
            **SETTINGS["mixture"],
            "network": {"width": NARROW},
            "training": {"samples": SAMPLES},
            "compare": {"models": ["network", "hermite", "conditional-gaussian"], "seeds": 1}
            | compare,
            "sweep": {
                "network.activation": ["relu", "tanh"],
                "training.ridge": [1e-3, 1e-2, 1e-1],
            },
        }
    )


def test_the_device_of_a_spec():
    here, there = experiment(), experiment(device="torch")
    for row, other in zip(
        simulate_experiment(here).rows, simulate_experiment(there).rows, strict=True
    ):
        assert (row.point, row.model) == (other.point, other.model)
        assert row.test_error == pytest.approx(other.test_error, rel=1e-9)
        assert row.train_objective == pytest.approx(other.train_objective, rel=1e-9)
    # rows of one device are rows of another, as they are of another machine
    assert key_of(here.points[0]) == key_of(there.points[0])


def test_points_of_different_devices_or_seeds_share_no_draw():
    both = [*experiment().points, *experiment(device="torch").points, *experiment(seed=1).points]
    assert [len(group) for group in group_points(both)] == [6, 6, 6]


def test_unknown_devices_are_refused():
    with pytest.raises(SpecError, match=r'compare\.device = \'cdua\'.*Did you mean "cuda"'):
        experiment(device="cdua")
    with pytest.raises(SpecError, match='"cuda:1"'):
        experiment(device="tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_refused_and_not_replaced():
    wanted = experiment(device="cuda")  # a spec may be read where it is not run
    with pytest.raises(SpecError, match=r"compare\.device = 'cuda'.*no GPU.*\"torch\""):
        run_group(wanted.points[:1], ["network"], 0)
    with pytest.raises(SpecError, match="no GPU"):
        simulate_experiment(wanted)  # no rows that failed: it does not start


def test_a_missing_torch_is_refused_with_advice(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    get_backend.cache_clear()
    with pytest.raises(SpecError, match=r"pip install 'onegrad\[gpu\]'"):
        get_backend("torch")


def test_the_memory_of_the_device_counts(monkeypatch):
    of = problem("isotropic", "relu").model_copy(
        update={
            "data": og.Isotropic(dim=3000),
            "network": og.Network(width=3000, convention="isotropic"),
            "training": og.Training(samples=3000),
        }
    )
    monkeypatch.setattr(Backend, "free_bytes", property(lambda self: 10**8))
    gpu = dataclasses.replace(NUMPY, device="cuda")
    with pytest.raises(SpecError, match=r"0\.1 GB are available on cuda"):
        check_memory(of, ["network"], Reuse(), gpu)


# --- the few functions themselves -------------------------------------------------------------


@pytest.mark.parametrize("backend", [NUMPY, TORCH, STRICT], ids=lambda b: b.device)
def test_what_the_standard_lacks(backend):
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((30, 20))
    matrix = phi.T @ phi
    gram = backends.lower_gram(backend.move(phi), dual=False)
    np.testing.assert_allclose(np.tril(host(gram)), np.tril(matrix), atol=1e-12)
    backends.shift_diagonal(gram, 2.0)
    right = rng.standard_normal(20)
    solution = host(backends.positive_solver(gram)(backend.move(right)))
    np.testing.assert_allclose(
        solution, np.linalg.solve(matrix + 2 * np.eye(20), right), atol=1e-12
    )
    with pytest.raises(np.linalg.LinAlgError):
        backends.positive_solver(backend.move(-np.eye(3)))
    block = backend.move(np.ones((3, 5)))
    backends.clear_diagonal(block)
    np.testing.assert_array_equal(host(block), 1 - np.eye(3, 5))


@OTHERS
def test_features_that_cannot_be_fitted(other):
    """The same advice as from NumPy."""
    y = other.move(np.ones(4))
    with pytest.raises(ConvergenceError, match="overflowed"):
        RidgeSolver(other.move(np.full((4, 2), np.inf)), y).fit(1.0, last=True)
    with pytest.raises(ConvergenceError, match="larger ridge"):
        RidgeSolver(other.move(np.ones((4, 2))), y).fit(0.0, last=True)


def test_numbers_drawn_once_are_not_changed_through_the_device():
    """Torch shares memory with NumPy where it can: what is read-only must stay as it is."""
    frozen = np.ones(3)
    frozen.setflags(write=False)
    moved = TORCH.move(frozen)
    moved += 1
    assert frozen.tolist() == [1, 1, 1]


# --- single precision -------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "torch"])
@pytest.mark.parametrize("width", [NARROW, SAMPLES, WIDE])
def test_single_precision_is_as_good_as_its_features(device, width):
    """At k = m and a small ridge a plain solution in single precision would be far off."""
    of = problem("isotropic", "tanh", width)
    of = of.model_copy(update={"training": og.Training(samples=SAMPLES, ridge=1e-4)})
    models = list(SIMULATED)
    double = og.simulate(of, models, seeds=1, degree=2).results.rows
    single = og.simulate(of, models, seeds=1, degree=2, device=device, dtype="float32").results.rows
    for row, rough in zip(double, single, strict=True):
        assert rough.test_error == pytest.approx(row.test_error, rel=3e-5), row.model
        assert rough.train_objective == pytest.approx(row.train_objective, rel=1e-4), row.model
    assert double[0].test_error != single[0].test_error


def test_a_ridge_that_single_precision_cannot_do():
    rng = np.random.default_rng(0)
    phi = (rng.standard_normal((50, 3)) @ rng.standard_normal((3, 20))).astype(np.float32)
    y = rng.standard_normal(50)
    assert RidgeSolver(phi, y).fit(1e-3, last=True).train_error == pytest.approx(
        RidgeSolver(phi.astype(float), y).fit(1e-3, last=True).train_error, rel=1e-6
    )
    for ridge in (1e-6, 1e-9):
        with pytest.raises(ConvergenceError, match="float64"):
            RidgeSolver(phi, y).fit(ridge, last=True)


def test_without_refinement_single_precision_is_off(monkeypatch):
    """Negative control: the Cholesky solution alone is far worse than the refined one."""
    of = problem("isotropic", "tanh", SAMPLES)
    of = of.model_copy(update={"training": og.Training(samples=SAMPLES, ridge=1e-5)})

    def plain(gram, multiply, right, shift):
        return backends.positive_solver(gram)(right.astype(gram.dtype)).astype(float)

    exact = og.simulate(of, seeds=1).test_error.mean
    refined = og.simulate(of, seeds=1, dtype="float32").test_error.mean
    monkeypatch.setattr(readout, "refined", plain)
    rough = og.simulate(of, seeds=1, dtype="float32").test_error.mean
    assert abs(rough - exact) > 5 * abs(refined - exact)


def test_precisions_are_stored_apart():
    assert key_of(experiment().points[0]) != key_of(experiment(dtype="float32").points[0])
