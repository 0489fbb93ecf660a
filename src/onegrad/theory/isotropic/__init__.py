"""Isotropic data: closed forms, limits of errors and spectra."""
