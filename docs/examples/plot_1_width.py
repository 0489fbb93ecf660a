"""
Theory line, simulated dots
===========================

Test error against width for three activations. Lines are the theory on a finer grid,
dots are trained networks with their standard error.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

dots, grid = [0.1, 0.3, 0.7, 1.5, 3.0], np.geomspace(0.08, 3.5, 25)
fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
for i, activation in enumerate(["relu", "tanh", "sigmoid"]):
    problem = og.Problem(
        data=og.Mixture(dim=250),
        labels=og.SingleIndex(link="relu"),
        network=og.Network(activation=activation, width_ratio=1.0),
        training=og.Training(samples=250),
        scaling=og.Scaling(strength=0.74, weighting=0.5),
    )
    key = "network.width_ratio"
    found = og.sweep(problem, {key: dots}, models=["network"], seeds=6, progress=False)
    mean, error = np.array([s.test_error for s in found.summaries()]).T
    curve = og.predict_curve(
        [
            problem.model_copy(update={"network": og.Network(activation=activation, width_ratio=r)})
            for r in grid
        ]
    )
    ax.plot(grid, [point.test_error for point in curve], color=f"C{i}", label=activation)
    ax.errorbar(dots, mean, error, color=f"C{i}", fmt="o", capsize=2)
ax.set(xscale="log", xlabel="width over samples, k/m", ylabel="test error")
ax.set_title("one gradient step on a Gaussian mixture, n = m = 250")
ax.legend(title="lines: theory, dots: networks", frameon=False)
plt.show()
