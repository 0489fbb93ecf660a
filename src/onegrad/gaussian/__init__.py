"""Gaussian averages: Hermite polynomials, quadrature, activations, smoothing, pair moments."""
