"""From a sequence of vectors to a sequence (`Encoder`) or to one vector (`Pooler`)."""
