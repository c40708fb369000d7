"""Layers of text from frozen biLMs."""
