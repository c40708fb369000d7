"""Embedding a corpus: sentences in, a file of vectors out."""
