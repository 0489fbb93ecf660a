"""
Is degree two enough?
=====================

How far is the network from the same network with a polynomial of low degree in the place of its activation?

The degree rule says which polynomial is enough as n grows. At a given size the answer is a measurement: both models
are simulated on the same draws, so that their difference is known better than either error.
"""

import onegrad as og

problem = og.Problem(
    data=og.Mixture(dim=200, weights=[0.5, 0.5], rank=1),
    network=og.Network(activation="relu", width=200, convention="mixture"),
    training=og.Training(samples=300, ridge=1e-4),
    scaling=og.Scaling(strength=0.74, weighting=0.5),
)
outcome = og.simulate(problem, models=("network", "hermite:1", "hermite:2", "hermite:3"), seeds=10)
for degree in (1, 2, 3):
    mean, error = outcome.difference(f"hermite:{degree}")
    print(f"degree {degree}: {mean:+.2%} ± {error:.2%} from the network")

# %%
# A model is good enough where its difference is within its standard error, or smaller than what matters. The rule asks
# for more, because it is about large n:

print("degree by the rule:", problem.degree)
