"""From the words of a batch to vectors: word, character and ELMo embedders."""
