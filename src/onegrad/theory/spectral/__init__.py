"""Limiting spectra of features and weights under structure: bulks, outliers, alignments."""
