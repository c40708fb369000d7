"""Encoders (sequence of vectors to sequence) and poolers (sequence to one vector)."""
