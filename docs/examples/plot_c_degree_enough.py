"""
Is degree two enough?
=====================

How far is the network from the same network with a polynomial of low degree in the place of its activation?

The Hermite model replaces the activation by a polynomial and noise. The degree rule says which degree is enough as n
grows. At a given size the answer is a measurement: both are simulated on the same draws, so that their difference is
known better than either error.
"""

import matplotlib.pyplot as plt

import onegrad as og

problem = og.Problem(
    data=og.Mixture(dim=200, weights=[0.5, 0.5], rank=1),
    network=og.Network(activation="relu", width=200, convention="mixture"),
    training=og.Training(samples=300, ridge=1e-4),
    scaling=og.Scaling(strength=0.74, weighting=0.5),
)
report = og.degree(problem)
report.plot()
plt.show()

# %%
# The same as a table. The rule asks for more than the measurement, because it is about large n:

report
