"""Limiting spectra of weights and features: bulks, outliers, alignments."""
