"""Ridge regression and other losses on the features: fixed point, errors, signs and classes."""
