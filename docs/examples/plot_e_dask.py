"""
On a cluster, the same numbers
==============================

How does a sweep run on many machines, and do its numbers change?

`og.Dask("tcp://host:8786")` sends the repetitions to the workers of a dask scheduler; without an address it starts
workers on this machine. Every repetition draws from streams of its own, so the numbers do not depend on who computes
them.
"""

import onegrad as og

problem = og.Problem(
    data=og.Isotropic(dim=150),
    labels=og.SingleIndex(link="hermite(0, 1, 0.5)"),
    network=og.Network(convention="isotropic", width=200),
    training=og.Training(samples=600, ridge=0.05, rate=0),
)
keys = {"training.rate": [0, 2, 4, 8, 16]}
here = og.sweep(problem, keys, seeds=6, engine=og.Local(1), progress=False)
there = og.sweep(problem, keys, seeds=6, engine=og.Dask(workers=2), progress=False)
there.plot()

# %%
# Row by row, the test errors of one process and of two dask workers differ by:

one = {(row.number, row.model, row.seed): row.test_error for row in here.rows}
two = {(row.number, row.model, row.seed): row.test_error for row in there.rows}
print(max(abs(one[key] - two[key]) for key in one))
