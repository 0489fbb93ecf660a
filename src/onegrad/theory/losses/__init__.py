"""How the readout is fitted: what a loss makes of a node's response."""
