"""Where samples and their labels come from."""
