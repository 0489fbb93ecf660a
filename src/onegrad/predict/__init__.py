"""Theory alone: what a problem's errors are."""
