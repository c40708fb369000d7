"""Layer cache: layers of sentences, computed once."""
