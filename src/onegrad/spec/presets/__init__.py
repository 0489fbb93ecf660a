"""The experiments that come with the package."""
