"""Which polynomial degree is enough, and why."""
