"""Frozen problems with simulated errors, and the command that compares the theory with them."""
