"""
Which polynomial degree is enough?
==================================

The Hermite model replaces the activation by a polynomial and noise. The degree rule says how high the polynomial has
to go; each bar is a term's operator norm over that of pure noise, at the sizes at hand.
"""

import matplotlib.pyplot as plt

import onegrad as og

problem = og.Problem(
    data=og.Mixture(dim=300),
    network=og.Network(activation="relu", width=300),
    training=og.Training(samples=300),
    scaling=og.Scaling(strength=0.74, weighting=0.5),
)
report = og.degree(problem)
report.plot()
plt.show()

# %%
# The same as a table:

report
