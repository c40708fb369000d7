"""Coreference resolution: cluster the mentions of the entities of a document."""
