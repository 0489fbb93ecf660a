"""Rows and what is read off them: estimates, summaries, verdicts, tables for other programs."""
