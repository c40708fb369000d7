"""Text classification: sentiment, topic and the like."""
