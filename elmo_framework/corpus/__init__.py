"""Prepared corpora: text cut into words once, and read by every training on it."""
