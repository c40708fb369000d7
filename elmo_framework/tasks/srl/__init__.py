"""Semantic role labeling: the arguments of each predicate of a sentence."""
