"""People's tables: reading them, estimators, learning curves, a report."""
