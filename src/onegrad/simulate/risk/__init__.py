"""Test error of a fitted model: exact where the data's law is known, else on a sampled test set."""
