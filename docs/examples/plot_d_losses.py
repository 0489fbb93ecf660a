"""
Logistic against ridge
======================

Which loss should the readout have where labels are ±1?

The network's first layer makes the same step; the readout minimises the squared or the logistic loss, each with a
ridge. Few seeds say little here: a training set has more labels of one sign by chance, and all ridges share their
draws. The theory averages over these surpluses.
"""

import numpy as np

import onegrad as og

problem = og.Problem(
    data=og.Mixture(dim=150, weights=[0.5, 0.5], rank=1, mean=1.5),
    labels=og.ComponentLabels(),
    network=og.Network(activation="tanh", width=100, convention="mixture"),
    training=og.Training(samples=300, ridge=1e-3),
    scaling=og.Scaling(strength=0.5, weighting=0.5),
)
keys = {"training.loss": ["squared", "logistic"], "training.ridge": np.logspace(-4, -2, 3)}
results = og.sweep(problem, keys, seeds=20, progress=False)
results.plot("misclassification")

# %%
# The same in numbers:

results.to_xarray().misclassification.mean("seed").to_dataframe().unstack("model").round(4)
