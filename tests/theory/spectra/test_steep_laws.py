"""Laws of steep bulks, few factors of many tables, and outliers after two steps."""

import math

import numpy as np

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.spectrum.report import edges_of_rows
from onegrad.theory.chance import chance_of
from onegrad.theory.layers.features import Harmonic
from onegrad.theory.neurons.recursion import NoiseDirections, trained_types
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.limits import NOISE, bulk_of_weights
from onegrad.theory.spectra.outliers import FiniteRank, Seen, find_outliers
from onegrad.theory.spectra.resolvent import Resolvent

SIZE, ROWS = 400, 500
RATES, DRAWS = (0.3, 0.45), 6


def test_most_singular_values_of_a_steep_bulk_are_far_below_its_edge():
    variances = np.arange(1.0, SIZE + 1) ** -0.8
    law = SpectralLaw.of(
        Resolvent(variances[:, None], (), np.ones(SIZE), np.ones(1), float(ROWS)), 0.0
    )
    draw = np.random.default_rng(0).standard_normal((ROWS, SIZE)) * np.sqrt(variances / ROWS)
    found = np.linalg.svd(draw, compute_uv=False)
    assert law.distance(found) < 0.015
    even = np.linspace(0.0, law.values[-1], len(law.values))  # negative control: equal steps
    coarse = SpectralLaw(even, law.singular_density(even), 0.0, law.edge, law.edge_scale)
    assert coarse.distance(found) > 2 * law.distance(found)


def test_what_tables_leave_out_is_noise():
    rng, types, nodes = np.random.default_rng(1), 30, 40
    at, where = rng.standard_normal(types), rng.standard_normal(nodes)
    table = 1 + 0.1 * np.abs(np.subtract.outer(at, where))
    slopes = [Harmonic(1.0, p, c * table) for p, c in ((20.0, 2.0), (60.0, 1.0), (120.0, 0.5))]
    low = np.geomspace(0.005, 0.1, 6)  # eigenvalues of what is no shared coordinate

    def made(**least):
        extra, sizes = (
            np.full((types, nodes), 0.002),
            (np.full(types, 10.0), np.full(nodes, 1 / nodes)),
        )
        return Resolvent(extra, slopes, *sizes, 400.0, **least)

    few, exact = made(), made(least=1e-9)
    assert few.blocks[0].rank < 0.5 * exact.blocks[0].rank
    want = exact.stieltjes(low)
    off = np.abs(few.stieltjes(low) - want).max() / want.max()
    few.extra = few.extra - sum(block.rest for block in few.blocks)  # negative control
    without = np.abs(few.stieltjes(low) - want).max() / want.max()
    assert off < 0.08 and without > 3 * off, (off, without)


def two_steps():
    """Rates 4.83 N^.3 and 4.33 N^.45: two directions beside that of the gradient."""
    rates = [c * SIZE**a for c, a in zip((4.83, 4.33), RATES, strict=True)]
    return og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": SIZE}, "labels": {"link": "tanh"},
        "network": {"width": SIZE, "convention": "isotropic",
                    "activation": lambda x: np.sin(x + math.pi / 4)},
        "training": {"samples": SIZE, "step_samples": 8 * SIZE, "steps": 2, "rate": rates,
                     "gradient": "labels-only"},
    })  # fmt: skip


def outliers_after_two_steps(problem, noise):
    chance = chance_of(problem, "typical", 0)
    geometry = chance.typical.geometry
    level = level_for(problem, geometry, QuadratureLevel.at(4))
    neurons = trained_types(problem, geometry, level, noise=noise)
    part = FiniteRank(neurons.vectors, np.eye(neurons.vectors.shape[1]), fixed=True)
    bulk = bulk_of_weights(neurons, geometry)
    return find_outliers(bulk, part, bulk.edge(), Seen([], np.zeros((0, 0)))).values


def test_outliers_after_two_steps_of_the_isotropic_convention():
    problem = two_steps()
    drawn = [Trial(problem, Streams(seed, 0)).updated_weights for seed in range(DRAWS)]
    found = np.array([np.linalg.svd(w, compute_uv=False)[:2] for w in drawn])
    mean, se = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(DRAWS)
    known = outliers_after_two_steps(problem, NOISE)
    assert np.all(np.abs(mean - known[:2]) < 4 * se + 0.03 * mean)
    # negative control: with one direction of noise the second is missing
    assert len(outliers_after_two_steps(problem, NoiseDirections(1))) == 1


def test_long_rows_are_no_outliers():
    weights = np.random.default_rng(2).standard_normal((SIZE, SIZE)) / math.sqrt(SIZE)
    weights[:5] *= 2.2
    values = np.linalg.svd(weights, compute_uv=False)
    edge, threshold = edges_of_rows(two_steps(), weights)
    assert values[0] < threshold and edge > 2.1
    assert np.sum(values > 2.05) >= 3  # negative control: the threshold of rows of equal lengths
    weights += 4.0 * np.outer(np.ones(SIZE), np.eye(SIZE)[0]) / math.sqrt(SIZE)
    _, threshold = edges_of_rows(two_steps(), weights)
    assert np.sum(np.linalg.svd(weights, compute_uv=False) > threshold) == 1
