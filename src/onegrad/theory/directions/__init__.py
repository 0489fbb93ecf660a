"""Spikes, means, teachers and bulks: a few directions, and how they lie to each other."""
