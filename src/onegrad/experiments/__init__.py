"""From a spec file to rows of results."""
