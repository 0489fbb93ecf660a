"""A report on somebody's own data."""
