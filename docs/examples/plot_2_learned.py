"""
What was learned
================

The mean prediction along the teacher's direction, for a short and for a long step. The short one learns a straight
line; the long one begins to bend with the labels.
"""

import matplotlib.pyplot as plt

import onegrad as og

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, strength in zip(axes, (0.2, 0.95), strict=True):
    problem = og.Problem(
        data=og.Isotropic(dim=400),
        labels=og.SingleIndex(link="relu"),
        network=og.Network(activation="relu", width=800),
        training=og.Training(samples=1200, ridge=1e-3),
        scaling=og.Scaling(strength=strength, weighting=1.0),
    )
    found = og.predict(problem, "conditional")
    learned = found.learned("teacher")
    ax.plot(learned.position, learned.target, color="black", label="labels")
    ax.plot(learned.position, learned.learned, lw=2, label="learned")
    ax.set_title(f"η = {problem.rate:.3g}: test error {found.test_error:.3f}")
    ax.set_xlabel("projection on the teacher")
    ax.legend(frameon=False)
plt.show()
