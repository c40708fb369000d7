"""Looking at a run and at a biLM: curves, layer weights, and neighbours of a word in context."""
