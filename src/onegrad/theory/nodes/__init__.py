"""Where the theory looks at the data: rules for a known population, or the data themselves."""
