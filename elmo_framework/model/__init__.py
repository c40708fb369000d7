"""Base classes of models, their parts, heads and tasks."""
