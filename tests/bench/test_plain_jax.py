"""The procedure in JAX is the plain one: the same errors on the same draws. Where jax is there."""

import numpy as np
import pytest

from onegrad.bench import measure, plain, plain_jax

jax = pytest.importorskip("jax")
SETTING = plain.Setting(40, 30, 50, 5.0, 4.0, 1e-2, 3)


@pytest.mark.parametrize("activation", measure.ACTIVATIONS)
@pytest.mark.parametrize("model", measure.MODELS)
def test_same_errors_on_the_same_draws(activation, model):
    plain_jax.repetition(SETTING, activation, model)(0)  # double precision from here on
    drawn = plain_jax.draws(SETTING, jax.random.key(1))
    expansion = plain.expand(activation, 3, np.sqrt(40 / 44))
    found = plain_jax.errors(SETTING, activation, model, expansion, drawn)
    d = {name: np.asarray(array) for name, array in drawn.items()}
    weights = plain.step(d["weights"], d["readout"], d["x_step"], d["y_step"], activation, 5.0)

    def features(name):
        if model == "network":
            return plain.network_features(weights, d[f"x_{name}"], activation)
        return plain.hermite_features(weights, d[f"x_{name}"], expansion, d[f"noise_{name}"])

    fitted = plain.ridge(features("train"), d["y_train"], 1e-2)
    tested = plain.tested(features("test"), d["y_test"], fitted.coefficients)
    assert [float(v) for v in found] == pytest.approx([fitted.train_error, tested.mean], rel=1e-9)
