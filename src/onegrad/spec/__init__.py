"""The spec file: experiment, sweep, overrides, presets, citations."""
