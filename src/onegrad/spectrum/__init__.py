"""Singular values of weights and features, their limits and spikes."""
