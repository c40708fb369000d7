"""Textual entailment: entailment, contradiction or neither of two sentences."""
