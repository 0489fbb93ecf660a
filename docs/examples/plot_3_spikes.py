"""
Spikes leave the bulk
=====================

Singular values of the features after the step. As the step grows, one spike after the other leaves the bulk, and each
is one more polynomial degree of the teacher's direction.
"""

import matplotlib.pyplot as plt

import onegrad as og

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, exponent in zip(axes, (0.2, 0.36), strict=True):
    problem = og.Problem(
        data=og.Isotropic(dim=300),
        labels=og.SingleIndex(link="hermite(0, 1, 0.5)", noise=0.1),
        network=og.Network(convention="isotropic", activation="relu", width=500),
        training=og.Training(samples=600, ridge=0.1),
        scaling=og.Scaling(exponent=exponent, constant=3.0),
    )
    report = og.spectrum(problem)
    report.plot(ax=ax)
plt.show()

# %%
# What the last one found, in numbers:

report
