"""
Tutorial
========

From one point to a paper's figure.

Ten minutes with a Python prompt or a notebook. Sizes are small, so that every step takes a second or two.

A problem
---------

A problem says where the inputs come from, how they are labelled, which network is trained and how. Nothing else
describes a problem: simulation and theory read the same object.
"""

import onegrad as og

problem = og.Problem(
    data=og.Isotropic(dim=150),
    labels=og.SingleIndex(link="hermite(0, 1, 0.5)", noise=0.1),
    network=og.Network(convention="isotropic", activation="relu", width=300),
    training=og.Training(samples=600, ridge=0.1),
    scaling=og.Scaling(exponent=0.35),
)
problem

# %%
# The inputs are 150 independent Gaussian numbers. The label is a function of one projection of them, t + ½(t² − 1), and
# some noise: a linear and a quadratic part. How long the gradient step is follows from the exponent: η = m^0.35.
#
# One point of the theory
# -----------------------
#
# Nothing is sampled; the numbers are those of the limit of large sizes, corrected for terms of order 1/n.

prediction = og.predict(problem)
prediction

# %%
# A prediction can be looked at: which function of the teacher's direction has been learned, and where the error is. The
# line is bent: part of the quadratic term has been learned. Without the step it would be straight.

prediction.plot()

# %%
# One point of the simulation
# ---------------------------
#
# The same problem as networks that are really trained: drawn data, one exact gradient step, ridge regression. The test
# error is computed exactly for the trained weights, without a test set. The Hermite model is the same network with
# its activation replaced by a polynomial and noise.

outcome = og.simulate(problem, models=("network", "hermite"), seeds=8)
outcome

# %%
# How far are they apart? Both models saw the same random numbers, so the difference is sharper than either error.

mean, error = outcome.difference("hermite")
print(f"the Hermite model is {mean:+.1%} ± {error:.1%} from the network")
print(f"the theory is {prediction.test_error / outcome.test_error.mean - 1:+.1%} from it")

# %%
# Which polynomial?
# -----------------
#
# The degree rule says which one is enough as n grows; the table, how far each is from the network here.

og.degree(problem)

# %%
# A curve
# -------
#
# ``sweep`` changes any key of the problem, in the words of a spec file, and runs all models at all values. At the left end
# the step is so small that it changes nothing: what the curve falls from there is what one step teaches. tanh is odd, and
# so cannot learn the quadratic part.

results = og.sweep(
    problem,
    {"network.activation": ["relu", "tanh"], "scaling.exponent": [-0.2, 0.0, 0.1, 0.2, 0.3, 0.4]},
    models=("network", "theory"),
    seeds=6,
    progress=False,
)
results.plot()

# %%
# The numbers behind it, as labelled arrays: one dimension for each swept key.

results.to_xarray().test_error.mean("seed").sel(model="network").to_pandas().round(4)

# %%
# A figure of your own
# --------------------
#
# Any key of the tables on the page of :doc:`spec files </spec>` can be swept: ``data.…``, ``labels.…``, ``network.…``,
# ``training.…``, ``scaling.…``. What ``plot`` returns are matplotlib's axes, to go on with.

ax = og.sweep(
    problem,
    {"labels.noise": [0.0, 0.5, 1.0], "network.activation": ["erf", "gelu"]},
    seeds=6,
    progress=False,
).plot("test_error")
ax.set_title("label noise, my own figure")
ax.figure.savefig("mine.png")

# %%
# A paper's figure
# ----------------
#
# The figures of the papers are presets: experiments with a name, kept as TOML. ``quick=True`` takes few
# points and seeds, at the same sizes and with the same theory; without it this is the whole figure. ``og.run`` stores every row in a folder, and goes on where it stopped.

figure = og.run("quickstart", out="results/quickstart-quick", quick=True, progress=False)
figure.plot("test_error", "train_error")

# %%
# From a shell, the same is ``onegrad run quickstart --quick``; it ends with a table, a verdict and a figure for a
# paper. ``onegrad list`` names all presets, ``onegrad show quickstart`` prints one, to copy and change:

print(og.Problem.from_spec("quickstart"))
