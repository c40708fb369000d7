"""ELMo from Python, under the names that its users know."""
