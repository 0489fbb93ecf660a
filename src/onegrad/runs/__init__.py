"""Running an experiment: which work is left, who does it, and the store that keeps every row."""
