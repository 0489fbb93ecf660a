"""Deterministic limits: what the network does, computed without sampling."""
