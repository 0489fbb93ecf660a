"""
Weights from elsewhere, a teacher of one's own
==============================================

Which error does a readout reach on a first layer that somebody else has trained?

The weights may come from torch, JAX or NumPy; here they come from 40 steps of plain NumPy on data with a teacher of
our own. With torch it is the same call: ``og.predict_readout(linear.weight, problem, teacher=teacher)``.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

n, k, m = 100, 80, 300
rng = np.random.default_rng(0)
u, v = np.linalg.qr(rng.standard_normal((n, 2)))[0].T


def teacher(x):
    return np.tanh(2 * x @ u) + 0.5 * (x @ u) * (x @ v)


start = rng.standard_normal((k, n)) / np.sqrt(n)
weights, readout = start.copy(), rng.standard_normal(k) / np.sqrt(k)
for _ in range(40):
    x = rng.standard_normal((500, n))
    residual = teacher(x) - np.maximum(x @ weights.T, 0) @ readout
    weights += 0.5 * readout[:, None] * ((residual[:, None] * (x @ weights.T > 0)).T @ x) / len(x)

# %%
# The problem says what the readout sees: inputs, samples, ridge, activation. What trained the layer plays no part.

problem = og.Problem(
    data=og.Isotropic(dim=n),
    network=og.Network(width=k, activation="relu", convention="mixture"),
    training=og.Training(samples=m, ridge=1e-4, rate=0.0),
)
prediction = og.predict_readout(weights, problem, teacher=teacher, start=start)
prediction

# %%
# The same by hand: a ridge regression on fresh samples, and its error on a test set, twenty times.


def measured(features):
    x, fresh = rng.standard_normal((m, n)), rng.standard_normal((5000, n))
    phi = np.maximum(x @ features.T, 0)
    gram = phi.T @ phi / m + problem.effective_ridge * np.eye(k)
    a = np.linalg.solve(gram, phi.T @ teacher(x) / m)
    return np.mean((teacher(fresh) - np.maximum(fresh @ features.T, 0) @ a) ** 2)


errors = [measured(weights) for _ in range(20)]
print(f"predicted {prediction.test_error:.4f}")
print(f"measured  {np.mean(errors):.4f} ± {np.std(errors, ddof=1) / np.sqrt(20):.4f}")

# %%
# How much was learned? The same readout on the random layer from which the training began:

untrained = og.predict_readout(start, problem, teacher=teacher)
print(f"before training {untrained.test_error:.4f}, after {prediction.test_error:.4f}")

# %%
# The neurons of both layers in the plane of the teacher. Training has moved many of them far out along u, of both signs, and
# along v: the product in the teacher needs both.

figure, panels = plt.subplots(
    1, 2, figsize=(7, 3.4), sharex=True, sharey=True, layout="constrained"
)
for axes, layer, title in zip(panels, (start, weights), ("before training", "after"), strict=True):
    axes.plot(layer @ u, layer @ v, ".")
    axes.set(title=title, xlabel="along u", ylabel="along v")
