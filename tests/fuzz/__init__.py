"""Mutated specs and data files: no exception but ours, no hang, no memory without a limit."""
