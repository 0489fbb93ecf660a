"""The models that can be compared, by name: the network, its equivalents, and baselines."""

from onegrad.equivalents.conditional_gaussian import fit_conditional_gaussian
from onegrad.equivalents.gaussian import fit_gaussian
from onegrad.equivalents.hermite import fit_hermite
from onegrad.equivalents.kernel import fit_kernel
from onegrad.equivalents.linear import fit_linear
from onegrad.equivalents.random_features import fit_random_features
from onegrad.equivalents.spiked import fit_spiked
from onegrad.network.model import Fit, fit_network

MODELS: dict[str, Fit] = {
    "network": fit_network,
    "hermite": fit_hermite,
    "conditional-gaussian": fit_conditional_gaussian,
    "spiked": fit_spiked,
    "gaussian": fit_gaussian,
    "random-features": fit_random_features,
    "linear": fit_linear,
    "kernel": fit_kernel,
}
