"""Tokenizers, characters, vocabularies, dataset readers and batches."""
