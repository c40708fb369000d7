"""Prepared corpora: text that is tokenized once for all pretraining on it."""
