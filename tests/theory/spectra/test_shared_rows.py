"""Matrices of a step's samples that all neurons share: what they do to the edge of the weights."""

import math

import numpy as np

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.theory.chance import chance_of
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.neurons.types import NeuronTypes, RowMixing
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.limits import NOISE, bulk_of_weights

SIZE, DRAWS = 500, 6
TW_MEAN, TW_DEVIATION = -1.2065, 1.268  # of the real Tracy–Widom law


def rows(mixing):
    """Neurons z_i ± .4 Mz_i, all of the same length."""
    square = 1 + 0.4**2
    types = NeuronTypes(np.zeros((2, 1)), np.full(2, math.sqrt(square)), np.full(2, SIZE / 2), SIZE)
    parts = RowMixing(np.ones(2), np.array([[0.4], [-0.4]]))
    return NeuronTypes(**{**vars(types), "mixing": parts if mixing else None})


def top(rng):
    z = rng.standard_normal((SIZE, SIZE)) / math.sqrt(SIZE)
    symmetric = rng.standard_normal((SIZE, SIZE)) / math.sqrt(2 * SIZE)
    signs = 0.4 * (-1.0) ** np.arange(SIZE)
    return np.linalg.norm(z + signs[:, None] * (z @ (symmetric + symmetric.T)), 2)


def test_the_edge_of_rows_that_one_matrix_turns():
    found = np.array([top(np.random.default_rng(seed)) for seed in range(DRAWS)])
    off = []
    for mixing in (True, False):
        bulk = bulk_of_weights(rows(mixing), None)
        law = SpectralLaw.of(bulk, 0.0)
        unit = law.edge_scale * SIZE ** (-2 / 3) / (2 * math.sqrt(law.edge))
        mean = math.sqrt(law.edge) + TW_MEAN * unit
        off.append(abs(found.mean() - mean) / (TW_DEVIATION * unit / math.sqrt(DRAWS)))
    assert off[0] < 4 and off[1] > 4, off  # negative control: rows that are independent


def two_steps(phase, rates, ratio):
    return og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": SIZE}, "labels": {"link": "tanh"},
        "network": {"width": SIZE, "convention": "isotropic",
                    "activation": lambda x: np.sin(0.5 * x + phase)},
        "training": {"samples": SIZE, "step_samples": ratio * SIZE, "steps": 2, "rate": rates,
                     "gradient": "labels-only"},
    })  # fmt: skip


def test_parts_are_those_of_a_draw():
    """After a small first step σ'' is the same for all samples: the second moves row i by
    h_iσ''(M + m̄)w_i, and P_i is σ''h_i times the size of M."""
    phase, rates, ratio = 0.9, (0.1, 12.0), 2
    problem, first = (two_steps(phase, [rates[0], rate], ratio) for rate in (rates[1], 1e-9))
    chance = chance_of(problem, "typical", 0)
    geometry = chance.typical.geometry
    level = level_for(problem, geometry, QuadratureLevel.at(2))
    neurons = trained_types(problem, geometry, level, noise=NOISE)
    assert neurons.mixing.parts.shape[1] == 1 + NOISE.matrices
    size = np.abs(neurons.mixing.parts[:, 1]) @ (neurons.counts * np.abs(neurons.readout))
    size /= neurons.counts @ neurons.readout**2

    trial = Trial(problem, Streams(3, 0))
    before = Trial(first, Streams(3, 0)).updated_weights
    moved = trial.updated_weights - before
    (batch,) = trial.draw.later_batches(problem.training)
    matrix = (batch.x.T * batch.y) @ batch.x / (ratio * SIZE)
    matrix -= np.trace(matrix) / SIZE * np.eye(SIZE)
    matrix /= np.linalg.norm(matrix) / math.sqrt(SIZE)
    turned = before @ matrix
    along = np.sum(moved * turned, axis=1) / np.sum(turned**2, axis=1)
    a = trial.readout
    drawn = abs(a @ along) / (a @ a)
    assert abs(size / drawn - 1) < 0.06, (size, drawn)
    assert neurons.mixing.parts[:, 1] @ neurons.mixing.parts[:, 1] > 100 * (
        neurons.mixing.parts[:, 2] @ neurons.mixing.parts[:, 2]
    )
