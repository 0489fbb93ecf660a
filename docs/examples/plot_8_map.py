"""
A map of the gain
=================

Where does the step teach something? The theory at every strength and weighting, against the same network without a
step. Drafts of the theory are a matter of milliseconds.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

strengths, weightings = np.linspace(0.1, 0.9, 9), np.linspace(0, 1, 9)


def problem(strength, weighting, rate=None):
    theta = 300.0 ** (strength * (1 - weighting))
    return og.Problem(
        data=og.Mixture(dim=300, spread=theta),
        network=og.Network(activation="tanh", width=300),
        training=og.Training(
            samples=300, rate=300.0 ** (strength * weighting) if rate is None else rate
        ),
    )


grid = [(s, w) for s in strengths for w in weightings]
with_step = og.predict_curve([problem(s, w) for s, w in grid], accuracy=0.1)
without = og.predict_curve([problem(s, w, rate=0.0) for s, w in grid], accuracy=0.1)
gain = np.array([1 - a.test_error / b.test_error for a, b in zip(with_step, without, strict=True)])

fig, ax = plt.subplots(layout="constrained")
image = ax.pcolormesh(weightings, strengths, 100 * gain.reshape(9, 9), cmap="cividis")
ax.set(xlabel="weighting α (0: data spread, 1: learning rate)", ylabel="strength β")
fig.colorbar(image, label="test error saved by the step, percent")
plt.show()
