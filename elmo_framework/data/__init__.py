"""Text in, batches out: tokenizers, characters, vocabularies, readers, sources of batches."""
