"""
A scikit-learn estimator
========================

Labels that depend on one direction: one gradient step finds it, random features do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import onegrad as og

rng = np.random.default_rng(0)
direction = rng.standard_normal(60) / np.sqrt(60)


def sample(rows):
    x = rng.standard_normal((rows, 60))
    t = x @ direction
    return x, t + (t**2 - 1) / 2


test = sample(2000)
sizes, errors = [300, 1000, 3000], {"one step": [], "random features": []}
for rows in sizes:
    x, y = sample(rows)
    for name, rate in (("one step", "auto"), ("random features", 0)):
        options = {} if rate == "auto" else {"rate": rate}
        model = og.OneStepRegressor(width=300, random_state=0, **options).fit(x, y)
        errors[name].append(np.mean((test[1] - model.predict(test[0])) ** 2) / test[1].var())

for name, values in errors.items():
    plt.loglog(sizes, values, "o-", label=name)
plt.xlabel("rows")
plt.ylabel("test error over the variance of the labels")
plt.legend(frameon=False)
plt.show()
