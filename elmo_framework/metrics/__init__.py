"""Scores as functions of sums over examples."""
