"""
Data of your own
================

Scikit-learn's digits, four against nine, as arrays: trained networks, and the theory whose nodes are the rows
themselves.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import onegrad as og

x, y = load_digits(return_X_y=True)
kept = (y == 4) | (y == 9)
x, y = (x[kept] - x[kept].mean(axis=0)) / 16, 2.0 * (y[kept] == 9) - 1

problem = og.Problem(
    data=og.Arrays(x=x, y=y),
    network=og.Network(activation="tanh", width=100),
    training=og.Training(samples=110, step_samples=110, rate=10.0, ridge=1e-3),
)
results = og.sweep(
    problem, {"network.width": [30, 60, 120]}, seeds=6, models=["network", "linear"], progress=False
)
results.plot("test_error", "train_error")
plt.show()

# %%
# One point of the semi-parametric theory, and how it came about:

og.predict(problem, accuracy=0.05)
