"""One label for a text: sentiment, topic and the like."""
