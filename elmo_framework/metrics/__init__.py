"""Metrics: scores computed from sums over examples."""
