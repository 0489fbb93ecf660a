"""Figures from stored rows: one function per kind of figure."""
