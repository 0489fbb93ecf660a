"""
Your own activation and your own labels
=======================================

Python functions go in as they are; the derivative is taken by differences, and checked.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og


def wavelet(x):
    return x * np.exp(-(x**2) / 8)


problem = og.Problem(
    data=og.Mixture(dim=150),
    labels=lambda t: t + 0.5 * np.cos(2 * t),
    network=og.Network(activation=wavelet, width=150),
    training=og.Training(samples=200),
    scaling=og.Scaling(strength=0.6, weighting=0.5),
)
problem

# %%
# Beside two activations that are built in:

keys = {"network.activation": [wavelet, "tanh", "relu"], "training.ridge": [1e-5, 1e-4, 1e-3, 1e-2]}
og.sweep(problem, keys, seeds=5, progress=False).plot()
plt.show()
