"""Answers to questions, found as spans of a passage."""
