"""The spikes of one step: all degrees at once against power by power; the large-step limit."""

import math

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.polynomials import hermite_series
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.isotropic.limits import (
    finite_step_losses,
    loss_drops,
    random_features_losses,
)
from onegrad.theory.isotropic.setting import slope_moment
from onegrad.theory.isotropic.step_spikes import resummed_spikes
from tests.theory.isotropic.common import LINK, NOISE, PHI, PSI, polynomial_spikes, setting


def test_long_steps_tend_to_the_inflated_limit():
    n, alpha = 10.0**80, 0.3
    here = setting(get_activation("softplus").centred(), rate=n**alpha, width=n * PHI / PSI)
    got = finite_step_losses(here, polynomial_spikes(here, 8, here.norm_inflation))
    base = random_features_losses(here)
    inflated, source = loss_drops(here, 2, here.norm_inflation), loss_drops(here, 2)
    drop = float(base.train_objective - got.train_objective)
    assert drop == pytest.approx(inflated[0], rel=1e-5)
    assert abs(drop / source[0] - 1) > 1e-3


def test_resummed_and_polynomial_spikes_agree_for_small_steps():
    here = setting(get_activation("softplus").centred(), rate=3.0, width=1e7, gradient="exact")
    three = polynomial_spikes(here, 3, here.norm_inflation)
    a, b = (finite_step_losses(here, spikes) for spikes in (resummed_spikes(here), three))
    assert a.test_error == pytest.approx(b.test_error, rel=1e-6)
    assert a.train_objective == pytest.approx(b.train_objective, rel=1e-6)


def test_the_resummed_profile_is_the_smoothed_activation():
    # hermite[k, j] are coefficients of σ̄(τxα): put them together again
    here = setting(get_activation("sigmoid").centred(), rate=12.0, width=400, gradient="exact")
    activation, f = here.activation, here.features
    spikes = resummed_spikes(here)
    tau = f.c1 * here.rate * spikes.s / math.sqrt(here.width)
    x, w = gauss_hermite(30)
    order = [1, 0, *range(2, spikes.size - 1)]  # the last column is the norms of neurons
    neuron = np.array([hermite_series(np.eye(len(order))[j], x) / math.sqrt(math.factorial(j))
                       for j in order])  # fmt: skip
    sample = np.array([hermite_series(np.eye(len(order))[k], x) for k in range(len(order))])
    rebuilt = sample.T @ spikes.hermite[:, :-1] @ neuron / math.sqrt(here.width)
    kappa = here.norm_inflation
    noise = LINK.second_moment + NOISE + f.c1**2 + f.rest
    written_out = here.rate**2 / here.width * 0.5 * noise * (slope_moment(activation) - f.c1**2)
    assert kappa * tau**2 == pytest.approx(written_out, rel=1e-12)
    exact = activation.smoothed(tau * np.outer(x, x), np.sqrt(1 + kappa * (tau * x) ** 2)).value
    error = w @ (rebuilt - exact) ** 2 @ w
    assert error < 1e-8 * (w @ exact**2 @ w)
