"""
The gap closes as 1/n
=====================

The theory is the limit of large sizes. Twice the size, half the gap: sizes grow together, and the gap between the mean
of trained networks and the theory is compared with the slope −1.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

sizes, gaps, errors = [30, 60, 120], [], []
for n in sizes:
    problem = og.Problem(
        data=og.Mixture(dim=n, spread=4.0, directions="orthogonal"),
        network=og.Network(activation="tanh", width=n),
        training=og.Training(samples=n, ridge=0.03 / n, rate=4.0),
    )
    mean, error = og.simulate(problem, seeds=18_000 // n).test_error
    theory = og.predict(problem, finite_size=False).test_error
    gaps.append(mean / theory - 1)
    errors.append(error / theory)

fig, ax = plt.subplots(layout="constrained")
ax.errorbar(sizes, gaps, errors, fmt="o", capsize=3, label="networks over theory, minus 1")
ax.loglog(sizes, gaps[0] * sizes[0] / np.array(sizes, dtype=float), "--", label="slope −1")
ax.set(xlabel="n = m = k", ylabel="relative gap of the test error")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
