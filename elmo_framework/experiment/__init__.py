"""From a checked configuration to a run, and from a run back to a model."""
