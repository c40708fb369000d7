"""Pretraining a biLM on plain text."""
